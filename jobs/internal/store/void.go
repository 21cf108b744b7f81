package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// VoidedRun is a run that its taker found a void for: it was cancelled, moved or deleted while it waited.
type VoidedRun struct {
	JobID    int64
	Run      int32
	Attempts int16 // counted before this run, as in its ticket
}

// Honoured says what became of a voided run.
type Honoured struct {
	VoidedRun
	Outcome state.Outcome
}

// Outcomes of honoured voids besides Cancelled and Moved.
const (
	VoidDeleted state.Outcome = "deleted" // nothing is left of the job
	VoidRefused state.Outcome = "refused" // somebody else has ended the run; nothing to do
	VoidNone    state.Outcome = "none"    // no void holds any more: start the run after all
)

// honourLimits are short: a run that somebody else is just ending in a transaction left open must not hold up its taker.
var honourLimits = Limits{Lock: 50 * time.Millisecond}

// HonourVoids ends runs whose tickets the caller has deleted and leased, and which must not start. A cancelled run is
// recorded; a moved one is recorded and its job put into its new line under run + 1; of a deleted one nothing is left. Their
// voids and unique keys are dropped. Runs that somebody holds in an open transaction come back as held: they are still the
// caller's, under their lease, and it must try them again later.
//
// The void is looked at anew, so that runs may be passed that a void was seen for with any reason.
func (s *Store) HonourVoids(ctx context.Context, runs []VoidedRun) (done []Honoured, held []VoidedRun, err error) {
	if len(runs) == 0 {
		return nil, nil, nil
	}
	err = s.Tx(ctx, honourLimits, func(tx pgx.Tx) error {
		var err error
		done, err = s.honourVoids(ctx, tx, runs)
		return err
	})
	switch {
	case err == nil:
		return done, nil, s.DropVoids(ctx, done)
	case SQLState(err) != LockNotAvailable && SQLState(err) != DeadlockDetected:
		return nil, nil, fmt.Errorf("end voided runs: %w", err)
	case len(runs) == 1:
		return nil, runs, nil
	}
	done, held, err = s.HonourVoids(ctx, runs[:len(runs)/2])
	if err != nil {
		return done, held, err
	}
	restDone, restHeld, err := s.HonourVoids(ctx, runs[len(runs)/2:])
	return append(done, restDone...), append(held, restHeld...), err
}

func (s *Store) honourVoids(ctx context.Context, db DB, runs []VoidedRun) ([]Honoured, error) {
	ids, numbers, attempts := make([]int64, len(runs)), make([]int32, len(runs)), make([]int16, len(runs))
	counted := make(map[[2]int64]int16, len(runs))
	for i, r := range runs {
		ids[i], numbers[i], attempts[i] = r.JobID, r.Run, r.Attempts
		counted[[2]int64{r.JobID, int64(r.Run)}] = r.Attempts
	}
	rows, err := db.Query(ctx, s.sql.Get("honour_voids"), ids, numbers, attempts)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Honoured, error) {
		var h Honoured
		err := row.Scan(&h.JobID, &h.Run, &h.Outcome)
		h.Attempts = counted[[2]int64{h.JobID, int64(h.Run)}]
		return h, err
	})
}

// DropVoids removes the voids of runs that have ended, and the unique keys of the jobs that were cancelled with them. It is
// called after the commit that ended them; what it misses is swept later.
func (s *Store) DropVoids(ctx context.Context, ended []Honoured) error {
	if len(ended) == 0 {
		return nil
	}
	ids, runs, outcomes := make([]int64, len(ended)), make([]int32, len(ended)), make([]string, len(ended))
	for i, h := range ended {
		ids[i], runs[i], outcomes[i] = h.JobID, h.Run, string(h.Outcome)
	}
	err := s.Tx(ctx, Limits{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, s.sql.Get("drop_voids"), ids, runs, outcomes)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop voids: %w", err)
	}
	return nil
}

// CancelWaiting ends those of the given jobs that wait for their time although a cancel holds for the run they wait for, and
// returns how many. A finish calls it with the jobs whose retry it has just committed: a cancel may have been written between
// the run's end and its retry. The sweep calls it with nil: all jobs.
func (s *Store) CancelWaiting(ctx context.Context, ids []int64) (int, error) {
	var ended []Honoured
	err := s.Tx(ctx, Limits{}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.sql.Get("cancel_waiting"), ids)
		if err != nil {
			return err
		}
		ended, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Honoured, error) {
			h := Honoured{Outcome: state.Cancelled}
			err := row.Scan(&h.JobID, &h.Run)
			return h, err
		})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cancel jobs put off: %w", err)
	}
	return len(ended), s.DropVoids(ctx, ended)
}

// HonourInLine ends runs whose voids, at most n, are older than grace and whose tickets wait in a line that nobody claims
// from: a paused queue, or one without an executor. It returns how many tickets' runs it ended. It reads the line whole, if
// there is such a void: a duty for every few seconds.
func (s *Store) HonourInLine(ctx context.Context, grace time.Duration, n int) (int, error) {
	var ids []int64
	err := s.Tx(ctx, Limits{}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.sql.Get("old_voids"), grace.Microseconds(), n)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read old voids: %w", err)
	}
	return s.honourInLine(ctx, ids)
}

// honourInLine halves the jobs while somebody holds one of them; a held job is left where it is.
func (s *Store) honourInLine(ctx context.Context, ids []int64) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	var done []Honoured
	err := s.Tx(ctx, honourLimits, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.sql.Get("honour_in_line"), ids)
		if err != nil {
			return err
		}
		done, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Honoured, error) {
			var h Honoured
			err := row.Scan(&h.JobID, &h.Run, &h.Outcome)
			return h, err
		})
		return err
	})
	switch {
	case err == nil:
		return len(done), s.DropVoids(ctx, done)
	case SQLState(err) != LockNotAvailable && SQLState(err) != DeadlockDetected:
		return 0, fmt.Errorf("end voided runs in the line: %w", err)
	case len(ids) == 1:
		return 0, nil
	}
	left, err := s.honourInLine(ctx, ids[:len(ids)/2])
	if err != nil {
		return left, err
	}
	right, err := s.honourInLine(ctx, ids[len(ids)/2:])
	return left + right, err
}

// SweepVoids removes at most n voids that are older than grace and that nobody's ticket asks for any more, and returns how
// many. It reads the line whole: a duty for every minute or so.
func (s *Store) SweepVoids(ctx context.Context, grace time.Duration, n int) (removed int64, err error) {
	err = s.Tx(ctx, Limits{}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.sql.Get("sweep_voids"), grace.Microseconds(), n).Scan(&removed)
	})
	if err != nil {
		return 0, fmt.Errorf("sweep voids: %w", err)
	}
	return removed, nil
}
