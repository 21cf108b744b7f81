package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pidfile is what a server writes into postmaster.pid, as far as it matters here.
type pidfile struct {
	pid    int
	shmID  int    // of the System V segment by which the server notices orphans; -1 if it wrote none
	status string // "starting", "ready", "stopping", "standby"
}

func pidfilePath(dataDir string) string { return filepath.Join(dataDir, "postmaster.pid") }

// readPidfile returns nil when there is no file, or one without a process id.
func readPidfile(dataDir string) (*pidfile, error) {
	text, err := os.ReadFile(pidfilePath(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read postmaster.pid: %w", err)
	}
	return parsePidfile(string(text)), nil
}

func parsePidfile(text string) *pidfile {
	lines := strings.Split(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return nil // the server has opened the file and not written yet
	}
	found := &pidfile{pid: pid, shmID: -1}
	if len(lines) > 6 {
		if fields := strings.Fields(lines[6]); len(fields) == 2 {
			if id, err := strconv.Atoi(fields[1]); err == nil {
				found.shmID = id
			}
		}
	}
	if len(lines) > 7 {
		found.status = strings.TrimSpace(lines[7])
	}
	return found
}

// dyingGrace is how long a server is given to notice that its owner, which no longer holds the lock, has died.
const dyingGrace = 3 * time.Second

// checkPidfile makes sure that no server runs on the data directory. One that is about to stop, or whose owner may have
// died just now, is waited for. A file whose process has become another program is made harmless.
func checkPidfile(ctx context.Context, dataDir string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	grace := time.NewTimer(dyingGrace)
	defer grace.Stop()
	for {
		found, err := readPidfile(dataDir)
		if err != nil || found == nil || !alive(found.pid) {
			return err // the server judges a file of a dead process itself, orphaned backends included
		}
		if !isServerOf(found.pid, dataDir) {
			return disown(dataDir, found.pid)
		}
		select {
		case <-tick.C:
		case <-grace.C:
			if found.status != "stopping" {
				return fmt.Errorf("%w: a server runs there already (process %d); stop it with: kill -INT %d",
					ErrInUse, found.pid, found.pid)
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: process %d does not stop: %w", ErrInUse, found.pid, context.Cause(ctx))
		}
	}
}

// disown puts our own process id in the place of one that the system has given to another program. A server ignores its
// parent's id there. Removing the file would also remove what it knows about backends that still run.
func disown(dataDir string, pid int) error {
	path := pidfilePath(dataDir)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("stale postmaster.pid: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"+rest), 0o600); err != nil {
		return fmt.Errorf("stale postmaster.pid of process %d: %w", pid, err)
	}
	return nil
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
