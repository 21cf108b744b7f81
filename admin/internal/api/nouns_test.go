package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
)

// walk follows the cursors of a list, a few items a page.
func walk[T any](s *service, path string) []T {
	s.t.Helper()
	var all []T
	for next := path; next != ""; {
		page := do[struct {
			Items      []T
			NextCursor string `json:"next_cursor"`
		}](s, access.Viewer, http.StatusOK, "GET", next, nil)
		all = append(all, page.Items...)
		next = ""
		if page.NextCursor != "" {
			next = path + "&cursor=" + url.QueryEscape(page.NextCursor)
		}
		if len(all) > 10_000 {
			s.t.Fatalf("%s has no end", path)
		}
	}
	return all
}

func TestJobChanges(t *testing.T) {
	t.Parallel()
	s := start(t)
	ids := s.enqueue(map[string]any{}, map[string]any{"pending": true}, map[string]any{})
	at := func(i int, verb string) string { return fmt.Sprintf("/api/v1/jobs/%d%s", ids[i], verb) }
	if j := do[document.Job](s, access.Operator, 200, "POST", at(0, "/cancel"), nil); j.State != "cancelled" {
		t.Errorf("cancelled: %+v", j)
	}
	if j := do[document.Job](s, access.Operator, 200, "POST", at(1, "/retry"), nil); j.State != "available" {
		t.Errorf("retried: %+v", j)
	}
	change := map[string]any{"queue": "other", "priority": 2, "max_attempts": 3, "args": map[string]any{"a": 1}, "metadata": map[string]any{"m": "x"}, "output": 5}
	j := do[document.Job](s, access.Operator, 200, "PATCH", at(2, ""), change)
	if j.Queue != "other" || j.Priority != 2 || j.MaxAttempts != 3 || string(j.Args) != `{"a":1}` || !strings.Contains(string(j.Metadata), `"m": "x"`) &&
		!strings.Contains(string(j.Metadata), `"m":"x"`) || string(j.Output) != "5" {
		t.Errorf("updated: %+v", j)
	}
	token := s.tokens[access.Operator]
	later := s.enqueue(map[string]any{"at": "2999-01-01T00:00:00Z"})[0]
	when := fmt.Sprintf("/api/v1/jobs/%d/reschedule", later)
	if j := do[document.Job](s, access.Operator, 200, "POST", when, `{"at":"2999-02-03T04:05:06+01:00"}`); j.State != "scheduled" || j.ScheduledAt.Format(time.RFC3339) != "2999-02-03T03:05:06Z" {
		t.Errorf("rescheduled: %+v", j)
	}
	for _, body := range []string{`{}`, `{"at":"tomorrow"}`, `{"at":null}`, `{"at":"2999-02-03T04:05:06"}`} {
		s.problemOf(s.ask(token, "POST", when, body), http.StatusUnprocessableEntity, "invalid-request", "body")
	}
	s.problemOf(s.ask(token, "POST", when, `{"at":"0001-01-01T00:00:00Z"}`), http.StatusUnprocessableEntity, "invalid-job", "zero")
	s.problemOf(s.ask(token, "POST", at(0, "/reschedule"), `{"at":"2999-01-01T00:00:00Z"}`), http.StatusConflict, "job-not-scheduled", "is cancelled: it has ended")
	s.problemOf(s.ask(token, "POST", "/api/v1/jobs/7/reschedule", `{"at":"2999-01-01T00:00:00Z"}`), http.StatusNotFound, "not-found", "")
	for body, kind := range map[string]string{
		`{}`: "invalid-request", `{"priority":7}`: "invalid-request", `{"queue":"No Queue"}`: "invalid-job", `{"args":"` + strings.Repeat("a", 1<<20) + `"}`: "invalid-job",
		`{"metadata":[]}`: "invalid-request",
	} {
		s.problemOf(s.ask(token, "PATCH", at(2, ""), body), http.StatusUnprocessableEntity, kind, "")
	}
	if j := do[document.Job](s, access.Admin, 200, "DELETE", at(2, ""), nil); j.ID != ids[2] {
		t.Errorf("deleted: %+v", j)
	}
	for _, verb := range []string{"/cancel", "/retry"} {
		s.problemOf(s.ask(token, "POST", at(2, verb), nil), http.StatusNotFound, "not-found", "")
	}
	s.problemOf(s.ask(s.tokens[access.Admin], "DELETE", at(2, ""), nil), http.StatusNotFound, "not-found", "")
	s.problemOf(s.ask(token, "PATCH", at(2, ""), `{"priority":1}`), http.StatusNotFound, "not-found", "")
	entries := walk[document.AuditEntry](s, "/api/v1/audit?limit=2&actor=operator")
	var actions []string
	for _, e := range entries {
		actions = append(actions, e.Action)
	}
	if !slices.Contains(actions, "job.cancel") || !slices.Contains(actions, "job.retry") || !slices.Contains(actions, "job.update") || !slices.Contains(actions, "job.reschedule") {
		t.Errorf("audit of the operator: %v", actions)
	}
	if all := do[struct{ Items []document.AuditEntry }](s, access.Viewer, 200, "GET", "/api/v1/audit?limit=1000", nil); !slices.IsSortedFunc(all.Items,
		func(a, b document.AuditEntry) int { return int(b.ID - a.ID) }) || len(walk[document.AuditEntry](s, "/api/v1/audit?limit=3")) != len(all.Items) {
		t.Errorf("the audit has %d entries", len(all.Items))
	}
}

