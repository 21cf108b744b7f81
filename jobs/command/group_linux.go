package command

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes put a program into a group of its own, and have it killed when this process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// holdThread keeps the thread that starts a program until the function it returns is called: the parent death signal is sent
// when that thread ends.
func holdThread() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// group is the process group that a program leads. awaitExit is called once; reap after it has returned.
type group struct {
	process *os.Process
}

// awaitExit waits until the program has exited, without reaping it, so that its group keeps its number.
func (g *group) awaitExit() {
	for {
		if err := unix.Waitid(unix.P_PID, g.process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

// reap returns how the program ended.
func (g *group) reap() (*os.ProcessState, error) { return g.process.Wait() }

// alive tells whether a process of the group still runs. Zombies that nobody reaps do not count.
func (g *group) alive() bool {
	if syscall.Kill(-g.process.Pid, 0) == syscall.ESRCH {
		return false
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return true
	}
	for _, name := range files {
		if stat, err := os.ReadFile(name); err == nil && g.runs(stat) {
			return true
		}
	}
	return false
}

// runs reads a line of /proc/PID/stat: "pid (name) state ppid pgrp ...", where the name may hold anything.
func (g *group) runs(stat []byte) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 || string(fields[2]) != strconv.Itoa(g.process.Pid) {
		return false
	}
	return !bytes.ContainsAny(fields[0], "ZX")
}
