package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/internal/pgtest"
)

// pager is a webhook that remembers notices.
type pager struct {
	*httptest.Server

	mu  sync.Mutex
	got []alert.Notice
}

func newPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var n alert.Notice
		if err := json.Unmarshal(body, &n); err != nil || r.Header.Get(alert.SignatureHeader) == "" {
			t.Errorf("%s: %v, %v", body, err, r.Header)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got = append(p.got, n)
	}))
	t.Cleanup(p.Close)
	return p
}

// wait waits for notices of an event and a rule, and returns how many there are and the last.
func (p *pager) wait(t *testing.T, event, rule string) (n int, last alert.Notice) {
	t.Helper()
	pgtest.Eventually(t, patience, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		n = 0
		for _, one := range p.got {
			if one.Event == event && one.Rule == rule {
				n, last = n+1, one
			}
		}
		return n > 0
	}, "a notice that %s is %s", rule, event)
	return n, last
}

func alertFile(t *testing.T, format string, args ...any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Two servers watch; a worker is killed, and so is one of the servers: the other tells of both, once. Servers send notices without working other jobs.
func TestServersTellOfDeadExecutors(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	to := newPager(t)
	path := alertFile(t, `
name: shop
every: 1s
channels: {pager: {type: webhook, url: %q, secret_env: PAGER_SECRET}}
rules:
  dead: {type: dead_executor, recover_after: 0s, group: 0s, severity: critical}
  letters: {type: dead_letters, group: 0s, recover_after: 0s}
`, to.URL)
	server := func(env ...string) *process {
		args := append([]string{"server", "--alerts", path, "--listen", "", "--json"}, quick...)
		return launch(t, append(env, "DATABASE_URL="+s.url), args...)
	}
	if p := server(); p.exit() != exitUsage || !strings.Contains(p.err.String(), "variable PAGER_SECRET is not set") {
		t.Errorf("without the secret: %s", &p.err)
	}
	first, second := server("PAGER_SECRET=x"), server("PAGER_SECRET=x")
	if info := first.started(); info["alerts"] != path {
		t.Errorf("started: %v", info)
	}
	second.started()
	if sent := s.object("alert", "test", "pager"); sent["state"] != "completed" {
		t.Errorf("test: %v", sent)
	}
	if n, last := to.wait(t, alert.Test, "test"); n != 1 || last.Name != "shop" || fmt.Sprint(last.ID) == "0" {
		t.Errorf("%d notices, %+v", n, last)
	}
	w := s.launch("worker", "--queues", "pay")
	id := fmt.Sprint(w.started()["client"])
	first.kill()
	w.kill()
	pgtest.Eventually(t, patience, func() bool {
		lines := s.lines("alert", "list")
		return len(lines) == 2
	}, "both to be found dead")
	listed := s.ok("alert", "list")
	for _, want := range []string{"firing", "critical", "executor " + id, "died without a goodbye", "pager"} {
		if !strings.Contains(listed, want) {
			t.Errorf("no %q in\n%s", want, listed)
		}
	}
	if _, err := s.pool().Exec(t.Context(), `UPDATE pelton.executor SET died_at = died_at - interval '15 min'`); err != nil { // time passes
		t.Fatal(err)
	}
	told := map[string]int{}
	pgtest.Eventually(t, patience, func() bool {
		to.mu.Lock()
		defer to.mu.Unlock()
		told = map[string]int{}
		for _, n := range to.got {
			for _, about := range n.Subjects {
				if n.Event == alert.Recovered {
					told[about.Subject]++
				}
			}
		}
		return len(told) == 2
	}, "both to have recovered")
	to.mu.Lock()
	for _, n := range to.got {
		for _, about := range n.Subjects {
			told[about.Subject+" "+n.Event]++
		}
	}
	to.mu.Unlock()
	if told[id+" firing"] != 1 || told[id] != 1 || len(told) != 7 { // each of two three times, and the test
		t.Errorf("told: %v", told)
	}
}

func TestAlertCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fails(exitNotFound, `rule "failure_rat": not found; did you mean "failure_rate"?`, "alert", "mute", "failure_rat", "--for", "1h")
	s.fails(exitUsage, "want --for or --until", "alert", "mute", "failure_rate")
	s.fails(exitUsage, "which is past", "alert", "mute", "failure_rate", "--until", "2020-01-01T00:00:00Z")
	s.fails(exitNotFound, `channel "x": not found; there are none`, "alert", "test", "x")
	if m := s.object("alert", "mute", "failure_rate", "pay", "--for", "7d", "--reason", "new version"); m["rule"] != "failure_rate" || m["subject"] != "pay" {
		t.Errorf("%v", m)
	}
	if lines := s.lines("alert", "mutes"); len(lines) != 1 || lines[0]["reason"] != "new version" || lines[0]["created_by"] == "" {
		t.Errorf("%v", lines)
	}
	if out := s.ok("alert", "unmute", "failure_rate", "pay"); out != "rule failure_rate, subject pay is no longer muted\n" {
		t.Errorf("%s", out)
	}
	s.fails(exitNotFound, "mute of rule failure_rate, subject pay: not found", "alert", "unmute", "failure_rate", "pay")
	if r := s.try("", "alert", "rules"); !strings.Contains(r.out, "missed_ticks") || !strings.Contains(r.err, "nobody evaluates the rules (last: never)") {
		t.Errorf("%+v", r)
	}
	if lines := s.lines("audit", "list", "--action", "alert.mute"); len(lines) != 1 || lines[0]["target"] != "failure_rate/pay" {
		t.Errorf("%v", lines)
	}
}

