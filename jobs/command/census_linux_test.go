package command

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestSignalIsForOneProcess sends a signal to a process that had the number before.
func TestSignalIsForOneProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, ok := look(cmd.Process.Pid)
	if !ok {
		t.Fatal("the process is not there")
	}
	before := p
	before.start--
	if err := before.signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to the process before: %v", err)
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("the process ended by %v, want SIGTERM", cmd.ProcessState)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	line := func(name, state, threads string) string {
		return "7 (" + name + ") " + state + " 3 4 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 " + threads + " 0 12345 0 0\n"
	}
	for text, want := range map[string]process{
		line("sh", "S", "1"):              {0, 3, 4, 12345, 4194304, false},
		line("a) Z 1 (b\nc", "R", "1"):    {0, 3, 4, 12345, 4194304, false},
		line("sh", "Z", "1"):              {0, 3, 4, 12345, 4194304, true},
		line("first thread", "Z", "2"):    {0, 3, 4, 12345, 4194304, false},
		line("sh", "T", "1") + "and more": {0, 3, 4, 12345, 4194304, false},
	} {
		if p, ok := parseStat([]byte(text)); !ok || p != want {
			t.Errorf("%q: got %+v, want %+v", text, p, want)
		}
	}
	for _, text := range []string{"", "7 (sh) S 3 4", line("sh", "Z", "x")} {
		if p, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q: got %+v", text, p)
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	m := mark{hashOf("here"), "4026531836", 17, 99}
	if got, ok := parseMark(m.String() + ":1f"); !ok || got != m {
		t.Errorf("got %+v, want %+v", got, m)
	}
	for _, text := range []string{"", "a:b:c:d:e", "a:b:1:2", "a:b:1:x:e", "a:b:1:2:3:4"} {
		if got, ok := parseMark(text); ok {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}
