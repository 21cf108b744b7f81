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
		"schema": "ok ", "duty mover": "ok ", "executors": "bad no process", "partitions of job": "bad 0 made ahead", "alerts": "bad nobody evaluates",
	} {
		if got := states()[check]; !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", check, got, want)
		}
	}
	served := s.launch("server", "--worker", "--listen", "")
	served.started()
	pgtest.Eventually(t, patience, func() bool { return s.try("", "check").code == exitOK }, "all to be well")
	if got := s.lines("check"); len(got) != 13 || got[1]["check"] != "duty keeper" || got[1]["ok"] != true {
		t.Errorf("--json: %v", got)
	}
	pool := s.pool()
	if _, err := pool.Exec(t.Context(), `UPDATE pelton.duty SET failing_since = now() - interval '2 min', failed_at = now(), failed_by = 'x', error = 'disk full',
		done_at = now() + interval '1 h' WHERE duty = 'keeper'`); err != nil {
		t.Fatal(err)
	}
	s.fails(exitFailed, "1 of 13 checks", "check")
	if got := states()["duty keeper"]; !strings.HasPrefix(got, "bad fails since ") || !strings.HasSuffix(got, " at x: disk full") {
		t.Errorf("the keeper is %q", got)
	}
	bad := shellOn(t, strings.Replace(s.url, "/"+pool.Config().ConnConfig.Database, "/nothing_there", 1))
	bad.fails(exitFailed, "nothing_there", "check")
}
