package api_test

import (
	"bytes"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

func TestAlerts(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO pelton.alert_state (rule, subject, bad_since, firing_since, value, text)
		VALUES ('oldest_age', 'mail', now(), now(), 1, 'old'), ('failure_rate', 'web', now(), NULL, 1, 'bad'), ('oldest_age', 'etl', now(), now(), 1, 'old')`); err != nil {
		t.Fatal(err)
	}
	const alerts = "/api/v1/alerts"
	type page struct {
		Items      []alert.Alert
		NextCursor string `json:"next_cursor"`
	}
	list := do[page](s, access.Viewer, 200, "GET", alerts+"?limit=2", nil)
	if len(list.Items) != 2 || list.Items[0].Rule != "failure_rate" || list.Items[0].State != alert.StatePending || list.Items[0].Channels == nil ||
		list.Items[1].Subject != "etl" || list.Items[1].State != alert.StateFiring {
		t.Errorf("%+v", list)
	}
	if rest := do[page](s, access.Viewer, 200, "GET", alerts+"?limit=2&cursor="+list.NextCursor, nil); len(rest.Items) != 1 || rest.Items[0].Subject != "mail" || rest.NextCursor != "" {
		t.Errorf("%+v", rest)
	}
	if rules := do[document.AlertRules](s, access.Viewer, 200, "GET", alerts+"/rules", nil); len(rules.Rules) < 8 || !rules.Late || rules.Channels == nil {
		t.Errorf("%+v", rules)
	}
	m := do[alert.Mute](s, access.Operator, 200, "POST", alerts+"/mutes", `{"rule":"oldest_age","subject":"mail","for":"2h","reason":"a new version"}`)
	if m.CreatedBy != "operator" || time.Until(m.Until) > 2*time.Hour || time.Until(m.Until) < time.Hour {
		t.Errorf("%+v", m)
	}
	do[alert.Mute](s, access.Operator, 200, "POST", alerts+"/mutes", `{"rule":"*","until":"2999-01-01T00:00:00Z"}`)
	if mutes := do[struct{ Items []alert.Mute }](s, access.Viewer, 200, "GET", alerts+"/mutes", nil); len(mutes.Items) != 2 || mutes.Items[0].Subject != alert.Any {
		t.Errorf("%+v", mutes)
	}
	operator := s.tokens[access.Operator]
	for body, says := range map[string]string{
		`{"rule":"*"}`: "want for or until",
		`{"rule":"*","for":"1h","until":"2999-01-01T00:00:00Z"}`: "and not both",
		`{"rule":"*","for":"soon"}`:                              "soon",
		`{"rule":"*","until":"2001-01-01T00:00:00Z"}`:            "which is past",
	} {
		s.problemOf(s.ask(operator, "POST", alerts+"/mutes", body), http.StatusUnprocessableEntity, "invalid-request", says)
	}
	s.problemOf(s.ask(operator, "POST", alerts+"/mutes", `{"rule":"oldest_ages","for":"1h"}`), http.StatusNotFound, "not-found", `did you mean "oldest_age"?`)
	for _, body := range []string{`{"rule":"oldest_age","subject":"mail"}`, `{"rule":"*"}`} {
		if gone := do[document.Unmuted](s, access.Operator, 200, "POST", alerts+"/mutes/end", body); gone.Muted {
			t.Errorf("%+v", gone)
		}
		s.problemOf(s.ask(operator, "POST", alerts+"/mutes/end", body), http.StatusNotFound, "not-found", "mute of rule")
	}
	s.problemOf(s.ask(operator, "POST", alerts+"/test", `{"channel":"ops"}`), http.StatusNotFound, "not-found", "ops")
	store, err := alert.NewStore(s.pool, "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := alert.Parse("x.yaml", []byte("channels: {ops: {type: mail, to: [ops@example.com], from: pelton@example.com}}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Publish(t.Context(), "test", f); err != nil {
		t.Fatal(err)
	}
	tested := do[document.AlertTested](s, access.Operator, 200, "POST", alerts+"/test", `{"channel":"ops"}`)
	if job := do[document.Job](s, access.Viewer, 200, "GET", "/api/v1/jobs/"+jobID(tested.JobID), nil); job.Kind != alert.Kind {
		t.Errorf("%+v", job)
	}
	entries := do[struct{ Items []document.AuditEntry }](s, access.Admin, 200, "GET", "/api/v1/audit?actor=operator&action=alert.mute", nil)
	if len(entries.Items) != 2 {
		t.Errorf("%+v", entries)
	}
}

// An erase blanks what has ended, for admins; what has not is refused, and so is a retry of what was erased.
func TestErase(t *testing.T) {
	t.Parallel()
	s := start(t)
	job := do[document.Job](s, access.Operator, 201, "POST", "/api/v1/jobs", `{"kind":"report","args":{"name":"Jane Doe"},"tags":["jane"],"at":"2999-01-01T00:00:00Z"}`)
	path := "/api/v1/jobs/" + jobID(job.ID)
	admin := s.tokens[access.Admin]
	s.problemOf(s.ask(admin, "POST", path+"/erase", nil), http.StatusConflict, "job-not-ended", "has not ended")
	do[document.Job](s, access.Operator, 200, "POST", path+"/cancel", nil)
	done := do[document.Erased](s, access.Admin, 200, "POST", path+"/erase", nil)
	if done.ID != job.ID || !done.Changed || len(done.Jobs) != 1 {
		t.Errorf("%+v", done)
	}
	if again := do[document.Erased](s, access.Admin, 200, "POST", path+"/erase", nil); again.Changed || again.Jobs == nil {
		t.Errorf("%+v", again)
	}
	if r := s.ask(admin, "GET", path, nil); r.status != 200 || contains(r.body, "Jane") || contains(r.body, "jane") {
		t.Errorf("%s", r.body)
	}
	s.problemOf(s.ask(admin, "POST", path+"/retry", nil), http.StatusConflict, "job-erased", "was erased")
	s.problemOf(s.ask(admin, "POST", "/api/v1/jobs/4711/erase", nil), http.StatusNotFound, "not-found", "")
	if _, err := s.jobs.JobGet(t.Context(), job.ID); err != nil {
		t.Error(err)
	}
	entries, err := s.jobs.AuditList(t.Context(), &jobs.AuditListParams{Action: "job.erase", Actor: "admin", Limit: 10})
	if err != nil || len(entries) != 1 {
		t.Errorf("%+v %v", entries, err)
	}
}

func jobID(id int64) string { return strconv.FormatInt(id, 10) }

func contains(body []byte, text string) bool { return bytes.Contains(body, []byte(text)) }
