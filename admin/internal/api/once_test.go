package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/pgtest"
)

// count counts the jobs of a kind.
func (s *service) count(kind string) int {
	s.t.Helper()
	return len(do[jobPage](s, access.Viewer, http.StatusOK, "GET", "/api/v1/jobs?kind="+kind, nil).Items)
}

func TestKeyDoesOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	token := s.tokens[access.Operator]
	for path, bodies := range map[string][3]string{
		"/api/v1/jobs":      {`{"kind":"one","args":{"a":1}}`, `{ "args": {"a": 1}, "kind": "one" }`, `{"kind":"one","args":{"a":2}}`},
		"/api/v1/jobs/many": {`{"jobs":[{"kind":"many"}]}`, `{"jobs": [{"kind": "many"}]}`, `{"jobs":[{"kind":"many"},{"kind":"many"}]}`},
	} {
		key := "key of " + path
		key = strings.ReplaceAll(key, " ", "-")
		first := s.ask(token, "POST", path, bodies[0], "Idempotency-Key", key)
		again := s.ask(token, "POST", path, bodies[1], "Idempotency-Key", key)
		if first.status != http.StatusCreated || again.status != http.StatusCreated || !bytes.Equal(first.body, again.body) {
			t.Errorf("%s: %d %s, then %d %s", path, first.status, first.body, again.status, again.body)
		}
		if first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %q, then %q", path, first.header.Get("Idempotent-Replayed"), again.header.Get("Idempotent-Replayed"))
		}
		s.problemOf(s.ask(token, "POST", path, bodies[2], "Idempotency-Key", key), http.StatusUnprocessableEntity, "key-reused", key)
		if r := s.ask(s.tokens[access.Admin], "POST", path, bodies[2], "Idempotency-Key", key); r.status != http.StatusCreated {
			t.Errorf("%s: another actor's key: %d %s", path, r.status, r.body)
		}
		s.problemOf(s.ask(s.tokens[access.Viewer], "POST", path, bodies[0], "Idempotency-Key", key), http.StatusForbidden, "forbidden", "")
	}
	if s.count("one") != 2 || s.count("many") != 3 {
		t.Errorf("%d and %d jobs, want 2 and 3", s.count("one"), s.count("many"))
	}
	// The same key for another operation is another request.
	s.problemOf(s.ask(token, "POST", "/api/v1/jobs/many", `{"jobs":[{"kind":"one"}]}`, "Idempotency-Key", "key-of-/api/v1/jobs"),
		http.StatusUnprocessableEntity, "key-reused", "")
	// What is refused leaves the key free.
	s.problemOf(s.ask(token, "POST", "/api/v1/jobs", `{"kind":"three","queue":"No Queue"}`, "Idempotency-Key", "free"),
		http.StatusUnprocessableEntity, "invalid-job", "")
	do[document.EnqueuedJob](s, access.Operator, http.StatusCreated, "POST", "/api/v1/jobs", `{"kind":"three"}`, "Idempotency-Key", "free")
	for _, key := range []string{"with space", strings.Repeat("k", 201), "ü"} {
		s.problemOf(s.ask(token, "POST", "/api/v1/jobs", `{"kind":"one"}`, "Idempotency-Key", key), http.StatusUnprocessableEntity, "invalid-request", "header.Idempotency-Key")
	}
}

// Of requests with the same key at the same time one does it, and all get its answer.
func TestKeyAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := start(t)
	var wait sync.WaitGroup
	var mu sync.Mutex
	answers, replayed := map[string]int{}, 0
	for range 12 {
		wait.Go(func() {
			r := s.ask(s.tokens[access.Operator], "POST", "/api/v1/jobs", `{"kind":"one"}`, "Idempotency-Key", "k")
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprintf("%d %s", r.status, r.body)]++
			if r.header.Get("Idempotent-Replayed") == "true" {
				replayed++
			}
		})
	}
	wait.Wait()
	if len(answers) != 1 || replayed != 11 || s.count("one") != 1 {
		t.Errorf("%d jobs, %d replayed, answers %v", s.count("one"), replayed, answers)
	}
}

// A request that comes while the first is under way waits for it; if the first is given up, it does the work itself.
func TestKeyWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx := t.Context()
	first, err := s.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback(ctx)
	if _, err := first.Exec(ctx, `INSERT INTO pelton.api_request (actor, key, hash) VALUES ('operator', 'k', '')`); err != nil {
		t.Fatal(err)
	}
	answered := make(chan response, 1)
	go func() {
		answered <- s.ask(s.tokens[access.Operator], "POST", "/api/v1/jobs", `{"kind":"one"}`, "Idempotency-Key", "k")
	}()
	pgtest.Eventually(t, patience, func() bool {
		var waits bool
		if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%api_request%')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	}, "the second request to wait")
	if err := first.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if r := <-answered; r.status != http.StatusCreated || r.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%d %s", r.status, r.body)
	}
}
