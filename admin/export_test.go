package admin

import "time"

// Stuck says which duty would stand still at a time.
func (m *Metrics) Stuck(at time.Time) string { return m.duties.stuck(at) }
