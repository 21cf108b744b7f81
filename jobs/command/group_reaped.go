//go:build !linux

package command

import "os"

// group is the process group that a program leads. awaitExit is called once; reap after it has returned.
type group struct {
	process *os.Process
	state   *os.ProcessState
	err     error
}

// awaitExit waits until the program has exited. It reaps it, so the group's number is free once the group is empty.
func (g *group) awaitExit() { g.state, g.err = g.process.Wait() }

// reap returns how the program ended.
func (g *group) reap() (*os.ProcessState, error) { return g.state, g.err }
