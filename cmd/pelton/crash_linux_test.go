package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

// A worker is killed while a job runs whose program has children in and outside its group. Its log up to then is there, the program
// ends with the worker, its children when a worker comes back, and the job runs again.
func TestComingBackEndsWhatAKilledWorkerLeft(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pids, _ := file(t, t.TempDir(), "pids")
	s.launch("server", "--listen", "127.0.0.1:0").started()
	victim := s.launch("worker")
	victim.started()
	id := s.command(fmt.Sprintf(`if [ "$PELTON_ATTEMPT" != 1 ]; then exit 0; fi; note='echo $$ >> %s; exec sleep 1000'
		setsid -f sh -c "$note" < /dev/null > /dev/null 2>&1
		sh -c "$note" < /dev/null > /dev/null 2>&1 &
		echo begun
		exec sh -c "$note"`, pids))
	var list []string
	pgtest.Eventually(t, patience, func() bool {
		text, _ := os.ReadFile(pids)
		list = strings.Fields(string(text))
		return len(list) == 3 && s.try("", "job", "logs", id).out == "begun\n"
	}, "three processes and the log")
	running := func(pid string) bool {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		return err == nil && !strings.Contains(string(stat), ") Z ")
	}
	count := func() (n int) {
		for _, pid := range list {
			if running(pid) {
				n++
			}
		}
		return n
	}
	victim.kill()
	pgtest.Eventually(t, patience, func() bool { return count() == 2 }, "the program itself to end")
	s.launch("worker").started()
	if n := count(); n != 0 {
		t.Errorf("%d processes are left when a worker has come back", n)
	}
	s.waitState(id, "completed")
	if got := s.outcomes(id); got != "lost completed" {
		t.Errorf("the job ended %q, want lost completed", got)
	}
}
