//go:build unix

package nodecmd

import (
	"errors"
	"os"
	"syscall"
)

const canLock = true

// lockDir fails if somebody holds the lock.
func lockDir(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
