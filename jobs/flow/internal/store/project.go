package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// File is a file of a version.
type File struct {
	Path       string
	Hash       []byte // SHA-256 of its contents
	Bytes      int64
	Executable bool
}

// Push is what becomes a version.
type Push struct {
	Project string
	By      string
	Audited string // who the audit names
	Graphs  *graph.Project
	Notes   []graph.Note
	Files   []File
	Open    func(path string) (io.ReadCloser, error) // reads a file of Files

	// Of others, in the transaction: what locks before the project's row is locked, and what needs the version. nil: nothing.
	Lock func(ctx context.Context, tx pgx.Tx) error
	Then func(ctx context.Context, tx pgx.Tx, v Version) error
}

// Version is a pushed version of a project.
type Version struct {
	ID       int64        `json:"id"`
	Project  string       `json:"project"`
	No       int          `json:"version"`
	PushedAt time.Time    `json:"pushed_at"`
	PushedBy string       `json:"pushed_by"`
	Format   string       `json:"format"`
	Files    int          `json:"files"`
	Bytes    int64        `json:"bytes"`
	Flows    int          `json:"flows"`
	Notes    []graph.Note `json:"notes,omitempty"`
}

// partBytes is the size of a part of a file's content.
const partBytes = 1 << 20

// Push stores a version, and who pushed it in the audit. Contents that are stored already are not sent again.
func (s *Store) Push(ctx context.Context, p Push) (v Version, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := s.exec(ctx, tx, "make_project", p.Project); err != nil {
			return err
		}
		if err := s.pushContents(ctx, tx, p); err != nil {
			return err
		}
		if p.Lock != nil {
			if err := p.Lock(ctx, tx); err != nil {
				return err
			}
		}
		notes, err := json.Marshal(p.Notes)
		if err != nil {
			return fmt.Errorf("encode notes: %w", err)
		}
		var total int64
		for _, f := range p.Files {
			total += f.Bytes
		}
		v, err = one[Version](ctx, s, tx, "insert_version", p.Project, p.By, p.Graphs.Format, len(p.Files), total, string(notes), len(p.Graphs.Flows))
		if err != nil {
			return err
		}
		if err := s.insertFiles(ctx, tx, v.ID, p.Files); err != nil {
			return err
		}
		if err := s.insertFlows(ctx, tx, v.ID, p.Graphs.Flows); err != nil {
			return err
		}
		var before any
		if v.No > 1 {
			before = map[string]any{"version": v.No - 1}
		}
		if err := s.Audit(ctx, tx, p.Audited, "flow.push", "project "+p.Project, before, map[string]any{"version": v.No}); err != nil || p.Then == nil {
			return err
		}
		return p.Then(ctx, tx, v)
	})
	if err != nil {
		return Version{}, fmt.Errorf("push project %q: %w", p.Project, err)
	}
	return v, nil
}

// pushContents stores those contents that are missing, and keeps the others from being swept away until the commit.
func (s *Store) pushContents(ctx context.Context, tx pgx.Tx, p Push) error {
	hashes := make([][]byte, len(p.Files))
	for i, f := range p.Files {
		hashes[i] = f.Hash
	}
	known, err := column[[]byte](ctx, s, tx, "keep_contents", hashes)
	if err != nil {
		return err
	}
	stored := map[string]bool{}
	for _, hash := range known {
		stored[string(hash)] = true
	}
	for _, f := range p.Files {
		if stored[string(f.Hash)] {
			continue
		}
		stored[string(f.Hash)] = true
		if err := s.pushContent(ctx, tx, f, p.Open); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
	}
	return nil
}

