package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// LostJobs lists jobs that have been in no place for longer than grace. There must be none, ever.
func (s *Store) LostJobs(ctx context.Context, db DB, grace time.Duration) ([]int64, error) {
	return s.auditIDs(ctx, db, "audit_lost", grace.Microseconds())
}

// JobsTwice lists jobs that are in more than one place. There must be none, ever.
func (s *Store) JobsTwice(ctx context.Context, db DB) ([]int64, error) {
	return s.auditIDs(ctx, db, "audit_twice")
}

// StaleRuns lists jobs with a run that has ended and would still be handed out. There must be none, ever.
func (s *Store) StaleRuns(ctx context.Context, db DB) ([]int64, error) {
	return s.auditIDs(ctx, db, "audit_stale")
}

func (s *Store) auditIDs(ctx context.Context, db DB, name string, args ...any) ([]int64, error) {
	rows, err := db.Query(ctx, s.sql.Get(name), append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ids, nil
}

// RecordAudit records what a person has done, if the database role may; after is JSON.
func (s *Store) RecordAudit(ctx context.Context, db DB, actor, action, target, after string) error {
	var may bool
	if err := db.QueryRow(ctx, s.sql.Get("may_audit")).Scan(&may); err != nil {
		return fmt.Errorf("ask who may write the audit: %w", err)
	}
	if !may {
		return nil
	}
	if _, err := db.Exec(ctx, s.sql.Get("record_audit"), nullIfEmpty(actor), action, target, after); err != nil {
		return fmt.Errorf("record %s in the audit: %w", action, err)
	}
	return nil
}
