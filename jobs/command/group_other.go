//go:build unix && !linux

package command

import (
	"os"
	"syscall"
)

// attributes put a program into a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// holdThread has nothing to do where no signal hangs on a thread.
func holdThread() func() { return func() {} }

// awaitExit waits until the program has exited. It reaps it, so the group's number is free once the group is empty.
func (g *group) awaitExit() { g.state, g.err = g.process.Wait() }

// reap returns how the program ended.
func (g *group) reap() (*os.ProcessState, error) { return g.state, g.err }

// alive tells whether the group has a process.
func (g *group) alive() bool { return syscall.Kill(-g.process.Pid, 0) != syscall.ESRCH }