func (s *Store) pushContent(ctx context.Context, tx pgx.Tx, f File, open func(string) (io.ReadCloser, error)) error {
	r, err := open(f.Path)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read
	buf := make([]byte, min(partBytes, f.Bytes+1))
	for part := 0; ; part++ {
		n, err := io.ReadFull(r, buf)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return err
		}
		if n > 0 || part == 0 {
			if _, err := s.exec(ctx, tx, "insert_content", f.Hash, part, buf[:n]); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

func (s *Store) insertFiles(ctx context.Context, tx pgx.Tx, version int64, files []File) error {
	paths, hashes := make([]string, len(files)), make([][]byte, len(files))
	sizes, executable := make([]int64, len(files)), make([]bool, len(files))
	for i, f := range files {
		paths[i], hashes[i], sizes[i], executable[i] = f.Path, f.Hash, f.Bytes, f.Executable
	}
	_, err := s.exec(ctx, tx, "insert_files", version, paths, hashes, sizes, executable)
	return err
}

func (s *Store) insertFlows(ctx context.Context, tx pgx.Tx, version int64, flows []*graph.Flow) error {
	names, nodes, graphs := make([]string, len(flows)), make([]int, len(flows)), make([]string, len(flows))
	for i, f := range flows {
		data, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("encode flow %q: %w", f.Name, err)
		}
		names[i], nodes[i], graphs[i] = f.Name, len(f.Nodes), string(data)
	}
	_, err := s.exec(ctx, tx, "insert_flows", version, names, nodes, graphs)
	return err
}

// Version reads a version of a project; no 0 is the newest. ErrNotFound if there is none.
func (s *Store) Version(ctx context.Context, db DB, project string, no int) (Version, error) {
	return one[Version](ctx, s, db, "version", project, no)
}

// Versions lists the versions of a project, the newest first; of all projects if project is "".
func (s *Store) Versions(ctx context.Context, project string, limit int) ([]Version, error) {
	return all[Version](ctx, s, s.Pool, "versions", project, limit)
}

// VersionsBefore lists the versions of a project with numbers below one, the newest first.
func (s *Store) VersionsBefore(ctx context.Context, project string, before, limit int) ([]Version, error) {
	return all[Version](ctx, s, s.Pool, "versions_before", project, before, limit)
}

// FlowEntry is a flow of a project's newest version.
type FlowEntry struct {
	Project   string     `json:"project"`
	Version   int        `json:"version"`
	Flow      string     `json:"flow"`
	Nodes     int        `json:"nodes"`
	LastRun   *int64     `json:"last_run,omitempty"`
	Status    *string    `json:"last_status,omitempty"`
	StartedAt *time.Time `json:"last_started_at,omitempty"`
}

// FlowFilter selects flows of the newest versions; zero fields select all.
type FlowFilter struct {
	Project                 string
	Projects                []string // of one of these; nil: of any
	AfterProject, AfterFlow string   // behind this one, by project and name
}

// Flows lists flows of the newest versions, with their last runs, by project and name; limit 0: all.
func (s *Store) Flows(ctx context.Context, f FlowFilter, limit int) ([]FlowEntry, error) {
	return all[FlowEntry](ctx, s, s.Pool, "flows", f.Project, f.AfterProject, f.AfterFlow, limit, f.Projects)
}

// Graph reads a flow of a version, and tells how many bytes it is stored in. ErrNotFound if there is none.
func (s *Store) Graph(ctx context.Context, db DB, version int64, flow string) (g *graph.Flow, size int, err error) {
	row, err := one[struct{ Graph []byte }](ctx, s, db, "graph", version, flow)
	if err != nil {
		return nil, 0, err
	}
	g = &graph.Flow{}
	if err := json.Unmarshal(row.Graph, g); err != nil {
		return nil, 0, fmt.Errorf("decode flow %q of version %d: %w", flow, version, err)
	}
	return g, len(row.Graph), nil
}

// Files lists the files of a version by path.
func (s *Store) Files(ctx context.Context, version int64) ([]File, error) {
	return all[File](ctx, s, s.Pool, "files", version)
}

// CopyContent writes a file's content to w, part by part.
func (s *Store) CopyContent(ctx context.Context, w io.Writer, hash []byte) error {
	for part := 0; ; part++ {
		data, err := column[[]byte](ctx, s, s.Pool, "content", hash, part)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			if part == 0 {
				return fmt.Errorf("content %x: %w", hash, ErrNotFound)
			}
			return nil
		}
		if _, err := w.Write(data[0]); err != nil {
			return err
		}
	}
}

// SweepRuns deletes runs that ended longer ago than the age, at most n. Their nodes are left to SweepNodes.
func (s *Store) SweepRuns(ctx context.Context, age time.Duration, n int) (runs int64, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		runs, err = s.exec(ctx, tx, "sweep_runs", age, n)
		return err
	})
	return runs, err
}

// SweepNodes deletes nodes of runs that were swept, about n, and tells whether there may be more.
func (s *Store) SweepNodes(ctx context.Context, n int) (more bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		row, err := one[struct{ Runs int }](ctx, s, tx, "sweep_nodes", n)
		more = row.Runs > 0
		return err
	})
	return more, err
}

// SweepVersions deletes versions that are older than the age, are not among the newest of their project, as many as keep says, and that no run
// needs, and contents that no version needs; at most n of each.
func (s *Store) SweepVersions(ctx context.Context, age time.Duration, keep, n int) (versions, contents int64, err error) {
	if versions, err = s.exec(ctx, s.Pool, "sweep_versions", keep, age, n); err != nil {
		return 0, 0, err
	}
	err = s.Tx(ctx, func(tx pgx.Tx) error { // a push that commits between the two statements is seen by the second
		hashes, err := column[[]byte](ctx, s, tx, "lock_unused", n)
		if err != nil || len(hashes) == 0 {
			return err
		}
		contents, err = s.exec(ctx, tx, "delete_unused", hashes)
		return err
	})
	return versions, contents, err
}
