package store

// Statement is a statement as it is sent, for tests of its plan.
func (s *Store) Statement(name string) string { return s.sql.Get(name) }

// ClaimSettings sets what holds during a claim.
func ClaimSettings() (sql string, args []any) { return setLimits, claimLimits.args() }
