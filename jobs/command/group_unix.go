//go:build unix

package command

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const pathSeparators = "/"

var defaultShell = []string{"/bin/sh", "-c"}

// outcome returns the exit code as a shell shows it, and the name of the signal that ended the program.
func outcome(state *os.ProcessState) (int, string) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return state.ExitCode(), ""
	}
	return 128 + int(status.Signal()), unix.SignalName(status.Signal())
}
