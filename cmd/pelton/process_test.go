package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
)

// process is a running program of the tests.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err output
	done     chan struct{}
}

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// launch starts the program with nothing in its environment but PATH, HOME and what is given. It is killed when the test ends.
func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := prepare(t, env, args...)
	p.start()
	return p
}

// prepare is launch without the start.
func prepare(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(self, args...), done: make(chan struct{})}
	// With the race detector a process sleeps for a second before it exits, unless told otherwise.
	p.cmd.Env = append([]string{asProgram + "=1", "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	return p
}

func (p *process) start() {
	t := p.t
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the test asks for the exit code
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s\n%s", strings.Join(p.cmd.Args[1:], " "), &p.out, &p.err)
		}
	})
}

// kill ends the process as a crash would, and waits for its end.
func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	<-p.done
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end and returns the exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%v does not end; stderr:\n%s", p.cmd.Args, &p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// started waits for the document by which a server run with --json says that it is ready.
func (p *process) started() map[string]any {
	p.t.Helper()
	pgtest.Eventually(p.t, patience, func() bool {
		select {
		case <-p.done:
			p.t.Fatalf("%v has ended with code %d:\n%s", p.cmd.Args, p.cmd.ProcessState.ExitCode(), &p.err)
		default:
		}
		return strings.HasSuffix(p.out.String(), "\n")
	}, "%v to be ready", p.cmd.Args)
	return parseLines(p.t, p.out.String())[0]
}
