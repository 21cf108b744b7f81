package jobs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// The result of a run that the reaper has ended is refused, though the reaper's row names the same executor.
func TestLateResultIsRefused(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	b := newBlocking()
	seen := &refusals{}
	c := config(b.work)
	c.Observer, c.DutiesOff = seen, true
	client := start(t, pool, c)
	completed, stop := client.Subscribe(river.EventKindJobCompleted)
	defer stop()
	id := insert(t, client, 1, nil)
	<-b.began
	// What the reaper writes for a dead executor's run.
	if _, err := pool.Exec(t.Context(), `INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, executor)
		SELECT $1, 1, 1, 'lost', executor FROM pelton.job_lease`, id); err != nil {
		t.Fatal(err)
	}
	close(b.letGo)
	pgtest.Eventually(t, patience, func() bool { return seen.n.Load() == 1 }, "the result is refused")
	if got := outcomes(t, pool, id); got != "lost" || len(completed) > 0 {
		t.Errorf("the run ended %q, and %d completions were told", got, len(completed))
	}
}

// Runs completed in transactions are booked together, and the args' time of a run is the one asked for.
func TestManyCompleteTx(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := start(t, pool, config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		if !job.ScheduledAt.Equal(job.CreatedAt) {
			return errors.New("scheduled at another time than created")
		}
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		if _, err := jobs.CompleteTx(ctx, tx, job); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}))
	params := make([]river.InsertManyParams, 500)
	for i := range params {
		params[i] = river.InsertManyParams{Args: taskArgs{N: i}, InsertOpts: &river.InsertOpts{MaxAttempts: 1}}
	}
	if _, err := client.InsertManyFast(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, patience, func() bool {
		return one[int](t, pool, `SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'completed'`) == len(params) &&
			one[int](t, pool, `SELECT count(*) FROM pelton.job_lease`) == 0
	}, "all are completed and booked")
}
