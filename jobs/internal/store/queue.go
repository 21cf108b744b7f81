package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"
)

// PauseQueue pauses a queue, "*" all; no change if it is paused. Executors get a hint at the commit.
func (s *Store) PauseQueue(ctx context.Context, db DB, name, actor string) error {
	if _, err := db.Exec(ctx, s.sql.Get("pause_queue"), name, nullIfEmpty(actor)); err != nil {
		return fmt.Errorf("pause queue %q: %w", name, err)
	}
	return nil
}

// ResumeQueue resumes a queue, "*" all; no change if it is not paused. Executors get a hint at the commit.
func (s *Store) ResumeQueue(ctx context.Context, db DB, name, actor string) error {
	if _, err := db.Exec(ctx, s.sql.Get("resume_queue"), name, nullIfEmpty(actor)); err != nil {
		return fmt.Errorf("resume queue %q: %w", name, err)
	}
	return nil
}

// UpdateQueue sets a queue's metadata, a JSON object.
func (s *Store) UpdateQueue(ctx context.Context, db DB, name string, metadata []byte, actor string) error {
	if _, err := db.Exec(ctx, s.sql.Get("update_queue"), name, string(metadata), nullIfEmpty(actor)); err != nil {
		return fmt.Errorf("update queue %q: %w", name, err)
	}
	return nil
}

// Queues lists the queues that somebody named or that a living executor works, by name; name selects one, "" all.
func (s *Store) Queues(ctx context.Context, db DB, name string, limit int) ([]*rivertype.Queue, error) {
	rows, err := db.Query(ctx, s.sql.Get("queues"), nullIfEmpty(name), limit)
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	queues, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*rivertype.Queue, error) {
		var q rivertype.Queue
		var metadata string
		err := row.Scan(&q.Name, &q.CreatedAt, &q.UpdatedAt, &q.PausedAt, &metadata)
		q.Metadata = []byte(metadata)
		return &q, err
	})
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return queues, nil
}
