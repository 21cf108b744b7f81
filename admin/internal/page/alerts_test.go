package page_test

import (
	"html"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

// furnishAlerts puts a file of alerts in force, and some of them fire.
func furnishAlerts(t *testing.T, s *pagetest.Site) *alert.Store {
	t.Helper()
	store, err := alert.NewStore(s.Pool, "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := alert.Parse("/etc/pelton/alerts.yaml", []byte(`
channels:
  ops: {type: mail, to: [ops@example.com], from: pelton@example.com}
rules:
  failing: {type: failure_rate, queues: [payments], kinds: ["a, b", "null", "true"], over: 12.5%, until: 5%, for: 2m, severity: critical}
  waiting: {type: oldest_age, over: 10m}
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Publish(t.Context(), "test", f); err != nil {
		t.Fatal(err)
	}
	s.Exec(`INSERT INTO pelton.alert_state (rule, subject, bad_since, firing_since, noticed_at, notices, value, text, told) VALUES
		('failing', 'payments', now() - interval '1 h', now() - interval '50 min', now() - interval '50 min', 1, 0.23, '23 % of 140 runs in the last 5m failed', '{ops}'),
		('waiting', 'mail', now() - interval '20 min', now(), NULL, 0, 900, 'the oldest job has waited for 15m', '{}'),
		('waiting', 'reports', now(), NULL, NULL, 0, 650, 'the oldest job has waited for 10m', '{}')`)
	return store
}

// The overview tells of duties that nobody does, and of those that fail, with the reason.
func TestOverviewTellsOfDuties(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	s.Exec(`UPDATE pelton.duty SET due_at = now() - interval '5 min', done_at = '2026-03-01 12:00Z' WHERE duty = 'mover'`)
	s.Exec(`UPDATE pelton.duty SET failing_since = now() - interval '2 min', failed_at = now(), failed_by = $1, error = $1, done_at = now() - interval '5 min', due_at = now() - interval '2 min'
		WHERE duty = 'keeper'`, evil)
	s.Exec(`UPDATE pelton.duty SET failing_since = now() - interval '2 min', failed_at = now(), failed_by = 'two', error = 'x', done_at = now(), due_at = now()
		WHERE duty = 'sweeper'`)
	s.Exec(`UPDATE pelton.duty SET failing_since = now() - interval '2 min', failed_at = now() - interval '4 min', failed_by = 'gone', error = 'x', done_at = now(), due_at = now()
		WHERE duty = 'reaper'`)
	a := s.As("viewer").Want(200, "/", "Duty <bdi>mover</bdi> was last done at", "2026-03-01", "Duty <bdi>keeper</bdi> fails since", "Duty <bdi>sweeper</bdi> fails since",
		"at <bdi>two</bdi>: <bdi>x</bdi> (others do it in time)")
	checkEscaped(t, "the overview", a)
	if strings.Contains(a.Body, "reaper") {
		t.Error("it tells of a duty that is done")
	}
}

// rulesFile reads the file of rules that the page offers to begin with, which has at least these.
func rulesFile(t *testing.T, body string, names ...string) []alert.Rule {
	t.Helper()
	_, text, _ := strings.Cut(body, `<pre id="rulesfile">`)
	text, _, _ = strings.Cut(text, "</pre>")
	text = html.UnescapeString(text)
	if strings.Contains(text, "[ops]") {
		text += "channels: {ops: {type: mail, to: [a@example.com]}}\n"
	}
	f, err := alert.Parse("page", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, name := range names {
		if !slices.ContainsFunc(f.Rules, func(r alert.Rule) bool { return r.Name == name }) {
			t.Errorf("there is no rule %s in\n%s", name, text)
		}
	}
	return f.Rules
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	built := s.As("viewer").Want(200, "/alerts", "There is no file yet", "Nothing is bad", "Those that are built in", "Nobody evaluates the rules", "nobody is told", "lost_jobs", "min_runs: 20")
	if rules := rulesFile(t, built.Body, "lost_jobs"); !reflect.DeepEqual(rules, alert.BuiltIn().Rules) {
		t.Errorf("the rules that are built in, as the page writes them:\n%+v, want\n%+v", rules, alert.BuiltIn().Rules)
	}
	if a := s.As("viewer").Want(200, "/"); strings.Contains(a.Body, "Alerts fire") {
		t.Error("the overview tells of alerts")
	}
	store := furnishAlerts(t, s)
	viewer, operator := s.As("viewer"), s.As("operator")
	a := viewer.Want(200, "/alerts", "firing", "critical", "queue payments", "23 % of 140 runs", "to <bdi>ops</bdi>", "pending", "queue reports",
		"/etc/pelton/alerts.yaml", "queues: [payments]", "kinds: [&#34;a, b&#34;, &#34;null&#34;, true]", "over: 12.5%", "until: 5%", "for: 2m", "over: 10m", "Nothing is muted")
	status, err := store.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	written := rulesFile(t, a.Body, "failing", "waiting")
	for i, w := range status.Rules {
		if !reflect.DeepEqual(written[i], w.Rule) {
			t.Errorf("a rule in force, as the page writes it:\n%+v, want\n%+v", written[i], w.Rule)
		}
	}
	if strings.Contains(a.Body, "<button>") || strings.Contains(a.Body, "Mute...") {
		t.Error("a viewer is offered what would be refused")
	}
	operator.Want(200, "/alerts?rule=waiting&subject=mail", "<option selected>waiting</option>", `value="mail"`, `href="/alerts?rule=waiting&amp;subject=reports#mute"`)
	checkEscaped(t, "the form", operator.Want(200, "/alerts?rule="+url.QueryEscape(evil)+"&subject="+url.QueryEscape(evil)))

	mute := func(rule, subject, length string) url.Values {
		return url.Values{"rule": {rule}, "subject": {subject}, "for": {length}, "reason": {evil}}
	}
	events := viewer.Stream("/live?part=/live/alerts")
	operator.WantPost(303, "/alerts/mute", mute("failing", "payments", "2h"), "Rule failing, subject payments, is muted until", "by <bdi>operator</bdi>")
	checkEscaped(t, "a reason", viewer.Want(200, "/alerts", "operator"))
	limit := time.After(pagetest.Patience)
	for muted := false; !muted; {
		select {
		case e, open := <-events:
			if !open {
				t.Fatal("the stream ended")
			}
			muted = strings.Contains(e.Data, "<bdi>operator</bdi>")
		case <-limit:
			t.Fatal("the mute is not shown to who looks")
		}
	}
	operator.WantPost(303, "/alerts/mute", mute("*", "", "7d"), "Every rule is muted until")
	operator.WantPost(404, "/alerts/mute", mute("nothing", "", "2h"), "nothing")
	for _, form := range []url.Values{mute("failing", "", "1y"), mute("failing", "", ""), mute("", "", "2h"), mute("failing", "a\x00", "2h"), mute("failing", strings.Repeat("x", 501), "2h")} {
		operator.WantPost(400, "/alerts/mute", form)
	}
	which := url.Values{"rule": {"failing"}, "subject": {"payments"}}
	operator.WantPost(303, "/alerts/unmute", which, "Rule failing, subject payments, is muted no more.")
	operator.WantPost(404, "/alerts/unmute", which)
	operator.WantPost(400, "/alerts/unmute", nil)
	operator.WantPost(303, "/alerts/unmute", url.Values{"rule": {"*"}, "subject": {"*"}}, "Nothing is muted")
	operator.WantPost(303, "/alerts/test", url.Values{"channel": {"ops"}}, "This job sends the notice", "pelton_alert")
	operator.WantPost(404, "/alerts/test", url.Values{"channel": {"nobody"}})
	viewer.Want(200, "/audit?action=alert.mute", `href="/alerts#mutes"`, "operator")
	viewer.Want(403, "/live/alerts/mutable")
	s.As("etl").Want(403, "/alerts")

	// What others wrote is text.
	s.Exec(`UPDATE pelton.alert_state SET text = $1, subject = $1, told = ARRAY[$1::text] WHERE rule = 'failing'`, evil)
	s.Exec(`INSERT INTO pelton.alert_rule (rule, fault, fault_at) VALUES ('failing', $1, now())`, evil)
	s.Exec(`UPDATE pelton.alert_turn SET source = $1, evaluated_by = $1, evaluated_at = now()`, evil)
	checkEscaped(t, "alerts", operator.Want(200, "/alerts", "cannot be read"))
	s.Exec(`UPDATE pelton.alert_state SET rule = $1 WHERE rule = 'failing'`, evil)
	checkEscaped(t, "alerts of a rule that is gone", operator.Want(200, "/alerts"))
	checkEscaped(t, "the overview", operator.Want(200, "/?window=day", "Alerts fire", "waiting"))
}
