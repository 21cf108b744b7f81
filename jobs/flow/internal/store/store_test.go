package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/flow/internal/files"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

// contents are files by path.
type contents map[string][]byte

func (c contents) push(project string, flows ...*graph.Flow) store.Push {
	p := store.Push{Project: project, By: "somebody", Graphs: &graph.Project{Format: graph.FormatFlow2, Flows: flows}}
	for path, data := range c {
		hash := sha256.Sum256(data)
		p.Files = append(p.Files, store.File{Path: path, Hash: hash[:], Bytes: int64(len(data)), Executable: filepath.Ext(path) == ".sh"})
	}
	p.Open = func(path string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c[path])), nil }
	return p
}

func flowOf(name string, nodes ...string) *graph.Flow {
	f := &graph.Flow{Name: name}
	for _, n := range nodes {
		f.Nodes = append(f.Nodes, graph.Node{Path: n, Type: graph.TypeNoop, Container: graph.Top})
	}
	return f
}

// Two databases have versions of the same number, and their executors one directory: each finds its own files.
func TestDatabasesShareADirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, text := range []string{"of the first", "of the second"} {
		s := store.New(schematest.Pool(t), "pelton")
		v, err := s.Push(t.Context(), contents{"a.txt": []byte(text)}.push("p", flowOf("f", "a")))
		if err != nil || v.ID != 1 {
			t.Fatalf("version %+v, %v", v, err)
		}
		dir, err := files.New(s, root).Dir(t.Context(), v.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(got) != text { //nolint:gosec // the test's
			t.Errorf("a.txt is %q, want %q (%v)", got, text, err)
		}
	}
}

