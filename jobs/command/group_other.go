//go:build unix && !linux

package command

import "syscall"

// attributes put a program into a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// holdThread has nothing to do where no signal hangs on a thread.
func holdThread() func() { return func() {} }

// alive tells whether the group has a process.
func (g *group) alive() bool { return syscall.Kill(-g.process.Pid, 0) != syscall.ESRCH }
