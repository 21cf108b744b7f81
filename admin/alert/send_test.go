package alert_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/internal/mailtest"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
)

// hook is a webhook that remembers what it got, and refuses as often as it is told.
type hook struct {
	*httptest.Server

	mu      sync.Mutex
	refuse  int
	bodies  []string
	headers []http.Header
}

func newHook(t *testing.T, refuse int) *hook {
	t.Helper()
	h := &hook{refuse: refuse}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.bodies, h.headers = append(h.bodies, string(body)), append(h.headers, r.Header)
		if len(h.bodies) <= h.refuse {
			http.Error(w, "not now", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) got() ([]string, []http.Header) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bodies, h.headers
}

// sends starts an executor that sends notices of a file, at once after a failed attempt.
func (h *house) sends(f *alert.File, env alert.Environment, now func() time.Time) *jobs.Client {
	h.t.Helper()
	w, err := alert.NewWorker(f, env)
	must(h.t, err)
	w.Hurry(now, time.Millisecond)
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, w)
	return h.works(h.pool, f.Queue, func(c *jobs.Config) { c.Workers, c.DutiesOff = workers, false })
}

func parse(t *testing.T, format string, args ...any) *alert.File {
	t.Helper()
	f, err := alert.Parse("alerts.yaml", fmt.Appendf(nil, format, args...))
	must(t, err)
	f.Every = 1
	return f
}

// A webhook that refuses is asked again, until it has got the notice: with the same id, and signed.
func TestWebhookIsAskedAgain(t *testing.T) {
	t.Parallel()
	pager := newHook(t, 2)
	f := parse(t, `
name: prod
channels: {pager: {type: webhook, url: %q, secret_env: SECRET}}
rules: {slow: {type: oldest_age, over: 1s, for: 0s, group: 0s, recover_after: 0s, severity: critical}}
`, pager.URL)
	f.Rules[0].OverAge = 1
	h := newHouse(t, f)
	h.sends(f, alert.Environment{Variable: func(name string) string { return "value of " + name }}, time.Now)
	h.insert(1, false, river.InsertOpts{Queue: "pay"})
	h.expect("firing pager slow: queue pay: ")
	pgtest.Eventually(t, patience, func() bool { bodies, _ := pager.got(); return len(bodies) == 3 }, "three tries")
	bodies, headers := pager.got()
	if bodies[0] != bodies[2] {
		t.Errorf("another try sends\n%s\nafter\n%s", bodies[2], bodies[0])
	}
	var n alert.Notice
	must(t, json.Unmarshal([]byte(bodies[2]), &n))
	if n.ID == 0 || n.Event != alert.Firing || n.Name != "prod" || n.Rule != "slow" || n.Severity != alert.Critical || len(n.Subjects) != 1 ||
		n.Subjects[0].Subject != "pay" || n.Subjects[0].Since.IsZero() || n.Subjects[0].Value <= 0 || n.Late != 0 {
		t.Errorf("it got %s", bodies[2])
	}
	at, signature, _ := strings.Cut(strings.TrimPrefix(headers[2].Get(alert.SignatureHeader), "t="), ",v1=")
	mac := hmac.New(sha256.New, []byte("value of SECRET"))
	mac.Write([]byte(at + "." + bodies[2]))
	if signature != hex.EncodeToString(mac.Sum(nil)) || headers[2].Get("Content-Type") != "application/json" {
		t.Errorf("headers are %v", headers[2])
	}
	pgtest.Eventually(t, patience, func() bool {
		job, err := h.queue.JobGet(t.Context(), n.ID)
		return err == nil && job.State == "completed" && job.Attempt == 3 && job.Queue == alert.DefaultQueue && job.Priority == 1
	}, "the job to be completed")
}

func TestTestNoticeByMail(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	f := parse(t, `
name: prod
channels: {ops: {type: mail, to: [a@example.org, b@example.org], from: pelton@example.org, smtp: "smtp://%s"}}
`, mailtest.Serve(t, got))
	h := newHouse(t, f)
	h.evaluate()
	h.sends(f, alert.Environment{}, time.Now)
	if _, err := h.store.Test(t.Context(), "ann", h.queue, "opps"); err == nil || !strings.Contains(err.Error(), `did you mean "ops"?`) {
		t.Errorf("a channel that is not there: %v", err)
	}
	_, err := h.store.Test(t.Context(), "ann", h.queue, "ops")
	must(t, err)
	text := <-got
	if !containsAll(text, "a@example.org", "b@example.org", "Subject: [prod test] test: if you read this, the channel works", "severity  info") {
		t.Errorf("the mail is\n%s", text)
	}
	var audited int
	must(t, h.pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.audit a JOIN pelton.job j ON j.id = (a.after->>'job')::bigint AND j.kind = $1
		WHERE a.action = 'alert.test' AND a.actor = 'ann' AND a.target = 'channel ops'`, alert.Kind).Scan(&audited))
	if audited != 1 {
		t.Errorf("%d entries of the audit tell of the test, want 1", audited)
	}
}

// What is sent long after it was found says so, and texts cannot mention anybody in a chat.
func TestLateNoticeInAChat(t *testing.T) {
	t.Parallel()
	chat := newHook(t, 0)
	f := parse(t, `
name: <prod>
channels: {chat: {type: slack, url_env: SLACK}}
rules: {slow: {type: oldest_age, over: 1s, for: 0s, group: 0s}}
`)
	f.Rules[0].OverAge = 1
	h := newHouse(t, f)
	h.insert(1, false, river.InsertOpts{Queue: "a"})
	h.insert(1, false, river.InsertOpts{Queue: "b"})
	h.expect("firing chat slow: 2 at once, queue a the first")
	h.sends(f, alert.Environment{Variable: func(string) string { return chat.URL }}, func() time.Time { return time.Now().Add(47 * time.Minute) })
	pgtest.Eventually(t, patience, func() bool { bodies, _ := chat.got(); return len(bodies) == 1 }, "the message")
	bodies, _ := chat.got()
	var message map[string]string
	must(t, json.Unmarshal([]byte(bodies[0]), &message))
	if text := message["text"]; len(message) != 1 || !containsAll(text, "[&lt;prod&gt;] firing: slow: 2 at once", "\n• queue a: the oldest of 1 ready job",
		"\n• queue b: ", "(47m late: how things were at ") {
		t.Errorf("the message is %s", bodies[0])
	}
}

// A notice for a channel that this process does not know waits for one that does.
func TestChannelOfAnotherFile(t *testing.T) {
	t.Parallel()
	pager := newHook(t, 0)
	f := parse(t, `channels: {pager: {type: webhook, url: %q}}`, pager.URL)
	h := newHouse(t, f)
	h.evaluate()
	other := h.sends(parse(t, `{}`), alert.Environment{}, time.Now)
	id, err := h.store.Test(t.Context(), "ann", h.queue, "pager")
	must(t, err)
	pgtest.Eventually(t, patience, func() bool {
		job, err := h.queue.JobGet(t.Context(), id)
		return err == nil && len(job.Errors) > 0 && strings.Contains(job.Errors[0].Error, `channel "pager": alerts.yaml of this process has none of that name`)
	}, "an attempt to fail")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, other.Stop(ctx))
	if bodies, _ := pager.got(); len(bodies) != 0 {
		t.Errorf("it was sent: %q", bodies)
	}
}
