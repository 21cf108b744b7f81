package main

import (
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

// pelton check says what is wrong while nobody is there, and that all is well while somebody is.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fails(exitFailed, "checks say that something is wrong", "check")
	states := func() map[string]string {
		t.Helper()
		found := map[string]string{}
		for _, f := range strings.Split(strings.TrimSpace(s.try("", "check").out), "\n")[1:] {
			check, rest, _ := strings.Cut(f, "  ")
			found[check] = strings.Join(strings.Fields(rest), " ")
		}
		return found
	}
	for check, want := range map[string]string{
		"schema": "ok ", "duty mover": "ok ", "executors": "bad no process", "partitions of job": "ok 0 made ahead: the keeper", "alerts": "bad nobody evaluates",
	} {
		if got := states()[check]; !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", check, got, want)
		}
	}
	pool := s.pool()
	set := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	// They should have been made by now; somebody was there, and did not make them.
	for _, sql := range []string{
		`UPDATE pelton.duty SET due_at = now() - interval '4 min' WHERE duty = 'keeper'`,
		`UPDATE pelton.duty SET due_at = now() + interval '1 min', done_by = 'x' WHERE duty = 'keeper'`,
	} {
		set(sql)
		if got := states()["partitions of job"]; !strings.HasPrefix(got, "bad 0 made ahead, want enough for 7 days") {
			t.Errorf("after %s, partitions of job are %q", sql, got)
		}
	}
	if got := states()["queues"]; got != "ok none is paused" {
		t.Errorf("queues are %q", got)
	}
	served := s.launch("server", "--worker", "--listen", "")
	served.started()
	pgtest.Eventually(t, patience, func() bool { return s.try("", "check").code == exitOK }, "all to be well")
	if got := s.lines("check"); len(got) != 14 || got[1]["check"] != "duty keeper" || got[1]["ok"] != true {
		t.Errorf("--json: %v", got)
	}
	// A process fails at what another does; pauses are what somebody wanted.
	set(`UPDATE pelton.duty SET failing_since = now() - interval '2 min', failed_at = now(), failed_by = 'x', error = 'disk full' WHERE duty = 'keeper'`)
	s.ok("queue", "pause", "etl")
	s.ok("check")
	if got := states()["duty keeper"]; !strings.HasPrefix(got, "ok done at ") || !strings.Contains(got, ", though x fails at it since ") || !strings.HasSuffix(got, ": disk full") {
		t.Errorf("the keeper is %q", got)
	}
	if got := states()["queues"]; got != "ok paused: etl" {
		t.Errorf("queues are %q", got)
	}
	s.ok("queue", "pause", "*")
	if got := states()["queues"]; !strings.HasPrefix(got, "ok all are paused since ") {
		t.Errorf("queues are %q", got)
	}
	// Nobody does it any more.
	set(`UPDATE pelton.duty SET done_at = now() - interval '5 min', due_at = now() - interval '2 min', failed_at = now() WHERE duty = 'keeper'`)
	s.fails(exitFailed, "1 of 14 checks", "check")
	if got := states()["duty keeper"]; !strings.HasPrefix(got, "bad fails since ") || !strings.HasSuffix(got, " at x: disk full") {
		t.Errorf("the keeper is %q", got)
	}
	bad := shellOn(t, strings.Replace(s.url, "/"+pool.Config().ConnConfig.Database, "/nothing_there", 1))
	bad.fails(exitFailed, "nothing_there", "check")
}
