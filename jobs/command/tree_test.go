//go:build linux

package command_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/command"
)

// exists tells whether a number is a process's; a zombie's is.
func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }

// descendants is a script that starts all sorts of them; each writes its number to the file pids.
const descendants = `
	note='echo $$ >> pids; exec sleep 1000'
	sh -c "$note" &
	(sh -c "$note" > /dev/null 2>&1 &)
	setsid sh -c "trap '' TERM; echo \$\$ >> pids; while :; do sleep 0.1; done" > /dev/null 2>&1 < /dev/null &
	setsid sh -c "sh -c '$note' > /dev/null 2>&1 < /dev/null & exit"
	setsid -f env -i PATH="$PATH" sh -c "$note" > /dev/null 2>&1 < /dev/null
	env -i PATH="$PATH" setsid sh -c "$note" > /dev/null 2>&1 < /dev/null &
	sh -c 'echo $$ >> pids; kill -STOP $$; sleep 1000' &
	setsid -f sh -c 'trap "" TERM; echo $$ >> pids; kill -STOP $$; sleep 1000' > /dev/null 2>&1
	until [ "$(wc -l < pids)" = 8 ]; do sleep 0.01; done
	: > ready
`

func TestStopEndsWhatLeftTheGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	args := shell(`trap '' TERM` + descendants + `sleep 1000; sleep 1000`)
	args.Dir, args.KillGrace = dir, command.Duration(200*time.Millisecond)
	r := b.work(stopWhen(t, filepath.Join(dir, "ready")), command.Config{}, args)
	if !errors.Is(r.err, errStop) {
		t.Fatalf("got %v", r.err)
	}
	nothingIsLeft(t, filepath.Join(dir, "pids"))
}

func TestLeftBehindOutsideTheGroupIsEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	args := shell(descendants + `echo done`)
	args.Dir, args.KillGrace = dir, command.Duration(200*time.Millisecond)
	r := b.work(t.Context(), command.Config{WaitDelay: 50 * time.Millisecond}, args).ok()
	nothingIsLeft(t, filepath.Join(dir, "pids"))
	if r.printed("o") != "done\n" {
		t.Errorf("printed %q", r.printed("o"))
	}
}

// nothingIsLeft looks for the processes whose numbers are in a file.
func nothingIsLeft(t *testing.T, file string) {
	t.Helper()
	for _, pid := range pids(t, file) {
		if exists(pid) {
			stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			t.Errorf("process %d is left: %s", pid, stat)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestDaemonCleansUp has a daemon that needs a while after SIGTERM, and gets it.
func TestDaemonCleansUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	args := shell(`setsid -f sh -c 'trap "sleep 0.3; : > cleaned; exit" TERM; : > ready; while :; do sleep 0.01; done' > /dev/null 2>&1
		sleep 1000`)
	args.Dir, args.KillGrace = dir, command.Duration(time.Minute)
	r := b.work(stopWhen(t, filepath.Join(dir, "ready")), command.Config{}, args)
	if _, err := os.Stat(filepath.Join(dir, "cleaned")); err != nil || !errors.Is(r.err, errStop) {
		t.Fatalf("%v; %v", err, r.err)
	}
}

// TestForkStorm has processes that fork all the time, each into a session of its own, a hundred at once, and one that is another
// process at each moment.
func TestForkStorm(t *testing.T) { //nolint:paralleltest // a fork of another test could hold a script open for writing
	b := newBench(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"storm": "#!/bin/sh\ntrap '' TERM\nfor i in 1 2 3 4 5 6 7 8 9 10; do setsid sh -c \"trap '' TERM; sleep 1\" & sleep 0.1; done\n",
		"hop":   "#!/bin/sh\ntrap '' TERM\n[ $1 = 30 ] && : > ready\nsetsid ./hop $(($1+1)) &\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	args := shell(`trap '' TERM; ./hop 0 & while [ -e storm ]; do setsid ./storm & sleep 0.1; done`)
	args.Env = map[string]string{"STORM": dir}
	args.Dir, args.KillGrace = dir, command.Duration(100*time.Millisecond)
	r := b.work(stopWhen(t, filepath.Join(dir, "ready")), command.Config{}, args)
	if !errors.Is(r.err, errStop) {
		t.Fatalf("got %v", r.err)
	}
	if left := carrying(t, "STORM="+dir); len(left) > 0 {
		t.Errorf("%d processes are left: %v", len(left), left)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// carrying are the processes with a variable.
func carrying(t *testing.T, entry string) (list []int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		environ, err := os.ReadFile(name)
		if err == nil && slices.Contains(strings.Split(string(environ), "\x00"), entry) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			list = append(list, pid)
		}
	}
	return list
}

// TestEndedOrphansAreReaped while the program that left them runs on, also those that nobody could see alive.
func TestEndedOrphansAreReaped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	args := shell(`i=0; while [ $i -lt 10 ]; do
			setsid -f sh -c 'echo $$ >> pids'; (sh -c 'echo $$ >> pids' &)
			setsid -f env -i sh -c 'echo $$ >> pids'
			i=$((i+1))
		done
		until [ "$(wc -l < pids)" = 30 ]; do sleep 0.01; done
		: > ready; sleep 1000`)
	args.Dir = dir
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel(errStop)
		waitFile(t, filepath.Join(dir, "ready"))
		for _, pid := range pids(t, filepath.Join(dir, "pids")) {
			pgtest.Eventually(t, patience, func() bool { return !exists(pid) }, "process %d is a zombie", pid)
		}
	}()
	if r := b.work(ctx, command.Config{}, args); !errors.Is(r.err, errStop) {
		t.Errorf("got %v", r.err)
	}
	<-done
}

// TestOtherChildrenAreLeftAlone has two children of this process that are no programs of jobs: one has ended and waits to be
// waited for, one runs in a session of its own, while a run reaps its orphans and ends what it left.
func TestOtherChildrenAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	start := func(args ...string) *exec.Cmd {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	ended, running := start("sh", "-c", "exit 3"), start("sleep", "1000")
	pgtest.Eventually(t, patience, func() bool { return gone(ended.Process.Pid) }, "the other child to end")
	dir := t.TempDir()
	args := shell(descendants)
	args.Dir, args.KillGrace = dir, command.Duration(100*time.Millisecond)
	b.work(t.Context(), command.Config{WaitDelay: 50 * time.Millisecond}, args).ok()
	var exit *exec.ExitError
	if err := ended.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the other child: %v, want exit status 3", err)
	}
	if gone(running.Process.Pid) {
		t.Error("the other running child was ended")
	}
	_ = running.Process.Kill()
	_ = running.Wait()
}

// TestRunsDoNotEndEachOthersProcesses ends one run while another has left its group everywhere.
func TestRunsDoNotEndEachOthersProcesses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	staying := shell(descendants + `until [ -e go ]; do sleep 0.01; done`)
	staying.Dir, staying.KillGrace = dir, command.Duration(100*time.Millisecond)
	done := make(chan *run)
	go func() { done <- b.work(t.Context(), command.Config{WaitDelay: 50 * time.Millisecond}, staying) }()
	waitFile(t, filepath.Join(dir, "ready"))
	ending := shell(descendants)
	ending.Dir, ending.KillGrace = t.TempDir(), command.Duration(100*time.Millisecond)
	b.work(t.Context(), command.Config{WaitDelay: 50 * time.Millisecond}, ending).ok()
	for _, pid := range pids(t, filepath.Join(dir, "pids")) {
		if gone(pid) {
			t.Errorf("process %d of the other run was ended", pid)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	(<-done).ok()
}
