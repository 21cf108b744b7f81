package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Job is what was asked, with what a person changed since.
type Job struct {
	ID            int64
	CreatedAt     time.Time
	ScheduledAt   *time.Time
	Priority      int16
	MaxAttempts   int16
	UniqueStates  int16
	Kind          string
	Queue         string
	Args          []byte
	Metadata      []byte // nil: {}
	ExtraMetadata []byte // from job_change; nil: none
	Tags          []string
	UniqueKey     []byte
	Due           *time.Time // the time that a person gave the run DueRun; nil: none
	DueRun        int32
}

// Attempt is an ended run.
type Attempt struct {
	JobID     int64
	Run       int32
	Attempt   int16
	Outcome   string
	StartedAt *time.Time
	EndedAt   time.Time
	Executor  string
	Error     *string
	Trace     string
	Output    []byte
	Metadata  []byte
	Carried   []byte     // what the runs before left in the metadata; nil: not noted here
	Due       *time.Time // when the next run was due; nil: at once
}

// Void says that a run must not start.
type Void struct {
	JobID  int64
	Run    int32
	Reason string
}

// Voids of claimed jobs by job.
type Voids map[int64][]Void

// Applies returns the reason why a run must not start, or "". A cancel holds for its run and the one after it.
func (v Voids) Applies(jobID int64, run int32) string {
	for _, void := range v[jobID] {
		if void.Run == run || void.Reason == "cancelled" && void.Run == run-1 || void.Reason == "deleted" {
			return void.Reason
		}
	}
	return ""
}

// Claimed is what there is to know about claimed jobs.
type Claimed struct {
	Jobs     map[int64]*Job
	Attempts map[int64][]Attempt // earlier runs, in order: the last EarlierRuns, and as many that failed before them
	Voids    Voids
}

// ReadClaimed reads the jobs with these ids, their voids, and what came before the runs in again.
func (s *Store) ReadClaimed(ctx context.Context, ids []int64, again []RunKey) (*Claimed, error) {
	ctx, cancel := claimLimits.patience(ctx)
	defer cancel()
	c := &Claimed{Jobs: make(map[int64]*Job, len(ids))}
	if err := s.readJobs(ctx, ids, c); err != nil {
		return nil, err
	}
	if err := s.readChanges(ctx, ids, c); err != nil {
		return nil, err
	}
	if err := s.readVoids(ctx, ids, c); err != nil {
		return nil, err
	}
	if len(again) == 0 {
		return c, nil
	}
	return c, s.readAttempts(ctx, again, c)
}

func (s *Store) readJobs(ctx context.Context, ids []int64, c *Claimed) error {
	rows, err := s.byIDs(ctx, s.Pool, "read", ids)
	if err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	defer rows.Close()
	slab := make([]Job, len(ids))
	var row Job // scanned into again and again, so that the places are boxed once
	var kind, queue repeated
	into := []any{
		&row.ID, &row.CreatedAt, &row.ScheduledAt, &row.Priority, &row.MaxAttempts, &row.UniqueStates, &kind, &queue,
		&row.Args, &row.Metadata, &row.Tags, &row.UniqueKey,
	}
	for i := 0; rows.Next(); i++ {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("read jobs: %w", err)
		}
		row.Kind, row.Queue = string(kind), string(queue)
		slab[i] = row
		c.Jobs[row.ID] = &slab[i]
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	return nil
}

// repeated is a text column whose neighbours mostly hold the same: it keeps the string it has while that is so.
type repeated string

// ScanBytes implements pgtype.BytesScanner.
func (r *repeated) ScanBytes(b []byte) error {
	if string(*r) != string(b) {
		*r = repeated(b)
	}
	return nil
}

// readChanges puts what a person changed into the jobs read.
func (s *Store) readChanges(ctx context.Context, ids []int64, c *Claimed) error {
	rows, err := s.Pool.Query(ctx, s.sql.Get("read_changes"), ids)
	if err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	var id int64
	var priority, maxAttempts *int16
	var queue *string
	var args, metadata []byte
	var due *time.Time
	var dueRun int32
	_, err = pgx.ForEachRow(rows, []any{&id, &priority, &maxAttempts, &queue, &args, &metadata, &due, &dueRun}, func() error {
		j, found := c.Jobs[id]
		if !found {
			return nil
		}
		j.Priority, j.MaxAttempts = *cmp.Or(priority, &j.Priority), *cmp.Or(maxAttempts, &j.MaxAttempts)
		j.Queue, j.ExtraMetadata = *cmp.Or(queue, &j.Queue), slices.Clone(metadata)
		j.Due, j.DueRun = due, dueRun
		if args != nil {
			j.Args = slices.Clone(args)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	return nil
}

func (s *Store) readVoids(ctx context.Context, ids []int64, c *Claimed) error {
	rows, err := s.Pool.Query(ctx, s.sql.Get("read_voids"), ids)
	if err != nil {
		return fmt.Errorf("read voids: %w", err)
	}
	voids, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Void])
	if err != nil {
		return fmt.Errorf("read voids: %w", err)
	}
	if len(voids) > 0 {
		c.Voids = Voids{}
	}
	for _, v := range voids {
		c.Voids[v.JobID] = append(c.Voids[v.JobID], v)
	}
	return nil
}

func (s *Store) readAttempts(ctx context.Context, runs []RunKey, c *Claimed) error {
	rows, err := s.beforeRuns(ctx, s.Pool, "read_attempts", runs)
	if err != nil {
		return fmt.Errorf("read attempts: %w", err)
	}
	attempts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Attempt])
	if err != nil {
		return fmt.Errorf("read attempts: %w", err)
	}
	c.Attempts = map[int64][]Attempt{}
	for _, a := range attempts {
		c.Attempts[a.JobID] = append(c.Attempts[a.JobID], a)
	}
	return s.readLeft(ctx, runs, c)
}

// readLeft reads what else the jobs of these runs have in their metadata, where none of the runs read has noted it: when many
// runs in a row were ended by somebody else than a worker.
func (s *Store) readLeft(ctx context.Context, runs []RunKey, c *Claimed) error {
	var deep []RunKey
	for _, r := range runs {
		if r.Run > EarlierRuns+1 && !slices.ContainsFunc(c.Attempts[r.JobID], func(a Attempt) bool { return a.Carried != nil }) {
			deep = append(deep, r)
		}
	}
	if len(deep) == 0 {
		return nil
	}
	rows, err := s.beforeRuns(ctx, s.Pool, "read_left", deep)
	if err != nil {
		return fmt.Errorf("read all earlier runs: %w", err)
	}
	var a Attempt
	_, err = pgx.ForEachRow(rows, []any{&a.JobID, &a.Run, &a.Output, &a.Metadata, &a.Carried}, func() error {
		left := Attempt{JobID: a.JobID, Run: a.Run}
		left.Output, left.Metadata, left.Carried = slices.Clone(a.Output), slices.Clone(a.Metadata), slices.Clone(a.Carried)
		c.Attempts[a.JobID] = append(c.Attempts[a.JobID], left)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read all earlier runs: %w", err)
	}
	for _, r := range deep {
		slices.SortStableFunc(c.Attempts[r.JobID], func(a, b Attempt) int { return cmp.Compare(a.Run, b.Run) })
	}
	return nil
}
