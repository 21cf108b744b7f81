package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// CopyIn puts jobs without unique keys in by COPY and returns their ids in order: jobs first, then their places.
func (s *Store) CopyIn(ctx context.Context, tx pgx.Tx, jobs []NewJob, hint bool) ([]int64, error) {
	var ids []int64
	var now time.Time
	if err := tx.QueryRow(ctx, s.sql.Get("job_ids"), len(jobs)).Scan(&ids, &now); err != nil {
		return nil, fmt.Errorf("draw job ids: %w", err)
	}
	source := newBinaryCopy(len(jobs), func(b []byte, i int) []byte { return appendJob(b, &jobs[i], ids[i], now) })
	if err := s.copyRows(ctx, tx, "copy_jobs", source); err != nil {
		return nil, err
	}
	places := sortOut(jobs, ids, now)
	if len(places.lines) > 0 {
		if err := s.copyRows(ctx, tx, "copy_tickets", places.tickets()); err != nil {
			return nil, err
		}
	}
	if len(places.scheduled) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("schedule"), places.scheduled, places.due); err != nil {
			return nil, fmt.Errorf("schedule jobs: %w", err)
		}
	}
	if len(places.parked) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("park"), places.parked); err != nil {
			return nil, fmt.Errorf("park jobs: %w", err)
		}
	}
	if hint && len(places.lines) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("wake"), places.names()); err != nil {
			return nil, fmt.Errorf("hint at new jobs: %w", err)
		}
	}
	return ids, nil
}

func (s *Store) copyRows(ctx context.Context, tx pgx.Tx, name string, rows *binaryCopy) error {
	if _, err := tx.Conn().PgConn().CopyFrom(ctx, rows, s.sql.Get(name)); err != nil {
		return fmt.Errorf("copy rows (%s): %w", name, err)
	}
	return nil
}

// appendJob encodes a row for copy_jobs.
func appendJob(b []byte, j *NewJob, id int64, now time.Time) []byte {
	b = appendInt16(b, 10)
	b = appendTime(appendBigint(b, id), now)
	if j.Due != nil {
		b = appendTime(b, *j.Due)
	} else {
		b = appendNull(b)
	}
	b = appendSmallint(appendSmallint(b, j.Priority), j.MaxAttempts)
	b = appendText(appendText(appendText(b, j.Kind), j.Queue), text(j.Args))
	if j.Metadata != nil {
		b = appendJSONB(b, j.Metadata)
	} else {
		b = appendNull(b)
	}
	if len(j.Tags) > 0 {
		return appendTexts(b, j.Tags)
	}
	return appendNull(b)
}
