// Package files lays the files of a version out in a directory, once for each version and machine.
//
// A directory is filled under another name and renamed when it is whole, so that any number of processes may share one root: whoever
// comes second throws its own away. Its name has the version's number and a hash of what its files are, so that several databases may
// share a root too, and one that was restored to an earlier time. Runs share a version's directory; what a program writes there, later
// runs find.
//
// Somebody may remove a directory, or, as those do that clean temporary directories, old files in it: what is missing is laid out again.
package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/peltonq/pelton/jobs/flow/internal/store"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Age is how long a version's directory stays after its last use began.
const Age = 14 * 24 * time.Hour

const (
	layLimit   = 30 * time.Minute // for one version
	sweepEvery = time.Hour        // while versions are asked for
	checkEvery = 10 * time.Second // between two looks for missing files of a version that is asked for
)

// Cache lays out versions below a directory. Safe for concurrent use.
type Cache struct {
	store *store.Store
	root  string

	mu     sync.Mutex
	layers map[int64]*layer
	swept  time.Time
}

// layer is a version's directory. It is made in a goroutine for all who wait for it: that one of them leaves does not end it for the
// others. The last who leaves ends it.
type layer struct {
	waiting int // under the cache's lock
	cancel  context.CancelFunc
	done    chan struct{} // closed when dir, list and err are set
	dir     string
	list    []store.File
	err     error

	checking chan struct{} // filled by who looks for missing files
	checked  time.Time     // by the one who was last
}

// New makes a cache below root, which is made when it is first needed.
func New(s *store.Store, root string) *Cache {
	return &Cache{store: s, root: root, layers: map[int64]*layer{}}
}

// Dir returns the directory that holds the version's files. One that somebody has removed is made anew. Old ones are removed now and then.
func (c *Cache) Dir(ctx context.Context, version int64) (string, error) {
	c.sweepInTime(ctx)
	for range 3 { // who sweeps may come between a directory and its use
		l := c.join(ctx, version)
		select {
		case <-l.done:
		case <-ctx.Done():
		}
		if !c.leave(l, version) {
			return "", fmt.Errorf("files of version %d: %w", version, context.Cause(ctx))
		}
		if l.err != nil {
			c.forget(l, version)
			return "", l.err
		}
		if now := time.Now(); os.Chtimes(l.dir, now, now) == nil { // in use
			if err := c.check(ctx, l); err != nil {
				return "", fmt.Errorf("files of version %d: %w", version, err)
			}
			return l.dir, nil
		}
		c.forget(l, version)
	}
	return "", fmt.Errorf("files of version %d: their directory below %s is removed as soon as it is made", version, c.root)
}

// join waits for a version's directory with others, or begins to make it.
func (c *Cache) join(ctx context.Context, version int64) *layer {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.layers[version]
	if l == nil {
		own, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), layLimit, fmt.Errorf("not laid out within %v", layLimit))
		l = &layer{cancel: cancel, done: make(chan struct{}), checking: make(chan struct{}, 1)}
		c.layers[version] = l
		go func() {
			defer cancel()
			defer close(l.done)
			l.dir, l.list, l.err = c.lay(own, version)
		}()
	}
	l.waiting++
	return l
}

// leave ends a wait and tells whether the layer is done. The last who leaves before it is done ends it and waits for that.
func (c *Cache) leave(l *layer, version int64) (done bool) {
	c.mu.Lock()
	l.waiting--
	select {
	case <-l.done:
		done = true
	default:
	}
	last := !done && l.waiting == 0
	if last && c.layers[version] == l {
		delete(c.layers, version)
	}
	c.mu.Unlock()
	if last {
		l.cancel()
		<-l.done
	}
	return done
}

// forget has the next one make the directory anew.
func (c *Cache) forget(l *layer, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.layers[version] == l {
		delete(c.layers, version)
	}
}