// A push whose file cannot be read to its end, as of a damaged zip, stores nothing; the project's version before stays the newest.
func TestPushThatFailsInTheMiddle(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := store.New(pool, "pelton")
	rows := func() (n int) {
		t.Helper()
		err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pelton.flow_project) + (SELECT count(*) FROM pelton.flow_version)
			+ (SELECT count(*) FROM pelton.flow_file) + (SELECT count(*) FROM pelton.flow_content) + (SELECT count(*) FROM pelton.flow)`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	damaged := errors.New("damaged")
	push := func(project string) error {
		p := contents{"a": []byte("read"), "b": bytes.Repeat([]byte("b"), 3<<20)}.push(project, flowOf("f", "a"))
		open := p.Open
		p.Open = func(path string) (io.ReadCloser, error) {
			r, err := open(path)
			if path == "b" { // one part is read
				r = io.NopCloser(io.MultiReader(io.LimitReader(r, 1<<20+1), iotest.ErrReader(damaged)))
			}
			return r, err
		}
		_, err := s.Push(t.Context(), p)
		return err
	}
	if err := push("p"); !errors.Is(err, damaged) || rows() != 0 {
		t.Errorf("the first push: %v, and %d rows are stored", err, rows())
	}
	if _, err := s.Push(t.Context(), contents{"c": []byte("good")}.push("p", flowOf("f", "a"))); err != nil {
		t.Fatal(err)
	}
	before := rows()
	if err := push("p"); !errors.Is(err, damaged) || rows() != before {
		t.Errorf("the next push: %v, and %d rows are stored, want %d", err, rows(), before)
	}
}

func TestVersionsKeepTheirFiles(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := store.New(pool, "pelton")
	big := bytes.Repeat([]byte("0123456789abcdef"), 150_000) // three parts
	first := contents{"a.flow": []byte("nodes"), "bin/run.sh": []byte("echo hi"), "big": big, "empty": nil}
	v1, err := s.Push(t.Context(), first.push("p", flowOf("f", "a", "b")))
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	second := contents{"a.flow": []byte("others"), "copy": big}.push("p", flowOf("f", "a"), flowOf("g", "a"))
	open := second.Open
	second.Open = func(path string) (io.ReadCloser, error) { opened++; return open(path) }
	v2, err := s.Push(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	if v1.No != 1 || v2.No != 2 || v2.Flows != 2 || opened != 1 {
		t.Errorf("versions %+v, %+v; %d files were sent the second time, want 1", v1, v2, opened)
	}
	cache := files.New(s, t.TempDir())
	for range 2 { // laid out, then found
		dir, err := cache.Dir(t.Context(), v1.ID)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range first {
			got, err := os.ReadFile(filepath.Join(dir, path)) //nolint:gosec // the test's
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s has %d bytes, want %d (%v)", path, len(got), len(want), err)
			}
		}
		info, err := os.Stat(filepath.Join(dir, "bin/run.sh"))
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("run.sh: %v (%v)", info, err)
		}
	}
	if _, err := s.Version(t.Context(), pool, "other", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("version of no project: %v", err)
	}
	g, _, err := s.Graph(t.Context(), pool, v2.ID, "g")
	if err != nil || g.Name != "g" || len(g.Nodes) != 1 {
		t.Errorf("graph %+v (%v)", g, err)
	}
}

func TestSweepKeepsWhatRunsNeed(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := store.New(pool, "pelton")
	var versions []store.Version
	for n := range 4 {
		v, err := s.Push(t.Context(), contents{"x": fmt.Append(nil, n), "same": []byte("same")}.push("p", flowOf("f", "a")))
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	var run int64
	err := s.Tx(t.Context(), func(tx pgx.Tx) (err error) {
		run, err = s.CreateRun(t.Context(), tx, store.NewRun{
			VersionID: versions[1].ID, Flow: "f", Status: "RUNNING", By: "me", Options: []byte("{}"), Paths: []string{"a"}, Statuses: []string{"READY"},
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		t.Helper()
		_, err := s.SweepRuns(t.Context(), 0, 100)
		for more := err == nil; more && err == nil; {
			more, err = s.SweepNodes(t.Context(), 100)
		}
		if err == nil {
			_, _, err = s.SweepVersions(t.Context(), 0, 1, 100)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	left := func() (got string) {
		t.Helper()
		err := pool.QueryRow(t.Context(), `SELECT (SELECT string_agg(no::text, ' ' ORDER BY no) FROM pelton.flow_version) || ', ' ||
			(SELECT count(*) FROM pelton.flow_content) || ', ' || (SELECT count(*) FROM pelton.flow_node)`).Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	sweep()
	if got := left(); got != "2 4, 3, 1" {
		t.Errorf("left %s while the run lives, want versions 2 and 4, 3 contents, 1 node", got)
	}
	err = s.Tx(t.Context(), func(tx pgx.Tx) error {
		return s.WriteRun(t.Context(), tx, run, "SUCCEEDED", nil, true, true, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	sweep()
	sweep()
	if got := left(); got != "4, 2, 0" {
		t.Errorf("left %s after the run, want version 4 and 2 contents", got)
	}
}

// Of a run that is swept its row goes first, and its nodes piece by piece, whoever deletes them.
func TestNodesAreSweptInPieces(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.exec(`INSERT INTO pelton.flow_project (name) VALUES ('p')`)
	d.exec(`INSERT INTO pelton.flow_version (project_id, no, pushed_by, format) VALUES (1, 1, 'me', 'code')`)
	d.exec(`INSERT INTO pelton.flow_run (version_id, project_id, flow, status, created_by, options, ended_at)
		SELECT 1, 1, 'f', 'SUCCEEDED', 'me', '{}', now() - interval '1 hour' FROM generate_series(1, 3)`)
	d.exec(`UPDATE pelton.flow_run SET ended_at = now() WHERE id = 3`)
	d.exec(`INSERT INTO pelton.flow_node (run_id, no, path, status) SELECT r, n, 'n' || n, 'SUCCEEDED'
		FROM generate_series(1, 3) r, generate_series(0, 249) n`)
	if n, err := d.SweepRuns(t.Context(), time.Minute, 10); err != nil || n != 2 {
		t.Fatalf("swept %d runs, want 2 (%v)", n, err)
	}
	if _, err := d.Run(t.Context(), d.Pool, 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a run that was swept: %v", err)
	}
	var lefts []int
	for more := true; more; {
		var err error
		if more, err = d.SweepNodes(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := d.Pool.QueryRow(t.Context(), `SELECT count(*) + (SELECT count(*) FROM pelton.flow_swept) FROM pelton.flow_node`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		lefts = append(lefts, left)
	}
	if got := fmt.Sprint(lefts); got != "[652 552 452 352 252 250 250]" {
		t.Errorf("after each piece are left %v nodes and runs", got)
	}
}

func TestRunsAndReports(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := store.New(pool, "pelton")
	v, err := s.Push(t.Context(), contents{}.push("p", flowOf("f", "a", "b")))
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := s.Look(t.Context(), 0, true); err != nil || seen.Waiting || seen.Live || seen.Next >= 0 {
		t.Errorf("with nothing to do it saw %+v (%v)", seen, err)
	}
	var ids []int64
	for range 3 {
		err := s.Tx(t.Context(), func(tx pgx.Tx) error {
			project, err := s.LockProject(t.Context(), tx, "p")
			if err != nil {
				return err
			}
			live, err := s.LiveRuns(t.Context(), tx, project, "f")
			if err != nil || len(live) != len(ids) {
				return fmt.Errorf("%d live runs, want %d (%w)", len(live), len(ids), err)
			}
			id, err := s.CreateRun(t.Context(), tx, store.NewRun{
				VersionID: v.ID, Flow: "f", Status: "READY", By: "me", Priority: 5, Options: []byte(`{"a":1}`), Paths: []string{"a", "b"}, Statuses: []string{"READY", "READY"},
			})
			ids = append(ids, id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []int64{ids[2], ids[0], ids[2]} {
		if err := s.Ask(t.Context(), pool, id, -1, "begin", nil); err != nil {
			t.Fatal(err)
		}
	}
	waiting, next, err := s.Waiting(t.Context(), 0, 10)
	if err != nil || len(waiting) != 2 || waiting[0] != ids[2] || waiting[1] != ids[0] || next != 0 {
		t.Fatalf("waiting %v, want %d and %d (%v)", waiting, ids[2], ids[0], err)
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	err = s.Tx(t.Context(), func(tx pgx.Tx) error {
		run, _, err := s.TryLock(t.Context(), tx, ids[2])
		if err != nil || run.Flow != "f" || run.Version != 1 || string(run.Options) != `{"a":1}` {
			return fmt.Errorf("locked %+v (%w)", run, err)
		}
		if other := s.Tx(t.Context(), func(tx pgx.Tx) error {
			_, _, err := s.TryLock(t.Context(), tx, ids[2])
			return err
		}); !errors.Is(other, store.ErrNotFound) {
			return fmt.Errorf("locked twice: %w", other)
		}
		reports, err := s.Reports(t.Context(), tx, ids[2], 0, 10)
		if err != nil || len(reports) != 2 || *reports[0].Action != "begin" {
			return fmt.Errorf("reports %+v (%w)", reports, err)
		}
		if err := s.WriteNodes(t.Context(), tx, ids[2], []store.Node{{
			No: 1, Path: "b", Status: "QUEUED", JobID: new(int64(7)), QueuedAt: &now, Outputs: []byte(`{"k":"v"}`), Jobs: []int64{5, 6},
		}}); err != nil {
			return err
		}
		if err := s.AddNodes(t.Context(), tx, ids[2], []store.Node{{No: 2, Path: "b[0]", Status: "READY", Template: new(int32(1)), Index: new(int32(0)), Item: new("x")}}); err != nil {
			return err
		}
		if err := s.SetTimers(t.Context(), tx, ids[2], []store.Timer{{Node: -1, What: "late", After: time.Hour}, {Node: 1, What: "now"}}); err != nil {
			return err
		}
		return s.DeleteReports(t.Context(), tx, reports)
	})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := s.Nodes(t.Context(), pool, ids[2])
	if err != nil || len(nodes) != 3 {
		t.Fatalf("nodes %+v (%v)", nodes, err)
	}
	if b := nodes[1]; b.Status != "QUEUED" || *b.JobID != 7 || !b.QueuedAt.Equal(now) || string(b.Outputs) != `{"k":"v"}` || len(b.Jobs) != 2 || b.Jobs[1] != 6 {
		t.Errorf("node b is %+v", b)
	}
	if a := nodes[0]; a.Outputs != nil || a.Jobs != nil || a.JobID != nil {
		t.Errorf("node a is %+v", a)
	}
	if i := nodes[2]; *i.Item != "x" || *i.Template != 1 {
		t.Errorf("instance is %+v", i)
	}
	fired, err := s.FireTimers(t.Context(), 10)
	if err != nil || fired != 1 {
		t.Errorf("fired %d (%v)", fired, err)
	}
	if seen, err := s.Look(t.Context(), 0, true); err != nil || !seen.Waiting || !seen.Live || seen.Next < 3000 || seen.Next > 3600 {
		t.Errorf("saw %+v (%v)", seen, err)
	}
	if waiting, next, err = s.Waiting(t.Context(), 0, 10); err != nil || len(waiting) != 2 || next != 0 {
		t.Errorf("waiting %v (%v)", waiting, err)
	}
}
