package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
)

// What is done by a token has the token in the audit, whichever room writes the entry; what is done without one, and entries from before, have none.
func TestTheAuditNamesTheToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO pelton.audit (actor, action, target) VALUES ('before', 'queue.pause', 'q')`); err != nil {
		t.Fatal(err)
	}
	token, secret, err := s.access.AddToken(t.Context(), "test", access.NewToken{User: "admin", Name: "nightly\u00a0push, 2", Role: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	with := func(status int, method, path string, body any, headers ...string) response {
		t.Helper()
		r := s.ask(secret, method, "/api/v1"+path, body, headers...)
		if r.status != status {
			t.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
		}
		return r
	}
	with(200, "POST", "/queues/etl/pause", nil)
	with(200, "PATCH", "/queues/etl", `{"metadata":{"a":1}}`)
	var job document.EnqueuedJob
	if err := json.Unmarshal(with(201, "POST", "/jobs", `{"kind":"noop","pending":true}`).body, &job); err != nil {
		t.Fatal(err)
	}
	with(200, "PATCH", fmt.Sprintf("/jobs/%d", job.ID), `{"priority":2}`)
	with(200, "POST", fmt.Sprintf("/jobs/%d/cancel", job.ID), nil)
	with(200, "PUT", "/schedules/s", `{"name":"s","cron":"@daily","job":{"kind":"noop"}}`)
	with(200, "POST", "/schedules/s/pause", nil)
	with(200, "PUT", "/secrets/etl/A", `{"value":"xxxxxxxx"}`)
	with(201, "POST", "/users", `{"name":"carol","role":"viewer"}`)
	with(201, "POST", "/tokens", `{"user":"carol","name":"t"}`)
	with(200, "POST", "/alerts/mutes", `{"rule":"oldest_age","subject":"etl","for":"1h"}`)
	with(201, "POST", "/projects/etl/versions", zipped(t, map[string]string{"f.job": "type=noop\n"}), "Content-Type", "application/zip")
	with(201, "POST", "/projects/etl/flows/f/runs", `{}`)
	with(200, "POST", "/runs/1/kill", nil)
	with(200, "POST", "/partitions/maintain", nil)

	seen := map[string]bool{}
	for _, e := range walk[document.AuditEntry](s, "/api/v1/audit?limit=100") {
		by := e.Token != nil
		if by && (*e.Token != document.AuditToken{ID: token.ID, Name: token.Name}) {
			t.Errorf("%s of %s by token %+v", e.Action, e.Target, *e.Token)
		}
		if by != (e.Actor == "admin") {
			t.Errorf("%s of %s by %s: token %v", e.Action, e.Target, e.Actor, e.Token)
		}
		room, _, _ := strings.Cut(e.Action, ".")
		seen[room] = seen[room] || by
	}
	for _, room := range []string{"queue", "job", "schedule", "secret", "user", "token", "alert", "flow", "partition"} {
		if !seen[room] {
			t.Errorf("no entry of %s.* by the token", room)
		}
	}
}
