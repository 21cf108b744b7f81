package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Drawn are new job ids in order, with the database's time when they were drawn.
type Drawn struct {
	IDs []int64
	Now time.Time
}

// DrawIDs draws n job ids. They need not be drawn in the transaction that uses them.
func (s *Store) DrawIDs(ctx context.Context, db DB, n int) (Drawn, error) {
	var d Drawn
	if err := db.QueryRow(ctx, s.sql.Get("job_ids"), n).Scan(&d.IDs, &d.Now); err != nil {
		return Drawn{}, fmt.Errorf("draw job ids: %w", err)
	}
	return d, nil
}

// CopyIn puts jobs without unique keys in by COPY, under the ids drawn: jobs first, then their places.
func (s *Store) CopyIn(ctx context.Context, tx pgx.Tx, jobs []NewJob, drawn Drawn, hint bool) error {
	ids, now := drawn.IDs, drawn.Now
	source := newBinaryCopy(len(jobs), func(b []byte, i int) []byte { return appendJob(b, &jobs[i], ids[i], now) })
	if err := s.copyRows(ctx, tx, "copy_jobs", source); err != nil {
		return err
	}
	places := sortOut(jobs, ids, now)
	if len(places.lines) > 0 {
		if err := s.copyRows(ctx, tx, "copy_tickets", places.tickets()); err != nil {
			return err
		}
	}
	if len(places.scheduled) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("schedule"), places.scheduled, places.due); err != nil {
			return fmt.Errorf("schedule jobs: %w", err)
		}
	}
	if len(places.parked) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("park"), places.parked); err != nil {
			return fmt.Errorf("park jobs: %w", err)
		}
	}
	if hint && len(places.lines) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("wake"), places.names()); err != nil {
			return fmt.Errorf("hint at new jobs: %w", err)
		}
	}
	return nil
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
