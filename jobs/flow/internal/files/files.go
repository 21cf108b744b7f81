// Package files lays the files of a version out in a directory, once for each version and machine.
//
// A directory is filled under another name and renamed when it is whole, so that any number of processes may share one root: whoever
// comes second throws its own away. Its name has the version's number and a hash of what its files are, so that several databases may
// share a root too, and one that was restored to an earlier time. Runs share a version's directory; what a program writes there, later
// runs find.
package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// Cache lays out versions below a directory. Safe for concurrent use.
type Cache struct {
	store *store.Store
	root  string

	mu     sync.Mutex
	layers map[int64]*layer
}

// layer is a version's directory, made by the first who asks.
type layer struct {
	once sync.Once
	dir  string
	err  error
}

// New makes a cache below root, which is made when it is first needed.
func New(s *store.Store, root string) *Cache {
	return &Cache{store: s, root: root, layers: map[int64]*layer{}}
}

// Dir returns the directory that holds the version's files.
func (c *Cache) Dir(ctx context.Context, version int64) (string, error) {
	c.mu.Lock()
	l := c.layers[version]
	if l == nil {
		l = &layer{}
		c.layers[version] = l
	}
	c.mu.Unlock()
	l.once.Do(func() { l.dir, l.err = c.lay(ctx, version) })
	if l.err == nil {
		if now := time.Now(); os.Chtimes(l.dir, now, now) == nil { // in use
			return l.dir, nil
		}
		l.err = fmt.Errorf("directory %s of version %d is gone", l.dir, version)
	}
	c.mu.Lock() // the next one tries again
	defer c.mu.Unlock()
	if c.layers[version] == l {
		delete(c.layers, version)
	}
	return "", l.err
}

func (c *Cache) lay(ctx context.Context, version int64) (string, error) {
	list, err := c.store.Files(ctx, version)
	if err != nil {
		return "", fmt.Errorf("files of version %d: %w", version, err)
	}
	dir := filepath.Join(c.root, nameOf(version, list))
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return dir, nil
	}
	if err := os.MkdirAll(c.root, 0o755); err != nil { //nolint:gosec // programs of other users may run there
		return "", fmt.Errorf("files of version %d: %w", version, err)
	}
	draft, err := os.MkdirTemp(c.root, ".draft-")
	if err != nil {
		return "", fmt.Errorf("files of version %d: %w", version, err)
	}
	defer os.RemoveAll(draft)                      //nolint:errcheck // a leftover is swept later
	if err := os.Chmod(draft, 0o755); err != nil { //nolint:gosec // as above
		return "", fmt.Errorf("files of version %d: %w", version, err)
	}
	for _, f := range list {
		if err := c.write(ctx, draft, f); err != nil {
			return "", fmt.Errorf("file %s of version %d: %w", f.Path, version, err)
		}
	}
	if err := os.Rename(draft, dir); err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() { // somebody was quicker
			return dir, nil
		}
		return "", fmt.Errorf("files of version %d: %w", version, err)
	}
	return dir, nil
}

// nameOf is the name of a version's directory. The files are sorted by path.
func nameOf(version int64, list []store.File) string {
	h := sha256.New()
	for _, f := range list {
		fmt.Fprintf(h, "%q %x %t\n", f.Path, f.Hash, f.Executable)
	}
	return fmt.Sprintf("%d-%x", version, h.Sum(nil)[:8])
}

// isOurs tells whether a directory has such a name, or that of a draft.
var isOurs = regexp.MustCompile(`^(\d+-[0-9a-f]{16}|\.draft-.*)$`).MatchString

func (c *Cache) write(ctx context.Context, dir string, f store.File) error {
	if !filepath.IsLocal(f.Path) {
		return errors.New("the path leads out of the project")
	}
	path := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	mode := os.FileMode(0o644)
	if f.Executable {
		mode = 0o755
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err := c.store.CopyContent(ctx, out, f.Hash); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

// Sweep removes directories that nobody has asked for since the age, and drafts left behind.
func (c *Cache) Sweep(age time.Duration) error {
	entries, err := os.ReadDir(c.root)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep files of versions: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !isOurs(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > age {
			errs = append(errs, os.RemoveAll(filepath.Join(c.root, e.Name())))
		}
	}
	return errors.Join(errs...)
}