// A unique key that another job holds stands in the way of a retry.
func TestJobConflicts(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.enqueue(map[string]any{"unique_key": "k"})[0]
	do[document.Job](s, access.Operator, 200, "POST", fmt.Sprintf("/api/v1/jobs/%d/cancel", id), nil)
	other := do[document.EnqueuedJob](s, access.Operator, 201, "POST", "/api/v1/jobs", `{"kind":"noop","unique_key":"k"}`)
	again := do[document.EnqueuedJob](s, access.Operator, 201, "POST", "/api/v1/jobs", `{"kind":"noop","unique_key":"k"}`)
	if other.Duplicate || !again.Duplicate || again.ID != other.ID {
		t.Errorf("%+v, then %+v", other, again)
	}
	r := s.ask(s.tokens[access.Operator], "POST", fmt.Sprintf("/api/v1/jobs/%d/retry", id), nil)
	s.problemOf(r, http.StatusConflict, "unique-conflict", fmt.Sprint(other.ID))
}

func TestQueues(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.enqueue(map[string]any{"queue": "a"}, map[string]any{"queue": "a", "pending": true}, map[string]any{"queue": "b"}, map[string]any{"queue": "c"})
	var names []string
	for _, q := range walk[document.Queue](s, "/api/v1/queues?limit=2") {
		names = append(names, q.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("queues: %v", names)
	}
	if q := do[document.Queue](s, access.Viewer, 200, "GET", "/api/v1/queues/a", nil); q.Available != 1 || q.Pending != 1 || q.PausedAt != nil {
		t.Errorf("%+v", q)
	}
	if c := do[document.QueueChanged](s, access.Operator, 200, "POST", "/api/v1/queues/a/pause", nil); !c.Paused || !c.Known {
		t.Errorf("%+v", c)
	}
	if q := do[document.Queue](s, access.Viewer, 200, "GET", "/api/v1/queues/a", nil); q.PausedAt == nil {
		t.Errorf("%+v", q)
	}
	if c := do[document.QueueChanged](s, access.Operator, 200, "POST", "/api/v1/queues/*/pause", nil); !c.Paused {
		t.Errorf("%+v", c)
	}
	if c := do[document.QueueChanged](s, access.Operator, 200, "POST", "/api/v1/queues/a/resume", nil); !c.Paused {
		t.Errorf("%+v: all are paused", c)
	}
	if c := do[document.QueueChanged](s, access.Operator, 200, "POST", "/api/v1/queues/*/resume", nil); c.Paused {
		t.Errorf("%+v", c)
	}
	if c := do[document.QueueChanged](s, access.Operator, 200, "POST", "/api/v1/queues/new/pause", nil); !c.Paused || c.Known {
		t.Errorf("%+v", c)
	}
	q := do[document.Queue](s, access.Operator, 200, "PATCH", "/api/v1/queues/b", `{"metadata":{"owner":"etl"}}`)
	if !strings.Contains(string(q.Metadata), `"owner"`) || q.Available != 1 {
		t.Errorf("%+v", q)
	}
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", "/api/v1/queues/nowhere", nil), http.StatusNotFound, "not-found", "nowhere")
	s.problemOf(s.ask(s.tokens[access.Operator], "POST", "/api/v1/queues/No%20Queue/pause", nil), http.StatusUnprocessableEntity, "invalid-request", "No Queue")
}

// bury makes dead letters, n of kind a and one of kind b that is of a flow's node.
func (s *service) bury(n int) {
	s.t.Helper()
	const insert = `INSERT INTO pelton.job_dead (job_id, kind, queue, priority, max_attempts, attempt, reason, args, metadata, created_at, died_at, attempts)
		SELECT n, $2, 'default', 1, 1, 1, 'exhausted', '{}', $3, now(), now() - n / 3 * interval '1 s', '[]' FROM generate_series($1::bigint, $4::bigint) n`
	for _, args := range [][]any{{1, "a", "{}", n}, {1000, "b", `{"pelton:flow": {"run": 1, "node": "x"}}`, 1000}} {
		if _, err := s.pool.Exec(s.t.Context(), insert, args...); err != nil {
			s.t.Fatal(err)
		}
	}
}

// changes is what became of dead letters.
type changes struct {
	Letters []document.DeadChanged
	LeftOut int `json:"left_out"`
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.bury(12)
	all := walk[document.Dead](s, "/api/v1/dead?limit=5&kind=a")
	seen := map[int64]bool{}
	for _, d := range all {
		seen[d.JobID] = true
	}
	if len(all) != 12 || len(seen) != 12 || !slices.IsSortedFunc(all, func(a, b document.Dead) int { return b.DiedAt.Compare(a.DiedAt) }) {
		t.Errorf("%d letters, %d different", len(all), len(seen))
	}
	if d := do[document.Dead](s, access.Viewer, 200, "GET", "/api/v1/dead/7", nil); d.JobID != 7 || d.Reason != "exhausted" || d.Attempts == nil {
		t.Errorf("%+v", d)
	}
	if c := do[document.DeadChanged](s, access.Operator, 200, "POST", "/api/v1/dead/7/redrive", nil); c.NewJobID == 0 || c.Done != "redriven" {
		t.Errorf("%+v", c)
	} else if j := do[document.JobDetail](s, access.Viewer, 200, "GET", fmt.Sprintf("/api/v1/jobs/%d", c.NewJobID), nil); j.Kind != "a" || j.RedrivenFrom != 7 || len(j.RedrivenAs) != 0 {
		t.Errorf("%+v", j)
	}
	if c := do[document.DeadChanged](s, access.Admin, 200, "POST", "/api/v1/dead/8/discard", nil); c.Done != "discarded" {
		t.Errorf("%+v", c)
	}
	for _, path := range []string{"/api/v1/dead/7/redrive", "/api/v1/dead/8/discard"} {
		s.problemOf(s.ask(s.tokens[access.Admin], "POST", path, nil), http.StatusNotFound, "not-found", "")
	}
	s.problemOf(s.ask(s.tokens[access.Operator], "POST", "/api/v1/dead/1000/redrive", nil), http.StatusConflict, "flow-node", "run 1")
	c := do[changes](s, access.Operator, 200, "POST", "/api/v1/dead/redrive", `{"kinds":["a"],"limit":4}`)
	if len(c.Letters) != 4 || c.LeftOut != 0 || c.Letters[0].NewJobID == 0 {
		t.Errorf("%+v", c)
	}
	until, _ := json.Marshal(time.Now().Add(-time.Hour))
	if c := do[changes](s, access.Operator, 200, "POST", "/api/v1/dead/redrive", `{"until":`+string(until)+`}`); len(c.Letters) != 0 {
		t.Errorf("%+v", c)
	}
	if c := do[changes](s, access.Operator, 200, "POST", "/api/v1/dead/redrive", `{"all":true}`); len(c.Letters) != 6 || c.LeftOut != 1 {
		t.Errorf("%+v", c)
	}
	if c := do[changes](s, access.Admin, 200, "POST", "/api/v1/dead/discard", `{"reason":"exhausted"}`); len(c.Letters) != 1 || c.Letters[0].JobID != 1000 {
		t.Errorf("%+v", c)
	}
	if left := walk[document.Dead](s, "/api/v1/dead?limit=5"); len(left) != 0 {
		t.Errorf("%+v are left", left)
	}
}

func TestExecutors(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO pelton.executor (pid, host, stopped_at, name)
		SELECT n, 'h', CASE WHEN n % 2 = 0 THEN now() END, 'x' FROM generate_series(1, 9) n`); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{"limit=2": 5, "limit=2&ended=true": 9} {
		if got := walk[document.Executor](s, "/api/v1/executors?"+query); len(got) != want || !slices.IsSortedFunc(got, func(a, b document.Executor) int { return int(b.ID - a.ID) }) {
			t.Errorf("%s: %d, want %d", query, len(got), want)
		}
	}
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO pelton.access_session (hash, user_id, expires_at, address) SELECT 'x', min(id), now() - interval '2 days', '' FROM pelton.access_user`); err != nil {
		t.Fatal(err)
	}
	m := do[document.Maintenance](s, access.Admin, 200, "POST", "/api/v1/partitions/maintain", nil)
	if m.Busy || m.Ahead["job"] == 0 {
		t.Errorf("%+v", m)
	}
	told := do[struct{ Items []document.AuditEntry }](s, access.Viewer, 200, "GET", "/api/v1/audit?action=partition.maintain", nil).Items
	if len(told) != 1 || told[0].Actor != "admin" || told[0].Target != "partitions" || string(told[0].After) != `{"deleted":{"access_session":1},"dropped":[]}` {
		t.Errorf("the audit: %+v", told)
	}
	all := walk[document.Partition](s, "/api/v1/partitions?limit=7")
	names := map[string]bool{}
	for _, p := range all {
		names[p.Name] = true
	}
	if len(all) < 60 || len(names) != len(all) {
		t.Errorf("%d partitions, %d different", len(all), len(names))
	}
}

