package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/jobstest"
	"github.com/peltonq/pelton/schema/schematest"
)

// blocking is a work function that says when it began and blocks until it is let go or its context ends.
type blocking struct {
	began chan int
	letGo chan struct{}
}

func newBlocking() *blocking {
	return &blocking{began: make(chan int, 1000), letGo: make(chan struct{})}
}

func (b *blocking) work(ctx context.Context, job *river.Job[taskArgs]) error {
	b.began <- job.Args.N
	select {
	case <-b.letGo:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestStopWaitsForRunningJobs(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	b := newBlocking()
	client := start(t, pool, config(b.work))
	id := insert(t, client, 1, nil)
	<-b.began
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("stop with a running job: %v, want the deadline", err)
	}
	if got := outcomes(t, pool, id); got != "" {
		t.Fatalf("the running job ended %q", got)
	}
	close(b.letGo)
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(t, pool, id); got != "completed" {
		t.Fatalf("after the stop the job ended %q", got)
	}
}

// StopAndCancel ends jobs that a Stop waits for, and returns when its own context ends.
func TestStopAndCancelOvertakesStop(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	began, ending, letGo := make(chan struct{}), make(chan struct{}), make(chan struct{})
	client := start(t, pool, config(func(ctx context.Context, _ *river.Job[taskArgs]) error {
		close(began)
		<-ctx.Done()
		close(ending)
		<-letGo // does not heed its context at once
		return ctx.Err()
	}))
	id := insert(t, client, 1, nil)
	<-began
	waiting := make(chan error)
	go func() { waiting <- client.Stop(context.WithoutCancel(t.Context())) }()
	pgtest.Eventually(t, patience, func() bool { // the Stop is under way
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		return client.Stop(ctx) != nil
	}, "a second Stop honours its context")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.StopAndCancel(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("StopAndCancel with a job that does not end: %v, want the deadline", err)
	}
	<-ending
	close(letGo)
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if got := outcomes(t, pool, id); got != "returned" {
		t.Errorf("the job ended %q, want returned", got)
	}
}

func TestStopHandsBackUncounted(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	b := newBlocking()
	c := config(b.work)
	c.Queues["default"] = jobs.QueueConfig{MaxWorkers: 5}
	client := start(t, pool, c)
	var ids []int64
	for i := range 20 {
		ids = append(ids, insert(t, client, i, nil))
	}
	for range 5 {
		<-b.began
	}
	if err := client.StopAndCancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	counted := one[int](t, pool, `SELECT count(*) FROM pelton.job_attempt WHERE attempt > 0 OR outcome <> 'returned'`)
	waiting := one[int](t, pool, `SELECT sum(cardinality(job_ids)) FROM pelton.job_ready`)
	leases := one[int](t, pool, `SELECT count(*) FROM pelton.job_lease`)
	if counted != 0 || waiting != len(ids) || leases != 0 {
		t.Fatalf("%d runs counted, %d of %d jobs wait, %d leases left", counted, waiting, len(ids), leases)
	}
	jobstest.NoneLost(t, pool, "pelton")
	close(b.letGo)
	if err := client.Start(t.Context()); err != nil { // the same client can start again
		t.Fatal(err)
	}
	for _, id := range ids {
		pgtest.Eventually(t, patience, func() bool {
			got := outcomes(t, pool, id)
			return got == "completed" || got == "returned completed"
		}, "job %d completes after the restart", id)
	}
}

// one reads one value.
func one[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}