func TestAlertCheck(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, env: map[string]string{}}
	bad := alertFile(t, "channels:\n  a: {type: mial}\nrules:\n  b: {type: lost_jobs, channels: [aa]}\n")
	s.fails(exitUsage, bad+`:2: channel a: type: "mial"; did you mean "mail"?`, "alert", "check", bad)
	s.fails(exitUsage, bad+`:4: rule b: unknown channel "aa"`, "alert", "check", bad)
	s.fails(exitUsage, bad+`:2: channel a`, "server", "--alerts", bad, "--database-url", "postgres://127.0.0.1:1/none")
	good := alertFile(t, "channels:\n  a: {type: slack, url_env: CHAT}\n")
	if r := s.try("", "alert", "check", good); r.code != exitOK || !strings.Contains(r.out, fmt.Sprintf("is right: %d rules, 1 channel\n", len(alert.Types()))) || !strings.Contains(r.err, "variable CHAT is not set") {
		t.Errorf("%+v", r)
	}
	s.fails(exitUsage, "variable CHAT is not set", "alert", "check", good, "--secrets")
}

// Programs of jobs do not find the secrets of channels in their environment.
func TestProgramsDoNotSeeSecretsOfChannels(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	path := alertFile(t, "channels:\n  a: {type: slack, url_env: CHAT}\n")
	p := launch(t, []string{"DATABASE_URL=" + s.url, "CHAT=https://127.0.0.1:1/", "OTHER=seen"},
		append([]string{"server", "--worker", "--alerts", path, "--listen", "", "--json"}, quick...)...)
	p.started()
	id := s.command(`echo "$CHAT$OTHER"`)
	s.waitState(id, "completed")
	if out := s.ok("job", "logs", id); out != "seen\n" {
		t.Errorf("it found %q", out)
	}
	if lines := s.lines("executor", "list"); len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]["queues"]), alert.DefaultQueue) {
		t.Errorf("%v", lines)
	}
}

// A server that watches and tells has the rights of a scheduler and a worker; who mutes and tries, those of an administrator; who looks, an auditor's.
func TestAlertsAsDatabaseRoles(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	server, admin, auditor := s.granted("scheduler,worker"), s.granted("admin"), s.granted("auditor")
	to := newPager(t)
	path := alertFile(t, "every: 1s\nchannels: {pager: {type: webhook, url: %q, secret_env: PAGER_SECRET}}\n", to.URL)
	launch(t, []string{"DATABASE_URL=" + server.url, "PAGER_SECRET=x"}, append([]string{"server", "--alerts", path, "--listen", "", "--json"}, quick...)...).started()
	pgtest.Eventually(t, patience, func() bool {
		return !strings.Contains(auditor.try("", "alert", "rules").err, "nobody evaluates")
	}, "the rules to be evaluated")
	if r := auditor.try("", "alert", "rules"); r.code != exitOK || r.err != "" {
		t.Errorf("%+v", r)
	}
	if sent := admin.object("alert", "test", "pager"); sent["state"] != "completed" {
		t.Errorf("test: %v", sent)
	}
	admin.ok("alert", "mute", "*", "--for", "1h")
	admin.ok("alert", "mute", "*", "--for", "2h")
	admin.ok("alert", "unmute", "*")
	auditor.fails(exitFailed, "permission denied", "alert", "mute", "*", "--for", "1h")
}
