//go:build linux

package command_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/joblog"
)

var errStop = errors.New("stop it")

// stopWhen returns a context that ends with errStop as soon as the file exists.
func stopWhen(t *testing.T, file string) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		pgtest.Eventually(t, patience, func() bool {
			_, err := os.Stat(file)
			return err == nil
		}, "the program did not write %s", file)
		cancel(errStop)
	}()
	t.Cleanup(func() { <-done })
	return ctx
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	args := shell(`trap '' TERM
		sh -c 'trap "" TERM; echo $$ >> pids; sleep 1000 & echo $! >> pids; wait; sleep 1000' &
		(sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! >> pids)
		echo $$ >> pids
		until [ $(wc -l < pids) = 4 ]; do sleep 0.01; done
		: > ready
		sleep 1000; sleep 1000`)
	args.Dir, args.KillGrace = dir, command.Duration(100*time.Millisecond)
	r := b.work(stopWhen(t, filepath.Join(dir, "ready")), command.Config{}, args)
	if !errors.Is(r.err, errStop) {
		t.Fatalf("got %v", r.err)
	}
	list := pids(t, filepath.Join(dir, "pids"))
	for _, pid := range list {
		if !gone(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
	if len(list) != 4 {
		t.Errorf("%d processes, want 4", len(list))
	}
}

func TestStopLetsTheProgramCleanUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	args := shell(`trap 'echo cleaned; exit 0' TERM; : > ready; while :; do sleep 0.01; done`)
	args.Dir, args.KillGrace = dir, command.Duration(time.Minute)
	r := b.work(stopWhen(t, filepath.Join(dir, "ready")), command.Config{}, args)
	if got := r.printed("o"); !errors.Is(r.err, errStop) || got != "cleaned\n" {
		t.Fatalf("printed %q: %v", got, r.err)
	}
	if got := r.printed("l"); !strings.Contains(got, "ending the program") || !strings.Contains(got, "stop it") {
		t.Fatalf("the log says %q", got)
	}
}

// TestGroupHasItsGrace has the program exit at once at SIGTERM, while another process of the group cleans up.
func TestGroupHasItsGrace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	args := shell(`sh -c 'trap "sleep 0.3; : > cleaned; exit" TERM; : > ready; while :; do sleep 0.01; done' > /dev/null 2>&1 &
		trap 'exit 1' TERM
		while :; do sleep 0.01; done`)
	args.Dir, args.KillGrace = dir, command.Duration(time.Minute)
	r := b.work(stopWhen(t, filepath.Join(dir, "ready")), command.Config{}, args)
	if _, err := os.Stat(filepath.Join(dir, "cleaned")); err != nil || !errors.Is(r.err, errStop) {
		t.Fatalf("%v; %v", err, r.err)
	}
}

func TestStoppedBeforeItStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	if r := b.work(ctx, command.Config{}, shell(`echo started`)); !errors.Is(r.err, errStop) || r.printed("") != "" {
		t.Fatalf("printed %q: %v", r.printed(""), r.err)
	}
}

func TestLeftBehindProcessesAreEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	args := shell(`sleep 1000 & echo $! > pids; echo done`)
	args.Dir = dir
	r := b.work(t.Context(), command.Config{WaitDelay: 50 * time.Millisecond}, args).ok()
	if list := pids(t, filepath.Join(dir, "pids")); len(list) != 1 || !gone(list[0]) || r.printed("o") != "done\n" {
		t.Fatalf("%v, printed %q", list, r.printed("o"))
	}
}

func TestClosedLogDoesNotStopTheProgram(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.log.Stop()
	job := &river.Job[command.Args]{JobRow: &rivertype.JobRow{ID: 1}, Args: shell(`head -c 1000000 /dev/zero`)}
	ctx := joblog.NewContext(t.Context(), b.log.Run(1, 1))
	if err := command.NewWorker(command.Config{}).Work(ctx, job); err != nil {
		t.Fatal(err)
	}
}
