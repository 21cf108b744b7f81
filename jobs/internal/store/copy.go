package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Copier is what COPY runs on: a connection or a transaction.
type Copier interface {
	DB
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

var (
	jobColumns = []string{
		"id", "created_at", "scheduled_at", "priority", "max_attempts", "kind", "queue", "args", "metadata", "tags",
	}
	readyColumns = []string{"priority", "line", "job_ids"} // never seq: its default must draw it after the lock
)

// CopyIn puts jobs without unique keys in by COPY and returns their ids in order. Must run in a transaction: jobs go in before
// their places.
func (s *Store) CopyIn(ctx context.Context, db Copier, jobs []NewJob, hint bool) ([]int64, error) {
	var ids []int64
	var now time.Time
	if err := db.QueryRow(ctx, s.sql.Get("job_ids"), len(jobs)).Scan(&ids, &now); err != nil {
		return nil, fmt.Errorf("draw job ids: %w", err)
	}
	source := &jobSource{jobs: jobs, ids: ids, now: now, row: make([]any, len(jobColumns)), i: -1}
	if err := s.copyRows(ctx, db, "job", jobColumns, source); err != nil {
		return nil, err
	}
	places := sortOut(jobs, ids, now)
	if len(places.lines) > 0 {
		if err := s.copyRows(ctx, db, "job_ready", readyColumns, places.tickets()); err != nil {
			return nil, err
		}
	}
	if len(places.scheduled) > 0 {
		if _, err := db.Exec(ctx, s.sql.Get("schedule"), places.scheduled, places.due); err != nil {
			return nil, fmt.Errorf("schedule jobs: %w", err)
		}
	}
	if len(places.parked) > 0 {
		if _, err := db.Exec(ctx, s.sql.Get("park"), places.parked); err != nil {
			return nil, fmt.Errorf("park jobs: %w", err)
		}
	}
	if hint && len(places.lines) > 0 {
		if _, err := db.Exec(ctx, s.sql.Get("wake"), places.names()); err != nil {
			return nil, fmt.Errorf("hint at new jobs: %w", err)
		}
	}
	return ids, nil
}

func (s *Store) copyRows(ctx context.Context, db Copier, table string, columns []string, rows pgx.CopyFromSource) error {
	if _, err := db.CopyFrom(ctx, pgx.Identifier{s.Schema, table}, columns, rows); err != nil {
		return fmt.Errorf("copy into %s: %w", table, err)
	}
	return nil
}

// jobSource feeds jobs to COPY, reusing one row.
type jobSource struct {
	jobs []NewJob
	ids  []int64
	now  time.Time
	row  []any
	i    int
}

func (r *jobSource) Next() bool {
	r.i++
	return r.i < len(r.jobs)
}

func (r *jobSource) Values() ([]any, error) {
	j := &r.jobs[r.i]
	r.row[0], r.row[1], r.row[2] = r.ids[r.i], r.now, j.Due
	r.row[3], r.row[4] = j.Priority, j.MaxAttempts
	r.row[5], r.row[6], r.row[7], r.row[8], r.row[9] = j.Kind, j.Queue, j.Args, j.Metadata, j.Tags
	return r.row, nil
}

func (r *jobSource) Err() error { return nil }
