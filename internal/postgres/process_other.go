//go:build !linux

package postgres

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func dieWithOwner(*syscall.SysProcAttr) {}

// isServerOf tells whether a living process is a server. In doubt it is.
func isServerOf(pid int, _ string) bool {
	name, err := exec.Command("ps", "-p", strconv.Itoa(pid), "-o", "comm=").Output()
	return err != nil || strings.Contains(string(name), "postgres")
}

// CPUTime is known on Linux only.
func CPUTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// killAll tells the postmaster to end all its processes at once and then itself, without a checkpoint.
func killAll(pid int) error { return syscall.Kill(pid, syscall.SIGQUIT) }

// removeSegment leaves the segment to the next restart of the machine.
func removeSegment(int) {}
