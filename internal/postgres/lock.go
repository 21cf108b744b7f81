package postgres

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// ErrInUse is matched by the error of [Start] when another process uses the data directory: another owner, or a server
// that an owner left behind.
var ErrInUse = errors.New("data directory is in use")

// lock is a file that is locked while it is open. The kernel gives it up when the process dies.
type lock struct{ file *os.File }

func openLock(dir string) (*os.File, error) {
	return os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
}

// await takes the lock beside a directory when the one who has it gives it up.
func await(dir string) (*lock, error) {
	file, err := openLock(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return &lock{file: file}, nil
}

// acquire takes the lock beside a data directory. The holder's process id is written into it for the error message.
func acquire(dataDir string) (*lock, error) {
	file, err := openLock(dataDir)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := make([]byte, 20)
		n, _ := file.Read(holder) // without a number the message says less
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: process %s holds %s", ErrInUse, strings.TrimSpace(string(holder[:n])), file.Name())
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, fmt.Sprintln(os.Getpid()))); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return &lock{file: file}, nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// release gives the lock up. Closing alone would not do at once: a child that another goroutine is just starting has a
// copy of the descriptor until it becomes its program. The file stays: removing it would let two owners hold two files
// of one name.
func (l *lock) release() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}