// What the server's database role may not do is told to who asked, and the log says which role lacks the right and what gives it.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, err := s.pool.Exec(t.Context(), `CREATE FUNCTION pelton.deny() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE EXCEPTION 'permission denied for table queue' USING ERRCODE = 'insufficient_privilege';
	END $$; CREATE TRIGGER deny BEFORE INSERT ON pelton.queue FOR EACH ROW EXECUTE FUNCTION pelton.deny()`)
	if err != nil {
		t.Fatal(err)
	}
	s.problemOf(s.ask(s.tokens[access.Operator], "POST", "/api/v1/queues/mail/pause", nil), 503, "missing-rights", "permission denied for table queue; see pelton grants")
	for _, says := range []string{"pelton grants --as admin", "permission denied for table queue", "role=" + s.pool.Config().ConnConfig.User} {
		if log := s.log.String(); !strings.Contains(log, says) {
			t.Errorf("the log does not say %q:\n%s", says, log)
		}
	}
}

// A queue is found, and its pause told, however many others there are.
func TestQueueAmongMany(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO pelton.queue (name, paused_at) SELECT 'q' || n, NULL FROM generate_series(1, 10000) n UNION ALL SELECT 'z', now()`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if q := do[document.Queue](s, access.Viewer, 200, "GET", "/api/v1/queues/z", nil); q.PausedAt == nil {
			t.Errorf("%+v, want it paused", q)
		}
		s.enqueue(map[string]any{"queue": "z"}) // one that is counted, too
	}
	do[any](s, access.Viewer, 404, "GET", "/api/v1/queues/nobody", nil)
}
