package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

// outcomes are those of a job's runs, in order.
func (s *shell) outcomes(id string) string {
	s.t.Helper()
	var list []string
	for _, run := range as[[]any](s.t, s.object("job", "show", id)["runs"]) {
		list = append(list, fmt.Sprint(as[map[string]any](s.t, run)["outcome"]))
	}
	return strings.Join(list, " ")
}

// file is a path that the programs of jobs and the test speak to each other by.
func file(t *testing.T, dir, name string) (path string, wait func()) {
	t.Helper()
	path = filepath.Join(dir, name)
	return path, func() {
		t.Helper()
		pgtest.Eventually(t, patience, func() bool { _, err := os.Stat(path); return err == nil }, "file %s", name)
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A worker is stopped past its lease with two runs under way, another worker does both jobs, and the first one wakes up: what its
// programs did is refused and told, and the one that still runs is ended.
func TestLateResultsAreRefused(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	letGo, _ := file(t, dir, "go")
	ended, waitEnded := file(t, dir, "ended")
	taken, waitTaken := file(t, dir, "taken")
	s.launch("server", "--listen", "127.0.0.1:0").started()
	first := s.launch("worker")
	first.started()
	again := `if [ "$PELTON_ATTEMPT" != 1 ]; then echo again; exit 0; fi; echo begun; `
	ends := s.command(again + fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done; touch %s", letGo, ended))
	stays := s.command(again + fmt.Sprintf("trap 'touch %s; exit 0' TERM; while :; do sleep 0.05; done", taken))
	s.waitState(ends, "running")
	s.waitState(stays, "running")
	pgtest.Eventually(t, patience, func() bool {
		return s.try("", "job", "logs", ends).out+s.try("", "job", "logs", stays).out == "begun\nbegun\n"
	}, "both programs to run")
	first.signal(syscall.SIGSTOP)
	touch(t, letGo)
	waitEnded()
	s.launch("worker").started()
	for _, id := range []string{ends, stays} {
		s.waitState(id, "completed")
	}
	if _, err := os.Stat(taken); err == nil {
		t.Fatal("the stopped worker's program was ended before it woke up: the test shows nothing")
	}
	first.signal(syscall.SIGCONT)
	waitTaken()
	for _, id := range []string{ends, stays} {
		pgtest.Eventually(t, patience, func() bool {
			for line := range strings.Lines(first.err.String()) {
				if strings.Contains(line, "result refused") && strings.Contains(line, id) {
					return true
				}
			}
			return false
		}, "the first worker to say that the result of job %s was refused", id)
		if got := s.outcomes(id); got != "lost completed" {
			t.Errorf("job %s ended %q, want lost completed", id, got)
		}
	}
	first.signal(syscall.SIGTERM)
	if code := first.exit(); code != exitOK {
		t.Errorf("exit code of the first worker is %d", code)
	}
}

// SIGTERM, then SIGKILL while jobs run: what ended in between is recorded, what did not runs again after the lease.
func TestKilledWhileItStops(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	letGo, _ := file(t, t.TempDir(), "go")
	s.launch("server", "--listen", "127.0.0.1:0").started()
	w := s.launch("worker", "--shutdown-timeout", "1h")
	w.started()
	ends := s.command(fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", letGo))
	stays := s.command(`if [ "$PELTON_ATTEMPT" = 1 ]; then exec sleep 1000; fi`)
	s.waitState(ends, "running")
	s.waitState(stays, "running")
	w.signal(syscall.SIGTERM)
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(w.err.String(), "stopping") }, "the stop to begin")
	touch(t, letGo)
	s.waitState(ends, "completed")
	w.kill()
	s.launch("worker").started()
	s.waitState(stays, "completed")
	for id, want := range map[string]string{ends: "completed", stays: "lost completed"} {
		if got := s.outcomes(id); got != want {
			t.Errorf("job %s ended %q, want %q", id, got, want)
		}
	}
}

// A process that starts again where its predecessor was killed, with the same host name and process id, as in a container, is
// another executor: it does not keep the dead one's jobs alive.
func TestRestartUnderTheSameNameKeepsNoJobs(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.launch("server", "--listen", "127.0.0.1:0").started()
	victim := s.launch("worker")
	victim.started()
	id := s.command(`if [ "$PELTON_ATTEMPT" = 1 ]; then exec sleep 1000; fi`)
	s.waitState(id, "running")
	victim.kill()
	next := s.launch("worker")
	name := fmt.Sprint(next.started()["client"])
	// The two differ in their process ids and start times; make them the same in all that names them.
	if _, err := s.pool().Exec(t.Context(), `UPDATE pelton.executor e SET (name, host, pid) =
		(SELECT n.name, n.host, n.pid FROM pelton.executor n WHERE n.name = $1)`, name); err != nil {
		t.Fatal(err)
	}
	s.waitState(id, "completed")
	if got := s.outcomes(id); got != "lost completed" {
		t.Errorf("the job ended %q, want lost completed", got)
	}
	states := map[string]int{}
	for _, executor := range s.lines("executor", "list", "--ended") {
		states[fmt.Sprint(executor["state"], " ", executor["name"])]++
	}
	if states["dead "+name] != 1 || states["alive "+name] != 1 {
		t.Errorf("executors: %v", states)
	}
}
