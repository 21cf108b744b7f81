package jobs_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/jobstest"
	"github.com/peltonq/pelton/schema/schematest"
)

// inAnHour is a job that no test waits for.
func inAnHour() *river.InsertOpts { return &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)} }

// A job that is rescheduled to now runs, and its run knows its time.
func TestRescheduledJobRunsAtItsNewTime(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	ran := make(chan time.Time, 1)
	client := start(t, pool, config(func(_ context.Context, job *river.Job[taskArgs]) error {
		ran <- job.ScheduledAt
		return nil
	}))
	id := insert(t, client, 1, inAnHour())
	job, err := client.JobReschedule(t.Context(), id, time.Now().Add(-time.Minute), nil)
	if err != nil || job.State != rivertype.JobStateScheduled || job.ScheduledAt.Before(job.CreatedAt) {
		t.Fatalf("%+v, %v", job, err)
	}
	select {
	case at := <-ran:
		if !at.Equal(job.ScheduledAt) {
			t.Errorf("the run was scheduled at %v, want %v", at, job.ScheduledAt)
		}
	case <-time.After(patience):
		t.Fatal("the job does not run")
	}
	waitOutcomes(t, pool, id, "completed")
	jobstest.NoneLost(t, pool, "pelton")
}

// A job that is retried before its time has waited since then, and not since a time to come.
func TestRetriedJobIsDueAtOnce(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := start(t, pool, config(func(context.Context, *river.Job[taskArgs]) error { return nil }))
	id := insert(t, client, 1, inAnHour())
	job, err := client.JobRetry(t.Context(), id)
	if err != nil || !job.ScheduledAt.After(job.CreatedAt) || job.ScheduledAt.Sub(job.CreatedAt) > 30*time.Minute {
		t.Fatalf("%+v, %v", job, err)
	}
	waitOutcomes(t, pool, id, "completed")
	var due bool
	err = pool.QueryRow(t.Context(), `SELECT ready_at BETWEEN created_at AND started_at FROM pelton.run_report r, pelton.job j WHERE r.job_id = $1 AND j.id = $1`, id).Scan(&due)
	if err != nil || !due {
		t.Errorf("the run is said to have waited since a time before or after that of the retry: %v", err)
	}
	jobstest.NoneLost(t, pool, "pelton")
}

// Movers are told of a job that is due before they would look by themselves, and of no other.
func TestMoversAreToldOfARescheduledJob(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := newClient(t, pool, nil)
	listener, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Release()
	if _, err := listener.Exec(t.Context(), `LISTEN pelton_wake`); err != nil {
		t.Fatal(err)
	}
	id := insert(t, client, 1, inAnHour())
	var heard []string
	for _, ahead := range []time.Duration{2 * time.Hour, 0, time.Hour} {
		if _, err := client.JobReschedule(t.Context(), id, time.Now().Add(ahead), nil); err != nil {
			t.Fatal(err)
		}
		exec(t, pool, `SELECT pg_notify('pelton_wake', $1)`, "after "+ahead.String())
	}
	for len(heard) == 0 || heard[len(heard)-1] != "after 1h0m0s" {
		hint, err := listener.Conn().WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, hint.Payload)
	}
	if want := []string{"after 2h0m0s", "due:", "after 0s", "after 1h0m0s"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

func TestRescheduleInATransaction(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := newClient(t, pool, nil)
	ctx := t.Context()
	id, waits := insert(t, client, 1, inAnHour()), insert(t, client, 2, nil)
	before, err := client.JobGet(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	at := before.ScheduledAt.Add(time.Hour)
	for _, end := range []func(pgx.Tx) error{
		func(tx pgx.Tx) error { return tx.Rollback(ctx) }, func(tx pgx.Tx) error { return tx.Commit(ctx) },
	} {
		tx, err := pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		var refused *jobs.NotScheduledError
		if _, err := client.JobRescheduleTx(ctx, tx, waits, at, nil); !errors.As(err, &refused) || refused.State != rivertype.JobStateAvailable || refused.JobID != waits {
			t.Fatalf("reschedule of an available job: %v", err)
		}
		// The refusal has not spoiled the transaction.
		if job, err := client.JobRescheduleTx(jobs.WithActor(ctx, "ann"), tx, id, at, nil); err != nil || !job.ScheduledAt.Equal(at) {
			t.Fatalf("%+v, %v", job, err)
		}
		if job, err := client.JobGet(ctx, id); err != nil || !job.ScheduledAt.Equal(before.ScheduledAt) {
			t.Fatalf("seen before the end: %+v, %v", job, err)
		}
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
	}
	if job, err := client.JobGet(ctx, id); err != nil || !job.ScheduledAt.Equal(at) {
		t.Errorf("after the commit: %+v, %v", job, err)
	}
	if n := one[int](t, pool, `SELECT count(*)::int FROM pelton.audit WHERE action = 'job.reschedule' AND actor = 'ann'`); n != 1 {
		t.Errorf("%d entries of the audit, want 1", n)
	}
	jobstest.NoneLost(t, pool, "pelton")
}

func TestRescheduleRefusals(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := newClient(t, pool, nil)
	ctx := t.Context()
	id := insert(t, client, 1, inAnHour())
	for _, at := range []time.Time{{}, time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} {
		var invalid *jobs.InvalidUpdateError
		if _, err := client.JobReschedule(ctx, id, at, nil); !errors.As(err, &invalid) || invalid.JobID != id {
			t.Errorf("%v: %v", at, err)
		}
	}
	if _, err := client.JobReschedule(ctx, 1, time.Now(), nil); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("no job: %v", err)
	}
	// Who has looked before is told of what others did, and nothing is stored.
	seen, err := client.JobGet(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	changed := errors.New("it was changed")
	unchanged := &jobs.JobRescheduleOpts{If: func(job *rivertype.JobRow) error {
		if !job.ScheduledAt.Equal(seen.ScheduledAt) {
			return changed
		}
		return nil
	}}
	at := seen.ScheduledAt.Add(time.Minute)
	if _, err := client.JobReschedule(ctx, id, at, unchanged); err != nil {
		t.Fatal(err)
	}
	if _, err := client.JobReschedule(ctx, id, at.Add(time.Hour), unchanged); !errors.Is(err, changed) {
		t.Errorf("the second one: %v", err)
	}
	if job, err := client.JobGet(ctx, id); err != nil || !job.ScheduledAt.Equal(at) {
		t.Errorf("%+v, %v", job, err)
	}
	// Lists in the order of time have it where it is now.
	sooner := insert(t, client, 2, &river.InsertOpts{ScheduledAt: at.Add(-time.Second)})
	list, err := client.JobList(ctx, jobs.NewJobListParams().States(rivertype.JobStateScheduled).OrderBy(jobs.JobListOrderByTime, jobs.SortOrderAsc))
	if err != nil || !sameIDs(list.Jobs, []int64{sooner, id}) {
		t.Errorf("%v, %v", list, err)
	}
}
