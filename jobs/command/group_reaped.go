//go:build !linux

package command

import (
	"log/slog"
	"os"
	"os/exec"
)

// group is the process group that a program leads; what leaves it is not followed. awaitExit is called once, reap after it has
// returned.
type group struct {
	process *os.Process
	state   *os.ProcessState
	err     error
}

func newGroup(string, *slog.Logger) *group { return &group{} }

// environ adds nothing: nobody could read a mark.
func (g *group) environ(env []string) []string { return env }

func (g *group) start(cmd *exec.Cmd) error {
	err := cmd.Start()
	g.process = cmd.Process
	return err
}

// holdThread has nothing to do where no signal hangs on a thread.
func holdThread() func() { return func() {} }

// awaitExit waits until the program has exited. It reaps it, so the group's number is free once the group is empty.
func (g *group) awaitExit() { g.state, g.err = g.process.Wait() }

// reap returns how the program ended.
func (g *group) reap() (*os.ProcessState, error) { return g.state, g.err }

// gone tells whether nothing is left.
func (g *group) gone() bool { return !g.alive() }

// tidy has nothing to do where orphans go to the system's first process.
func (g *group) tidy() {}
