package admin

import (
	"context"
	"time"
)

// Stuck says which duty would stand still at a time.
func (m *Metrics) Stuck(at time.Time) string { return m.duties.stuck(at) }

// AskDatabase asks it for readiness, unless its last answer still serves, and has the answer serve for a while.
func (s *Server) AskDatabase(ctx context.Context, keep time.Duration) string {
	why := s.databaseFault(ctx)
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	s.asked.until = time.Now().Add(keep)
	return why
}
