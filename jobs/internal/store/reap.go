package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// ReapLimits are those of a reaper's transaction. The lock timeout is short: a run held by a worker's open transaction must
// delay itself only.
var ReapLimits = Limits{Lock: 75 * time.Millisecond, Statement: 30 * time.Second}

// Beat is an executor's heartbeat counter.
type Beat struct {
	Executor int64
	Count    int64
	Alive    bool // false: it has stopped, was declared dead, or has no row, and still has leases
}

// Beats reads the counters of all executors that are of interest to a reaper. One statement.
func (s *Store) Beats(ctx context.Context) ([]Beat, error) {
	rows, err := s.Pool.Query(ctx, s.sql.Get("beats"))
	if err != nil {
		return nil, fmt.Errorf("read heartbeats: %w", err)
	}
	beats, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Beat])
	if err != nil {
		return nil, fmt.Errorf("read heartbeats: %w", err)
	}
	return beats, nil
}

// MarkDead declares an executor dead unless its counter has moved on; false: it has, or somebody else did.
func (s *Store) MarkDead(ctx context.Context, b Beat) (bool, error) {
	var n int
	err := s.Tx(ctx, Limits{}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.sql.Get("mark_dead"), b.Executor, b.Count).Scan(&n)
	})
	if err != nil {
		return false, fmt.Errorf("declare executor %d dead: %w", b.Executor, err)
	}
	return n == 1, nil
}

// Lease is a list of runs that an executor has taken.
type Lease struct {
	No        int64
	ClaimedAt time.Time
	JobIDs    []int64
	Runs      []int32 // nil: all 1
	Attempts  []int16 // counted before; nil: all 0
}

// ReadLeases reads up to n leases of an executor with numbers above after.
func (s *Store) ReadLeases(ctx context.Context, executor, after int64, n int) ([]Lease, error) {
	rows, err := s.Pool.Query(ctx, s.sql.Get("read_leases"), executor, after, n)
	if err != nil {
		return nil, fmt.Errorf("read leases of executor %d: %w", executor, err)
	}
	leases, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Lease])
	if err != nil {
		return nil, fmt.Errorf("read leases of executor %d: %w", executor, err)
	}
	return leases, nil
}

// DropLeases deletes leases of an executor.
func (s *Store) DropLeases(ctx context.Context, executor int64, numbers []int64) error {
	if len(numbers) == 0 {
		return nil
	}
	if err := s.exec(ctx, "drop_leases", executor, numbers); err != nil {
		return fmt.Errorf("delete leases of executor %d: %w", executor, err)
	}
	return nil
}

// ReapTurn asks for the turn to reap an executor for the rest of the transaction; false: another reaper has it.
func (s *Store) ReapTurn(ctx context.Context, tx DB, executor int64) (bool, error) {
	var mine bool
	if err := tx.QueryRow(ctx, s.sql.Get("reap_turn"), executor).Scan(&mine); err != nil {
		return false, fmt.Errorf("ask for the turn to reap executor %d: %w", executor, err)
	}
	return mine, nil
}

// PastOutcomes reads how the last EarlierRuns before runs ended, newest first.
func (s *Store) PastOutcomes(ctx context.Context, db DB, runs []RunKey) (map[int64][]state.Outcome, error) {
	rows, err := s.beforeRuns(ctx, db, "outcomes", runs)
	if err != nil {
		return nil, fmt.Errorf("read earlier runs: %w", err)
	}
	past := map[int64][]state.Outcome{}
	var job int64
	var run int32
	var outcome state.Outcome
	_, err = pgx.ForEachRow(rows, []any{&job, &run, &outcome}, func() error {
		past[job] = append(past[job], outcome)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read earlier runs: %w", err)
	}
	return past, nil
}
