package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Reasons why a job becomes a dead letter.
const (
	Exhausted = "exhausted" // it used up its attempts
	Poison    = "poison"    // it was lost with its process again and again
)

// BuryTx copies jobs whole into the dead letters. It is called in the transaction that recorded their last run as discarded,
// after that: the copy holds all attempts. A job that has a letter already keeps it.
func (s *Store) BuryTx(ctx context.Context, db DB, ids []int64, reason string) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := db.Exec(ctx, s.sql.Get("bury"), ids, reason); err != nil {
		return fmt.Errorf("copy %d jobs to the dead letters: %w", len(ids), err)
	}
	return nil
}

// DeadLetter is a copy of a job that was given up.
type DeadLetter struct {
	JobID       int64
	DiedAt      time.Time
	CreatedAt   time.Time
	ScheduledAt *time.Time
	Priority    int
	MaxAttempts int
	Attempt     int
	Reason      string // exhausted, poison or conflict
	Kind        string
	Queue       string
	Error       string // of the last run
	EncodedArgs []byte
	Metadata    []byte
	Tags        []string
	Attempts    []DeadAttempt
}

// DeadAttempt is a run in a dead letter.
type DeadAttempt struct {
	Run       int        `json:"run"`
	Attempt   int        `json:"attempt"`
	Outcome   string     `json:"outcome"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   time.Time  `json:"ended_at"`
	Executor  string     `json:"executor"` // its client's id; empty if nobody ran it
	Error     string     `json:"error"`
	Trace     string     `json:"trace"`
}

// DeadFilter says which dead letters are meant. Zero fields filter nothing.
type DeadFilter struct {
	IDs    []int64
	Kinds  []string
	Queues []string
	Reason string
	Since  *time.Time
	Until  *time.Time // of death
}

// args are the first parameters of a statement, for a plan of their own: a plan for all would use no index.
func (f DeadFilter) args() []any {
	return []any{pgx.QueryExecModeCacheDescribe, nullIfNo(f.IDs), nullIfNo(f.Kinds), nullIfNo(f.Queues), nullIfEmpty(f.Reason), f.Since, f.Until}
}

// ListDead reads dead letters, newest death first, from the one after the given letter on (nil: from the start), at most limit and
// about so many bytes (0: no bound). more: others follow.
func (s *Store) ListDead(
	ctx context.Context, db DB, filter DeadFilter, after *DeadLetter, limit, bytes int,
) (letters []*DeadLetter, more bool, err error) {
	letters, more, err = part(limit, bytes, scanDeadLetter, func(last **DeadLetter, limit int) (pgx.Rows, error) {
		var afterID *int64
		var afterTime *time.Time
		if last != nil {
			after = *last
		}
		if after != nil {
			afterID, afterTime = &after.JobID, &after.DiedAt
		}
		return db.Query(ctx, s.sql.Get("list_dead"), append(filter.args(), afterID, afterTime, limit)...)
	})
	if err != nil {
		return nil, false, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, more, nil
}

func scanDeadLetter(row pgx.CollectableRow) (*DeadLetter, error) {
	var d DeadLetter
	var args, metadata string
	var attempts []byte
	err := row.Scan(&d.JobID, &d.DiedAt, &d.CreatedAt, &d.ScheduledAt, &d.Priority, &d.MaxAttempts, &d.Attempt, &d.Reason, &d.Kind,
		&d.Queue, &d.Error, &args, &metadata, &d.Tags, &attempts)
	if err != nil {
		return nil, err
	}
	d.EncodedArgs, d.Metadata = []byte(args), []byte(metadata)
	if err := json.Unmarshal(attempts, &d.Attempts); err != nil {
		return nil, fmt.Errorf("attempts of dead letter %d: %w", d.JobID, err)
	}
	return &d, nil
}

// Redrive makes a new job of a dead letter and returns its id. The error is a *NodeError if the job worked for a node of a flow.
func (s *Store) Redrive(ctx context.Context, db DB, id int64, actor string) (job int64, err error) {
	err = db.QueryRow(ctx, s.sql.Get("redrive"), id, nullIfEmpty(actor)).Scan(&job)
	return job, operateError(err, "redrive dead letter", id)
}

// Redriven is a dead letter and the job made of it.
type Redriven struct {
	DeadID int64
	JobID  int64
}

// RedriveMany makes new jobs of the oldest dead letters that match, at most limit, but for those of flows' nodes.
func (s *Store) RedriveMany(ctx context.Context, db DB, filter DeadFilter, limit int, actor string) ([]Redriven, error) {
	rows, err := db.Query(ctx, s.sql.Get("redrive_many"), append(filter.args(), nullIfEmpty(actor), limit)...)
	if err != nil {
		return nil, fmt.Errorf("redrive dead letters: %w", err)
	}
	made, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Redriven])
	if err != nil {
		return nil, fmt.Errorf("redrive dead letters: %w", err)
	}
	return made, nil
}

// RedrivenAs lists the jobs that redrives made of a job's dead letters, the newest first, at most 10.
func (s *Store) RedrivenAs(ctx context.Context, db DB, id int64) ([]int64, error) {
	return query(ctx, db, s.sql.Get("redriven_as"), "jobs made of a dead letter", pgx.RowTo[int64], id)
}

// DeadNodes counts the dead letters that match and are of flows' nodes, up to limit.
func (s *Store) DeadNodes(ctx context.Context, db DB, filter DeadFilter, limit int) (n int, err error) {
	err = db.QueryRow(ctx, s.sql.Get("dead_nodes"), append(filter.args(), limit)...).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return n, nil
}

// Discard removes a dead letter for good and tells whether there was one.
func (s *Store) Discard(ctx context.Context, db DB, id int64, actor string) (found bool, err error) {
	err = db.QueryRow(ctx, s.sql.Get("discard"), id, nullIfEmpty(actor)).Scan(&found)
	return found, operateError(err, "discard dead letter", id)
}

// DiscardMany removes the oldest dead letters that match, at most limit, and returns their ids.
func (s *Store) DiscardMany(ctx context.Context, db DB, filter DeadFilter, limit int, actor string) ([]int64, error) {
	rows, err := db.Query(ctx, s.sql.Get("discard_many"), append(filter.args(), nullIfEmpty(actor), limit)...)
	if err != nil {
		return nil, fmt.Errorf("discard dead letters: %w", err)
	}
	ids, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (id int64, err error) {
		var found bool
		err = row.Scan(&id, &found)
		return id, err
	})
	if err != nil {
		return nil, fmt.Errorf("discard dead letters: %w", err)
	}
	return ids, nil
}
