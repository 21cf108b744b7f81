package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// UnreachableError says that the user the server runs as cannot enter a directory.
type UnreachableError struct {
	// Path is what was to be reached, Dir the first directory on the way that shuts the user out.
	Path, Dir string
	// User is the operating system's user that the server runs as.
	User string
	// Mode is the directory's.
	Mode fs.FileMode
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("user %q, which the server runs as, cannot reach %s: directory %s has mode %v; "+
		"choose another directory, or another user, or open that one with chmod o+x", e.User, e.Path, e.Dir, e.Mode.Perm())
}

// Place returns the preferred directory when the user that the server runs as can reach it. Otherwise, which happens to
// root in its own home, it is a directory of the same purpose under /var/lib/pelton, or under the system's directory for
// temporary files, the same one each time. osUser is as in [Config].
func Place(preferred, osUser string) (string, error) {
	as, err := accountFor(osUser)
	if err != nil {
		return "", err
	}
	preferred, err = filepath.Abs(preferred)
	if err != nil {
		return "", fmt.Errorf("place of the server: %w", err)
	}
	shut := as.canReach(preferred)
	if shut == nil {
		return preferred, nil
	}
	sum := sha256.Sum256([]byte(preferred))
	name := filepath.Base(preferred) + "-" + hex.EncodeToString(sum[:4])
	for _, parent := range []string{"/var/lib/pelton", "/var/tmp/pelton", filepath.Join(os.TempDir(), "pelton")} {
		if err := os.MkdirAll(parent, 0o755); err != nil {
			continue
		}
		if dir := filepath.Join(parent, name); as.canReach(dir) == nil {
			return dir, nil
		}
	}
	return "", shut
}

// canReach tells whether the account may enter every directory above path, and path itself when it exists. Only
// permission bits are looked at, not access lists.
func (a account) canReach(path string) error {
	resolved, err := deepest(path)
	if err != nil {
		return err
	}
	for _, dir := range ancestors(resolved) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("reach %s: %w", path, err)
		}
		if !a.mayEnter(info) {
			return &UnreachableError{Path: path, Dir: dir, User: a.name, Mode: info.Mode()}
		}
	}
	return nil
}

func (a account) mayEnter(info fs.FileInfo) bool {
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return true
	}
	switch {
	case int(owner.Uid) == a.uid:
		return info.Mode()&0o100 != 0
	case int(owner.Gid) == a.gid:
		return info.Mode()&0o010 != 0
	default:
		return info.Mode()&0o001 != 0
	}
}

// deepest returns the nearest existing directory at or above path, with links resolved.
func deepest(path string) (string, error) {
	for {
		resolved, err := filepath.EvalSymlinks(path)
		if err == nil {
			return resolved, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return "", fmt.Errorf("reach directory: %w", err)
		}
		path = filepath.Dir(path)
	}
}

// ancestors lists path and all directories above it, the root first.
func ancestors(path string) []string {
	var dirs []string
	for {
		dirs = append([]string{path}, dirs...)
		if path == filepath.Dir(path) {
			return dirs
		}
		path = filepath.Dir(path)
	}
}
