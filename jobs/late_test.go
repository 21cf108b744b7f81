package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// hourly is a config whose idle poll comes too late for any test: only hints and looks at open writers find work.
func hourly() *jobs.Config {
	c := config(func(context.Context, *river.Job[taskArgs]) error { return nil })
	c.PollInterval = time.Hour
	return c
}

func insertIn(t *testing.T, pool *pgxpool.Pool, client *jobs.Client, opts *river.InsertOpts) (pgx.Tx, int64) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	res, err := client.InsertTx(t.Context(), tx, taskArgs{}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tx, res.Job.ID
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

const sleepers = `SELECT count(*) FROM pelton.job_sleeper WHERE line = 'default'`

func waitSleeper(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	pgtest.Eventually(t, patience, func() bool { return one[int](t, pool, sleepers) == 1 }, "the executor to go to sleep")
}

// A job that commits long after it was enqueued is found at once by an executor that slept all the while: by its hint.
func TestLateCommitWakesASleeper(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := start(t, pool, hourly())
	waitSleeper(t, pool)
	<-time.After(time.Second) // it has looked once more by now, and waits for a hint
	tx, id := insertIn(t, pool, client, nil)
	<-time.After(2500 * time.Millisecond) // longer than anybody polls because writers are open
	commit(t, tx)
	waitOutcomes(t, pool, id, "completed")
}

// A job is enqueued while nobody sleeps, so no hint is sent, and commits once an executor is on the sleepers' list: that one has
// looked again after it registered, and goes on looking while a writer is open.
func TestLateCommitIsFoundBeforeTheSleep(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	c := hourly()
	c.DutiesOff = true // nobody else sends a hint
	tx, id := insertIn(t, pool, newClient(t, pool, nil), nil)
	if n := one[int](t, pool, sleepers); n != 0 {
		t.Fatalf("%d sleepers at the enqueue: the test shows nothing", n)
	}
	start(t, pool, c)
	waitSleeper(t, pool)
	commit(t, tx)
	waitOutcomes(t, pool, id, "completed")
}

// Jobs for a time that is past by the time they commit, in a transaction that stays open while the mover's floor moves on.
func TestPastRunAtInALongTransaction(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	c := config(func(context.Context, *river.Job[taskArgs]) error { return nil })
	refused := &refusals{}
	c.Observer = refused
	client := start(t, pool, c)
	tx, id := insertIn(t, pool, client, &river.InsertOpts{ScheduledAt: time.Now().Add(3 * time.Second)})
	res, err := client.InsertTx(t.Context(), tx, taskArgs{}, &river.InsertOpts{ScheduledAt: time.Now().Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	var wake int64
	if err := tx.QueryRow(t.Context(), `SELECT max(pelton.position_of(wake)) FROM pelton.job_scheduled`).Scan(&wake); err != nil {
		t.Fatal(err)
	}
	const settled = `SELECT coalesce(max(settled), 0) FROM pelton.floor WHERE relation = 'job_scheduled'`
	pgtest.Eventually(t, 3*patience, func() bool {
		other := insert(t, client, 1, &river.InsertOpts{ScheduledAt: time.Now().Add(50 * time.Millisecond)})
		waitOutcomes(t, pool, other, "completed")
		return one[int64](t, pool, settled) > wake
	}, "the floor to pass the open transaction")
	commit(t, tx)
	waitOutcomes(t, pool, id, "completed")
	waitOutcomes(t, pool, res.Job.ID, "completed")
	if n := refused.below.Load(); n != 0 {
		t.Errorf("%d keys had rows below their mark that nobody expected", n)
	}
}
