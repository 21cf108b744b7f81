//go:build linux

package command_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// These make the test program an executor of one script, for tests that kill it or measure it.
const (
	executorDSN    = "PELTON_TEST_COMMAND_DSN"
	executorRealm  = "PELTON_TEST_COMMAND_REALM"
	executorScript = "PELTON_TEST_COMMAND_SCRIPT"
)

// beExecutor prints the largest size its memory had, in KB.
func beExecutor(dsn string) {
	ctx := context.Background()
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	pool, err := pgxpool.New(ctx, dsn)
	fail(err)
	log := joblog.NewWriter(pool, schema.DefaultName, joblog.Config{FlushInterval: 5 * time.Millisecond})
	log.Start(ctx)
	job := &river.Job[command.Args]{JobRow: &rivertype.JobRow{ID: 1}, Args: shell(os.Getenv(executorScript))}
	run := log.Run(1, 1)
	fail(command.NewWorker(command.Config{Realm: os.Getenv(executorRealm)}).Work(joblog.NewContext(ctx, run), job))
	fail(run.Close(ctx))
	status, err := os.ReadFile("/proc/self/status")
	fail(err)
	_, high, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Println(strings.Fields(high)[0])
}

// executor is the test program as an executor.
type executor struct {
	t   *testing.T
	cmd *exec.Cmd
	dsn string
	out bytes.Buffer
}

func startExecutor(t *testing.T, realm, dir, script string) *executor {
	t.Helper()
	e := &executor{t: t, cmd: exec.Command(os.Args[0]), dsn: schematest.DSN(t)}
	e.cmd.Dir = dir
	e.cmd.Env = append(os.Environ(), executorDSN+"="+e.dsn, executorRealm+"="+realm, executorScript+"="+script)
	e.cmd.Stdout, e.cmd.Stderr = &e.out, os.Stderr
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.cmd.Process.Kill()
		_ = e.cmd.Wait()
		command.EndLeftoversNow(realm, 0)
	})
	return e
}

func (e *executor) kill() {
	e.t.Helper()
	if err := e.cmd.Process.Kill(); err != nil {
		e.t.Fatal(err)
	}
	_ = e.cmd.Wait()
}

func (e *executor) log(opts joblog.Options) string {
	e.t.Helper()
	var b strings.Builder
	if err := joblog.Copy(&b, joblog.Read(e.t.Context(), pgtest.Pool(e.t, e.dsn), schema.DefaultName, 1, 1, opts)); err != nil {
		e.t.Fatal(err)
	}
	return b.String()
}

func TestKilledExecutorTakesItsProgramAlong(t *testing.T) {
	t.Parallel()
	e := startExecutor(t, t.Name(), t.TempDir(), `echo $$; exec sleep 1000`)
	pid := 0
	pgtest.Eventually(t, patience, func() bool {
		pid, _ = strconv.Atoi(strings.TrimSpace(e.log(joblog.Options{Streams: "o"})))
		return pid > 0
	}, "the program's log is not there")
	if gone(pid) {
		t.Fatal("the program does not run")
	}
	e.kill()
	pgtest.Eventually(t, patience, func() bool { return gone(pid) }, "process %d outlives its executor", pid)
}

// escape is a script that starts processes outside its group, one of which ignores SIGTERM, and waits.
const escape = `
	setsid sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 1; done' > /dev/null 2>&1 &
	setsid sh -c 'sh -c "echo \$\$ >> pids; exec sleep 1000" > /dev/null 2>&1 &'
	until [ "$(wc -l < pids)" = 2 ]; do sleep 0.01; done
	: > ready
	exec sleep 1000`

// waitFile waits for a file that a script makes.
func waitFile(t *testing.T, path string) {
	t.Helper()
	pgtest.Eventually(t, patience, func() bool { _, err := os.Stat(path); return err == nil }, "no file %s", path)
}

// TestNextWorkerEndsLeftovers kills one of two executors of a realm. What it leaves is ended by who comes next in that realm, and
// only that.
func TestNextWorkerEndsLeftovers(t *testing.T) {
	t.Parallel()
	realm := t.Name()
	dirs := map[string]string{"killed": t.TempDir(), "live": t.TempDir(), "elsewhere": t.TempDir()}
	killed := startExecutor(t, realm, dirs["killed"], escape)
	startExecutor(t, realm, dirs["live"], escape)
	elsewhere := startExecutor(t, realm+"2", dirs["elsewhere"], escape)
	list := map[string][]int{}
	for name, dir := range dirs {
		waitFile(t, filepath.Join(dir, "ready"))
		list[name] = pids(t, filepath.Join(dir, "pids"))
	}
	killed.kill()
	elsewhere.kill()
	for name := range dirs {
		for _, pid := range list[name] {
			if gone(pid) {
				t.Fatalf("%s: process %d has not survived: the test shows nothing", name, pid)
			}
		}
	}
	if n := command.EndLeftoversNow(realm, 100*time.Millisecond); n < 2 {
		t.Errorf("%d leftovers, want 2 and their children", n)
	}
	for name := range dirs {
		for _, pid := range list[name] {
			if ended := gone(pid); ended != (name == "killed") {
				t.Errorf("%s: process %d ended: %v", name, pid, ended)
			}
		}
	}
	// An executor ends them before its own first program starts.
	startExecutor(t, realm+"2", t.TempDir(), `exec sleep 1000`)
	for _, pid := range list["elsewhere"] {
		pgtest.Eventually(t, patience, func() bool { return gone(pid) }, "process %d outlives the next executor", pid)
	}
}

// TestHugeOutput prints 100 MB of bytes that are no text, without a line end.
func TestHugeOutput(t *testing.T) {
	t.Parallel()
	e := startExecutor(t, t.Name(), t.TempDir(), `printf begin; head -c 104857600 /dev/zero | tr '\0' '\377'; printf end`)
	if err := e.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	high, err := strconv.Atoi(strings.TrimSpace(e.out.String()))
	if err != nil || high > 100<<10 {
		t.Errorf("the executor's memory reached %q KB, want less than 100 MB: %v", e.out.String(), err)
	}
	t.Logf("memory reached %d MB", high>>10)
	log := e.log(joblog.Options{})
	if !strings.HasPrefix(log, "begin\xff") || !strings.HasSuffix(log, "\xffend") || len(log) > 30<<20 {
		t.Errorf("the log has %d bytes, from %q to %q", len(log), log[:min(10, len(log))], log[max(0, len(log)-10):])
	}
}
