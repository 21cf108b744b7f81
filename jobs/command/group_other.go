//go:build unix && !linux

package command

import "syscall"

// attributes put a program into a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the group to end; a stopped process is let go on, so that it can.
func (g *group) terminate() {
	_ = syscall.Kill(-g.process.Pid, syscall.SIGTERM)
	_ = syscall.Kill(-g.process.Pid, syscall.SIGCONT)
}

func (g *group) kill() (fresh bool) {
	_ = syscall.Kill(-g.process.Pid, syscall.SIGKILL)
	return false
}

// alive tells whether the group has a process.
func (g *group) alive() bool { return syscall.Kill(-g.process.Pid, 0) != syscall.ESRCH }
