package api_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/pgtest"
)

// Reads that hang keep neither the further ones waiting for long nor an enqueue at all, and one user's do not keep others from reading.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hang []access.Role
		asks access.Role
	}{
		"for one user": {[]access.Role{access.Viewer}, access.Viewer}, // who has no more than half of the slots
		"for all":      {[]access.Role{access.Viewer, access.Admin}, access.Operator},
	} {
		t.Run(name, func(t *testing.T) {
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
			for _, role := range c.hang {
				for range 3 {
					hang.Go(func() {
						if r := s.ask(s.tokens[role], "GET", "/api/v1/executors", nil); r.status != http.StatusOK {
							t.Errorf("a read that waited: %d %s", r.status, r.body)
						}
					})
				}
			}
			pgtest.Eventually(t, patience, func() bool {
				var n int
				err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'pelton.executor'::regclass`).Scan(&n)
				return err == nil && n == 3*len(c.hang)
			}, "%d reads to hang", 3*len(c.hang))
			r := s.ask(s.tokens[c.asks], "GET", "/api/v1/partitions", nil)
			s.problemOf(r, http.StatusServiceUnavailable, "busy", "as many as may at once")
			if r.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
			}
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
		})
	}
}

// A list takes about as long as it is given: one in the order of an index ends early, and says how far it came and how to go on; one that must be sorted is refused.
func TestListsWithinATime(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO pelton.job (kind, args) SELECT CASE n WHEN 20000 THEN 'rare' ELSE 'k' END, '{}' FROM generate_series(1, 20000) n`); err != nil {
		t.Fatal(err)
	}
	token := s.tokens[access.Viewer]
	r := s.ask(token, "GET", "/api/v1/jobs?order=scheduled_at&within=1", nil)
	s.problemOf(r, http.StatusGatewayTimeout, "too-slow", "query.order: sorting the jobs by scheduled_at took longer than 1 ms: ask for fewer")
	for _, within := range []string{"0", "10001", "soon"} {
		s.problemOf(s.ask(token, "GET", "/api/v1/jobs?within="+within, nil), http.StatusUnprocessableEntity, "invalid-request", "query.within")
	}
	type part struct {
		Items      []struct{ Kind string }
		NextCursor string     `json:"next_cursor"`
		SearchedTo *time.Time `json:"searched_to"`
	}
	found, stops, cursor := 0, 0, ""
	for {
		p := do[part](s, access.Viewer, http.StatusOK, "GET", "/api/v1/jobs?kind=rare&within=1"+cursor, nil)
		found += len(p.Items)
		if p.NextCursor == "" {
			break
		}
		if stops++; p.SearchedTo == nil || time.Since(*p.SearchedTo) > time.Hour {
			t.Fatalf("a page that ended early, with %d items, was searched to %v", len(p.Items), p.SearchedTo)
		}
		cursor = "&cursor=" + p.NextCursor
	}
	if found != 1 || stops == 0 {
		t.Errorf("%d found, and the search stopped %d times: want 1, and once at least", found, stops)
	}
	if p := do[part](s, access.Viewer, http.StatusOK, "GET", "/api/v1/jobs?kind=rare&within=10000", nil); len(p.Items) != 1 || p.NextCursor != "" || p.SearchedTo != nil {
		t.Errorf("with time enough: %+v", p)
	}
}
