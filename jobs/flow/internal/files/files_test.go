package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

const patience = time.Minute

// bench is a cache over a database with one version.
type bench struct {
	*Cache

	t       *testing.T
	pool    *pgxpool.Pool
	version int64
}

func newBench(t *testing.T) *bench {
	t.Helper()
	pool := schematest.Pool(t)
	s := store.New(pool, "pelton")
	text := []byte("contents")
	hash := sha256.Sum256(text)
	v, err := s.Push(t.Context(), store.Push{
		Project: "p", By: "somebody", Files: []store.File{{Path: "dir/a.txt", Hash: hash[:], Bytes: int64(len(text))}},
		Graphs: &graph.Project{Format: graph.FormatFlow2, Flows: []*graph.Flow{{Name: "f"}}},
		Open:   func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{New(s, filepath.Join(t.TempDir(), "root")), t, pool, v.ID}
}

// block has nobody read the lists of files until release is called.
func (b *bench) block() (release func()) {
	b.t.Helper()
	tx, err := b.pool.Begin(b.t.Context())
	if err == nil {
		_, err = tx.Exec(b.t.Context(), "LOCK TABLE pelton.flow_file")
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(b.t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			b.t.Error(err)
		}
	}
}

type answer struct {
	dir string
	err error
}

// ask asks for the version's directory, and returns when so many wait for it.
func (b *bench) ask(ctx context.Context, waiting int) <-chan answer {
	b.t.Helper()
	answers := make(chan answer, 1)
	go func() {
		dir, err := b.Dir(ctx, b.version)
		answers <- answer{dir, err}
	}()
	pgtest.Eventually(b.t, patience, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		l := b.layers[b.version]
		return l != nil && l.waiting == waiting
	}, "%d to wait for the files", waiting)
	return answers
}

func (b *bench) whole(dir string, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "dir", "a.txt")); err != nil || string(text) != "contents" { //nolint:gosec // the test's
		b.t.Errorf("the file is %q, %v", text, err)
	}
}

// The job that came first is killed while it waits for the files; the others get them.
func TestWhoCameFirstLeaves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	release := b.block()
	defer release()
	killed := errors.New("killed")
	ctx, kill := context.WithCancelCause(t.Context())
	first := b.ask(ctx, 1)
	second := b.ask(t.Context(), 2)
	kill(killed)
	if a := <-first; !errors.Is(a.err, killed) {
		t.Errorf("the first got %+v", a)
	}
	release()
	a := <-second
	b.whole(a.dir, a.err)
}

// All who waited have left: nothing goes on, and the next one begins anew.
func TestAllLeave(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	release := b.block()
	defer release()
	ctx, kill := context.WithCancel(t.Context())
	first, second := b.ask(ctx, 1), b.ask(ctx, 2)
	kill()
	for _, answers := range []<-chan answer{first, second} {
		if a := <-answers; !errors.Is(a.err, context.Canceled) {
			t.Errorf("got %+v", a)
		}
	}
	release()
	b.whole(b.Dir(t.Context(), b.version))
	if entries, err := os.ReadDir(b.root); err != nil || len(entries) != 1 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func TestDirectoryThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir, err := b.Dir(t.Context(), b.version)
	b.whole(dir, err)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	b.whole(b.Dir(t.Context(), b.version))
}

// Files that somebody removed from a directory are written again, beside what programs have left there.
func TestFilesThatAreGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir, err := b.Dir(t.Context(), b.version)
	b.whole(dir, err)
	note := filepath.Join(dir, "note")
	if err := errors.Join(os.WriteFile(note, nil, 0o600), os.RemoveAll(filepath.Join(dir, "dir"))); err != nil {
		t.Fatal(err)
	}
	b.whole(New(b.store, b.root).Dir(t.Context(), b.version)) // as after a restart
	if err := os.Remove(filepath.Join(dir, "dir", "a.txt")); err != nil {
		t.Fatal(err)
	}
	b.layers[b.version].checked = time.Now().Add(-checkEvery - time.Second)
	b.whole(b.Dir(t.Context(), b.version))
	if entries, err := os.ReadDir(b.root); err != nil || len(entries) != 1 {
		t.Errorf("left are %v, %v", entries, err)
	}
	if _, err := os.Stat(note); err != nil {
		t.Error(err)
	}
}

// Many ask at once, while somebody removes the directory again and again: the race detector looks on.
func TestManyAskWhileTheDirectoryGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answers := make(chan error, 8)
	for range cap(answers) {
		go func() {
			var err error
			for range 20 {
				var dir string
				if dir, err = b.Dir(t.Context(), b.version); err != nil {
					break
				}
				_ = os.Rename(dir, filepath.Join(b.root, draftPrefix+filepath.Base(dir)))
				_ = os.RemoveAll(filepath.Join(b.root, draftPrefix+filepath.Base(dir)))
			}
			answers <- err
		}()
	}
	for range cap(answers) {
		if err := <-answers; err != nil && !strings.Contains(err.Error(), "removed as soon as it is made") { // three times in a row
			t.Error(err)
		}
	}
	b.whole(b.Dir(t.Context(), b.version))
}

// An executor that stays up removes what is old.
func TestOldDirectoriesGo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir, err := b.Dir(t.Context(), b.version)
	b.whole(dir, err)
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"7-0123456789abcdef": Age + time.Hour, "8-0123456789abcdef": Age - time.Hour, draftPrefix + "9": Age + time.Hour, "somebody's": 2 * Age,
	} {
		path := filepath.Join(b.root, name)
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chtimes(path, now.Add(-age), now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (n int) {
		entries, err := os.ReadDir(b.root)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	b.whole(b.Dir(t.Context(), b.version))
	if n := left(); n != 5 {
		t.Errorf("%d are left right after a sweep, want all 5", n)
	}
	b.mu.Lock()
	b.swept = now.Add(-sweepEvery - time.Minute)
	b.mu.Unlock()
	b.whole(b.Dir(t.Context(), b.version))
	if n := left(); n != 3 {
		t.Errorf("%d are left, want 3", n)
	}
}
