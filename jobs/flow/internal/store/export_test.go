package store

// SQL is a statement's text.
func (s *Store) SQL(name string) string { return s.sql.Get(name) }
