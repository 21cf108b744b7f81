package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/periodic"
)

// injections are values that match all there is, or are no SQL, where one is put into a statement as it is.
var injections = []string{`'`, `' OR '1'='1`, `') OR ('1'='1`, `' OR 1=1 --`, `"`, `\`, `%`, `_`, `*`, `{' OR '1'='1}`}

// furnish puts something into every list.
func (s *service) furnish() {
	s.t.Helper()
	s.enqueue(map[string]any{"kind": "waits", "queue": "mail", "tags": []string{"red"}, "args": map[string]any{"a": 1}})
	do[any](s, access.Operator, 200, "POST", "/api/v1/queues/mail/pause", nil)
	s.push(access.Admin, "sales")
	do[any](s, access.Operator, 201, "POST", "/api/v1/projects/sales/flows/etl/runs", map[string]any{})
	do[any](s, access.Admin, 200, "PUT", "/api/v1/schedules/etl", map[string]any{"name": "etl", "cron": "@daily", "flow": map[string]any{"project": "sales", "flow": "etl"}})
	do[any](s, access.Admin, 200, "PUT", "/api/v1/schedules/job", map[string]any{"name": "job", "cron": "@daily", "job": map[string]any{"kind": "waits"}})
	do[any](s, access.Operator, 200, "POST", "/api/v1/schedules/job/trigger", nil)
	past := time.Now().UTC().AddDate(0, 0, -3)
	do[periodic.Backfill](s, access.Operator, 201, "POST", "/api/v1/schedules/job/backfills", map[string]any{"from": past, "to": past.AddDate(0, 0, 2)})
	do[any](s, access.Admin, 200, "PUT", "/api/v1/secrets/sales/PW", map[string]any{"value": "xxxxxxxx"})
	do[any](s, access.Operator, 200, "POST", "/api/v1/alerts/mutes", map[string]any{"rule": "oldest_age", "for": "1h"})
	if _, err := s.pool.Exec(s.t.Context(), `INSERT INTO pelton.job_dead (job_id, created_at, priority, max_attempts, attempt, reason, kind, queue, args, attempts)
		SELECT n, now(), 1, 1, 1, 'exhausted', 'broken', 'mail', '{}', '[]' FROM generate_series(1, 3) n`); err != nil {
		s.t.Fatal(err)
	}
}

// What SQL would take for its own finds nothing by any text filter of any list, also in a body.
func TestInjectionsFindNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.furnish()
	doc, _ := s.document()
	needs := map[string]string{"runs-list flow": "project=sales&"}
	tried := map[string]bool{}
	doc.each(func(method, path string, op apiOperation) {
		if method != http.MethodGet {
			return
		}
		for _, p := range op.Parameters {
			text := p.Schema.Type == "string" && len(p.Schema.Enum) == 0 && p.Schema.Format == "" ||
				p.Schema.Type == "array" && p.Schema.Items.Type == "string" && len(p.Schema.Items.Enum) == 0
			if p.In != "query" || !text || p.Name == "cursor" || strings.Contains(path, "{") {
				continue
			}
			name := op.OperationID + " " + p.Name
			tried[name] = true
			if all := s.items(path); all < 1 {
				t.Errorf("%s: the list is empty, and nothing could be found", name)
			}
			for _, value := range injections {
				r := s.ask(s.tokens[access.Admin], method, path+"?"+needs[name]+p.Name+"="+url.QueryEscape(value), nil)
				var list struct{ Items []json.RawMessage }
				if err := json.Unmarshal(r.body, &list); err != nil {
					t.Fatal(err)
				}
				refused := r.status == http.StatusNotFound || r.status == http.StatusUnprocessableEntity && !strings.Contains(string(r.body), "the database")
				if !refused && (r.status != http.StatusOK || len(list.Items) > 0) {
					t.Errorf("%s=%s: %d %.300s", name, value, r.status, r.body)
				}
			}
		}
	})
	for _, name := range []string{
		"jobs-list kind", "jobs-list queue", "jobs-list tag", "jobs-list tag_any", "jobs-list args", "jobs-list metadata", "dead-list kind", "dead-list queue", "audit-list target",
		"audit-list action", "audit-list actor", "schedules-list prefix", "schedules-list kind", "schedules-list flow", "schedules-list owner", "runs-list project", "runs-list flow",
		"flows-list project", "secrets-list project", "tokens-list user",
	} {
		if !tried[name] {
			t.Errorf("%s was not tried: %v", name, tried)
		}
	}
	for _, verb := range []string{"redrive", "discard"} {
		for _, filter := range []string{"kinds", "queues"} {
			for _, value := range injections {
				r := s.ask(s.tokens[access.Admin], "POST", "/api/v1/dead/"+verb, map[string]any{filter: []string{value}})
				if r.status != http.StatusOK || !strings.Contains(string(r.body), `"letters":[]`) {
					t.Errorf("%s of %s %s: %d %s", verb, filter, value, r.status, r.body)
				}
			}
		}
	}
	if left := s.items("/api/v1/dead"); left != 3 {
		t.Errorf("%d of 3 dead letters are left", left)
	}
}

// items counts what a list has.
func (s *service) items(path string) int {
	s.t.Helper()
	return len(do[page[json.RawMessage]](s, access.Admin, 200, "GET", path, nil).Items)
}
