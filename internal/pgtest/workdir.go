package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/peltonq/pelton/internal/postgres"
)

const workdirPrefix = "pelton-test-"

// workdir is a directory for servers that disappears with the process that made it, or with the next one if that was
// killed. Its lock file is locked while the process lives.
type workdir struct {
	path string
	lock *os.File
}

func newWorkdir() (*workdir, error) {
	// As root the server runs as another user, for whom the directory for temporary files may be shut.
	parent, err := postgres.Place(os.TempDir(), "")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	sweep(parent)
	return newWorkdirIn(parent)
}

func newWorkdirIn(parent string) (*workdir, error) {
	path, err := os.MkdirTemp(parent, workdirPrefix)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return &workdir{path: path, lock: lock}, nil
}

func (w *workdir) remove() error {
	return errors.Join(os.RemoveAll(w.path), w.lock.Close())
}

// sweep removes the directories of processes that were killed. Young ones are left alone: they may not be locked yet,
// or their server is still going down. What cannot be removed belongs to somebody else.
func sweep(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, workdirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < 2*time.Minute {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