func (c *Cache) lay(ctx context.Context, version int64) (dir string, list []store.File, err error) {
	if list, err = c.store.Files(ctx, version); err != nil {
		return "", nil, fmt.Errorf("files of version %d: %w", version, err)
	}
	dir = filepath.Join(c.root, nameOf(version, list))
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return dir, list, nil
	}
	if err := os.MkdirAll(c.root, 0o755); err != nil { //nolint:gosec // programs of other users may run there
		return "", nil, fmt.Errorf("files of version %d: %w", version, err)
	}
	draft, err := os.MkdirTemp(c.root, draftPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("files of version %d: %w", version, err)
	}
	defer os.RemoveAll(draft)                      //nolint:errcheck // a leftover is swept later
	if err := os.Chmod(draft, 0o755); err != nil { //nolint:gosec // as above
		return "", nil, fmt.Errorf("files of version %d: %w", version, err)
	}
	for _, f := range list {
		if err := c.write(ctx, draft, f); err != nil {
			return "", nil, fmt.Errorf("file %s of version %d: %w", f.Path, version, err)
		}
	}
	if err := os.Rename(draft, dir); err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() { // somebody was quicker
			return dir, list, nil
		}
		return "", nil, fmt.Errorf("files of version %d: %w", version, err)
	}
	return dir, list, nil
}

// check writes the files of a version that are missing in its directory, if nobody has looked just before.
func (c *Cache) check(ctx context.Context, l *layer) error {
	select {
	case l.checking <- struct{}{}:
		defer func() { <-l.checking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if time.Since(l.checked) < checkEvery {
		return nil
	}
	var missing []store.File
	for _, f := range l.list {
		if _, err := os.Lstat(filepath.Join(l.dir, filepath.FromSlash(f.Path))); errors.Is(err, os.ErrNotExist) {
			missing = append(missing, f)
		}
	}
	if err := c.repair(ctx, l.dir, missing); err != nil {
		return err
	}
	l.checked = time.Now()
	return nil
}

// repair writes files into a directory that is in use: each is whole when it gets its name.
func (c *Cache) repair(ctx context.Context, dir string, missing []store.File) error {
	if len(missing) == 0 {
		return nil
	}
	draft, err := os.MkdirTemp(c.root, draftPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft) //nolint:errcheck // a leftover is swept later
	for _, f := range missing {
		if err := c.write(ctx, draft, f); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as above
			return err
		}
		if err := os.Rename(filepath.Join(draft, filepath.FromSlash(f.Path)), path); err != nil {
			return err
		}
	}
	joblog.Logger(ctx).WarnContext(ctx, "files of the project had been removed and were written again", "directory", dir, "files", len(missing))
	return nil
}

// nameOf is the name of a version's directory. The files are sorted by path.
func nameOf(version int64, list []store.File) string {
	h := sha256.New()
	for _, f := range list {
		fmt.Fprintf(h, "%q %x %t\n", f.Path, f.Hash, f.Executable)
	}
	return fmt.Sprintf("%d-%x", version, h.Sum(nil)[:8])
}

const draftPrefix = ".draft-"

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

// sweepInTime sweeps if the last time is long ago.
func (c *Cache) sweepInTime(ctx context.Context) {
	c.mu.Lock()
	due := time.Since(c.swept) > sweepEvery
	if due {
		c.swept = time.Now()
	}
	c.mu.Unlock()
	if !due {
		return
	}
	if err := c.Sweep(Age); err != nil {
		joblog.Logger(ctx).WarnContext(ctx, "old files of projects stay behind", "directory", c.root, "error", err)
	}
}

// Sweep removes directories that nobody has asked for since the age, and drafts left behind. A directory gets a draft's name first:
// nobody finds half of it.
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
			errs = append(errs, c.remove(e.Name()))
		}
	}
	return errors.Join(errs...)
}

func (c *Cache) remove(name string) error {
	path := filepath.Join(c.root, name)
	if !strings.HasPrefix(name, draftPrefix) {
		draft := filepath.Join(c.root, draftPrefix+name)
		if err := os.Rename(path, draft); err == nil {
			path = draft
		}
	}
	return os.RemoveAll(path)
}
