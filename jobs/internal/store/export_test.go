package store

// Statement is a statement as it is sent, for tests of its plan.
func (s *Store) Statement(name string) string { return s.sql.Get(name) }

// SearchText is a search as it is sent; looked names the jobs it looks at by states, and is empty for others.
func (s *Store) SearchText(name, looked string, descending bool) string {
	if looked != "" {
		return s.searchStates(looked, descending)
	}
	return inOrder(s.sql.Get(name), descending)
}

// ClaimSettings sets what holds during a claim.
func ClaimSettings() (sql string, args []any) { return setLimits, claimLimits.args() }
