//go:build linux

package command_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/peltonq/pelton/jobs/command"
)

const realtimeLimit = 15 // RLIMIT_RTTIME

func softLimit(t *testing.T, pid int) uint64 {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, realtimeLimit, nil, &limit); err != nil {
		t.Fatal(err)
	}
	return limit.Cur
}

// TestEachProgramIsBornWithATag has programs say at once what they found, many at the same time. This process is as before.
func TestEachProgramIsBornWithATag(t *testing.T) { //nolint:paralleltest // another test's start gives this process a tag for a moment
	b := newBench(t)
	before := softLimit(t, 0)
	tags := map[string]bool{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 5 {
				r := b.work(t.Context(), command.Config{}, command.Args{Command: command.Argv("grep", "realtime timeout", "/proc/self/limits")})
				fields := strings.Fields(r.printed("o"))
				mu.Lock()
				tags[fields[3]] = true
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if tags["unlimited"] || len(tags) != 40 {
		t.Errorf("40 programs found %d limits: %v", len(tags), tags)
	}
	if after := softLimit(t, 0); after != before {
		t.Errorf("this process's limit is %d, was %d", after, before)
	}
}

// TestQuickDaemonsDoNotEscape starts hundreds of programs whose first act is to leave parent, group, session and environment, while
// all processors are busy.
func TestQuickDaemonsDoNotEscape(t *testing.T) { //nolint:paralleltest // it takes the machine for itself
	b := newBench(t)
	busy, idle := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for n := 0; busy.Err() == nil; n++ { //nolint:revive // to be busy is all
			}
		})
	}
	seconds := fmt.Sprint(1_000_000 + os.Getpid()) // nobody else sleeps so long
	args := shell("env -i setsid setsid sleep " + seconds + " < /dev/null > /dev/null 2>&1 &")
	args.KillGrace = command.Duration(100 * time.Millisecond)
	var programs sync.WaitGroup
	for range 8 {
		programs.Go(func() {
			for range 40 {
				if r := b.work(t.Context(), command.Config{}, args); r.err != nil {
					t.Error(r.err)
				}
			}
		})
	}
	programs.Wait()
	idle()
	group.Wait()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range commands {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), seconds) {
			t.Errorf("left is %s, %q", filepath.Dir(name), line)
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// TestStrangersWithATagAreLeftAlone has other code of this process start programs while those of jobs are started, each in a session
// of its own, until some of them have got the tag of a job's program.
func TestStrangersWithATagAreLeftAlone(t *testing.T) { //nolint:paralleltest // only its own programs shall be started
	b := newBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found, enough := 0, make(chan struct{})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
					b.work(t.Context(), command.Config{}, shell("setsid -f sleep 0.01 > /dev/null 2>&1"))
				}
			}
		})
	}
	var strangers []*exec.Cmd
	for found < 5 && ctx.Err() == nil {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if limit := softLimit(t, cmd.Process.Pid); limit != unix.RLIM_INFINITY {
			found++
			strangers = append(strangers, cmd)
			continue
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	close(enough)
	group.Wait()
	if found == 0 {
		t.Fatal("no stranger was started in the moment of a program's start")
	}
	for _, cmd := range strangers {
		if gone(cmd.Process.Pid) {
			t.Errorf("stranger %d was ended", cmd.Process.Pid)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
