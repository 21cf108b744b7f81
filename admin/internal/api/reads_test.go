package api_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/pgtest"
)

// Reads that hang keep neither the further ones waiting for long nor an enqueue at all, and one user's do not keep others from reading.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE pelton.executor IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	var hang sync.WaitGroup
	hanging := 0
	hangs := func(role access.Role) {
		t.Helper()
		for range 3 {
			hanging++
			hang.Go(func() {
				if r := s.ask(s.tokens[role], "GET", "/api/v1/executors", nil); r.status != http.StatusOK {
					t.Errorf("a read that waited: %d %s", r.status, r.body)
				}
			})
		}
		pgtest.Eventually(t, patience, func() bool {
			var n int
			err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'pelton.executor'::regclass`).Scan(&n)
			return err == nil && n == hanging
		}, "%d reads to hang", hanging)
	}
	busy := func(role access.Role) {
		t.Helper()
		r := s.ask(s.tokens[role], "GET", "/api/v1/partitions", nil)
		s.problemOf(r, http.StatusServiceUnavailable, "busy", "as many as may at once")
		if r.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
		}
	}
	hangs(access.Viewer)
	busy(access.Viewer) // one user has no more than half of the slots
	hangs(access.Admin)
	busy(access.Operator)
	if r := s.ask(s.tokens[access.Operator], "POST", "/api/v1/jobs", `{"kind":"noop"}`); r.status != http.StatusCreated {
		t.Errorf("an enqueue: %d %s", r.status, r.body)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	hang.Wait()
	if r := s.ask(s.tokens[access.Viewer], "GET", "/api/v1/partitions", nil); r.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", r.status, r.body)
	}
}
