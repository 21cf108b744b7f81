package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// MoveLimits are those of a mover's transaction: it skips locked rows, so it waits for nothing but the insertion of a unique key.
var MoveLimits = Limits{Lock: 100 * time.Millisecond, Statement: 30 * time.Second, NoSeqScan: true}

// Conflict is the reason of a dead letter whose unique key was taken by another job while it waited for a retry.
const Conflict = "conflict"

// Due is a scheduled run whose time has come.
type Due struct {
	JobID    int64
	Run      int32
	Attempts int16
	Retry    bool // after an error or a loss
	Wake     time.Time
	Asked    time.Time     // the time asked for
	Void     state.Outcome // Cancelled or VoidDeleted: it must not start; Moved says nothing here; "": none
}

// Next is what a mover sees when it looks.
type Next struct {
	Any    bool          // a job is scheduled
	In     time.Duration // until the first one is due, at most an hour; 0: it is due
	Newest int64         // row of floor
	Drawn  bool          // tickets entered the line since its newest row of floor
}

// NextDue looks for the first scheduled job at or above the floor. One statement.
func (s *Store) NextDue(ctx context.Context, floor int64) (Next, error) {
	var n Next
	var micros *int64
	if err := s.Pool.QueryRow(ctx, s.sql.Get("next_due"), floor).Scan(&micros, &n.Newest, &n.Drawn); err != nil {
		return Next{}, fmt.Errorf("read the next scheduled job: %w", err)
	}
	if micros != nil {
		n.Any = true
		n.In = time.Duration(max(0, min(*micros, int64(time.Hour/time.Microsecond)))) * time.Microsecond
	}
	return n, nil
}

// TakeDue deletes up to n due jobs from job_scheduled and returns them, first come first.
func (s *Store) TakeDue(ctx context.Context, tx DB, floor int64, n int) ([]Due, error) {
	rows, err := tx.Query(ctx, s.sql.Get("take_due"), floor, n)
	if err != nil {
		return nil, fmt.Errorf("take due jobs: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Due])
	if err != nil {
		return nil, fmt.Errorf("take due jobs: %w", err)
	}
	slices.SortFunc(due, func(a, b Due) int { return cmp.Or(a.Wake.Compare(b.Wake), cmp.Compare(a.JobID, b.JobID)) })
	return due, nil
}

// PutBack puts a due job back into job_scheduled, to be looked at again after a while.
func (s *Store) PutBack(ctx context.Context, tx DB, d Due, after time.Duration) error {
	if _, err := tx.Exec(ctx, s.sql.Get("put_back"), d.JobID, d.Run, d.Attempts, d.Retry, d.Asked, after.Seconds()); err != nil {
		return fmt.Errorf("put a due job back: %w", err)
	}
	return nil
}

// KeepKeys takes the unique keys of jobs again and returns, in order, who holds them now.
func (s *Store) KeepKeys(ctx context.Context, tx DB, jobs []Facts) ([]int64, error) {
	keys, ids, states := make([][]byte, len(jobs)), make([]int64, len(jobs)), make([]int16, len(jobs))
	for i, j := range jobs {
		keys[i], ids[i], states[i] = j.UniqueKey, j.JobID, j.UniqueStates
	}
	var holders []int64
	if err := tx.QueryRow(ctx, s.sql.Get("keep_keys"), keys, ids, states).Scan(&holders); err != nil {
		return nil, fmt.Errorf("take unique keys again: %w", err)
	}
	return holders, nil
}
