package duty

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// keyedRun is a run that must take its unique key again.
type keyedRun struct {
	due   store.Due
	facts store.Facts
}

// gaveUpKey tells whether a job's unique key was free for others while it waited for its retry.
func gaveUpKey(d store.Due, f store.Facts) bool {
	return d.Retry && f.UniqueKey != nil && byte(f.UniqueStates)&state.Bit(rivertype.JobStateRetryable) == 0
}

// retakeKeys takes the unique keys of runs again and returns those that may enter the line. A run whose key another job holds
// ends; one whose key is just being inserted by an open transaction waits for a moment. Neither touches another run.
func (m *Mover) retakeKeys(ctx context.Context, tx pgx.Tx, runs []keyedRun) ([]store.Entry, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	holders, err := m.tryKeys(ctx, tx, runs)
	if store.SQLState(err) == store.LockNotAvailable && len(runs) > 1 {
		half := len(runs) / 2
		some, err := m.retakeKeys(ctx, tx, runs[:half])
		if err != nil {
			return nil, err
		}
		others, err := m.retakeKeys(ctx, tx, runs[half:])
		return append(some, others...), err
	}
	if store.SQLState(err) == store.LockNotAvailable {
		d := runs[0].due
		return nil, m.store.PutOff(ctx, tx, []store.Delayed{{JobID: d.JobID, Run: d.Run, Attempts: d.Attempts, Delay: keyPause}})
	}
	if err != nil {
		return nil, err
	}
	var entries []store.Entry
	var ends []store.Ended
	var refused []int64
	for i, run := range runs {
		d := run.due
		if holders[i] == d.JobID {
			entries = append(entries, entry(d, run.facts))
			continue
		}
		refused = append(refused, d.JobID)
		ends = append(ends, store.Ended{
			JobID: d.JobID, Run: d.Run, Attempt: d.Attempts, Outcome: string(state.Discarded),
			Error: fmt.Sprintf("unique conflict: job %d took this job's unique key while it waited for its retry", holders[i]),
		})
	}
	return entries, m.discard(ctx, tx, ends, refused)
}

func (m *Mover) discard(ctx context.Context, tx pgx.Tx, ends []store.Ended, ids []int64) error {
	if len(ends) == 0 {
		return nil
	}
	if _, err := m.store.EndRuns(ctx, tx, 0, ends); err != nil {
		return err
	}
	return m.store.BuryTx(ctx, tx, ids, store.Conflict)
}

// tryKeys takes the keys under a savepoint, which is rolled back if one is held.
func (m *Mover) tryKeys(ctx context.Context, tx pgx.Tx, runs []keyedRun) (holders []int64, err error) {
	jobs := make([]store.Facts, len(runs))
	for i, run := range runs {
		jobs[i] = run.facts
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		holders, err = m.store.KeepKeys(ctx, tx, jobs)
		return err
	})
	return holders, err
}
