// Package upload takes files that requests bring.
//
// A file is on disk while it is read, under no name from the start where the system allows that: whatever ends the process, nothing is left
// behind. Few are taken at once, and of each user one, so that nobody who sends slowly keeps others out.
package upload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

const (
	// Most is the size of a file, in bytes, at most.
	Most = 256 << 20
	// atOnce is how many are taken at the same time.
	atOnce = 4
)

// Why a file is not taken.
var (
	ErrTooLarge = fmt.Errorf("the file has more than %d MiB: push it with the command line, on a machine that reaches the database", Most>>20)
	ErrEmpty    = errors.New("the file is empty")
	ErrBusy     = errors.New("other uploads are under way; try again in a moment")
)

// Gate lets few uploads in at once. The zero value is ready. Safe for concurrent use.
type Gate struct {
	mu    sync.Mutex
	users map[string]bool
}

// Enter takes a place for a user's upload; leave gives it back. ErrBusy if there is none, or the user has one.
func (g *Gate) Enter(user string) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.users) >= atOnce || g.users[user] {
		return nil, ErrBusy
	}
	if g.users == nil {
		g.users = map[string]bool{}
	}
	g.users[user] = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.users, user)
	}, nil
}

// File is a file that was taken.
type File struct {
	*os.File

	Size int64
	name string // empty: it has none
}

// Take reads all of a body. The error is ErrTooLarge, ErrEmpty, or that of the body or the disk. The file is the caller's to close.
func Take(body io.Reader) (*File, error) {
	file, err := os.CreateTemp("", "pelton-upload-*")
	if err != nil {
		return nil, err
	}
	f := &File{File: file}
	if os.Remove(file.Name()) != nil {
		f.name = file.Name()
	}
	f.Size, err = io.Copy(file, io.LimitReader(body, Most+1))
	switch {
	case err != nil:
	case f.Size > Most:
		err = ErrTooLarge
	case f.Size == 0:
		err = ErrEmpty
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// Close lets go of the file, which is gone then.
func (f *File) Close() error {
	err := f.File.Close()
	if f.name != "" {
		err = errors.Join(err, os.Remove(f.name))
	}
	return err
}
