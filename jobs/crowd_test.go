package jobs_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/jobstest"
	"github.com/peltonq/pelton/schema/schematest"
)

// Two executors with two finishers each, whose batches mix the runs of the same leases, while a stranger's transaction holds up one
// run of each executor. Everything else is recorded, no lease goes before its last run, and nobody deadlocks.
func TestFinishersShareLeases(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	const slots = 600 // more than one batch of results
	var running atomic.Int32
	letGo := make(chan struct{})
	refused := &refusals{}
	crowd := func() *jobs.Config {
		c := config(func(ctx context.Context, _ *river.Job[taskArgs]) error {
			running.Add(1)
			select {
			case <-letGo:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		c.Queues["default"] = jobs.QueueConfig{MaxWorkers: slots}
		c.Observer = refused
		return c
	}
	params := make([]river.InsertManyParams, 2*slots)
	for i := range params {
		params[i].Args = taskArgs{N: i}
	}
	if _, err := newClient(t, pool, nil).InsertManyFast(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	clients := []*jobs.Client{start(t, pool, crowd()), start(t, pool, crowd())}
	pgtest.Eventually(t, patience, func() bool { return running.Load() == 2*slots }, "all jobs to run at once")

	stranger, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held, err := stranger.Exec(t.Context(), `INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome)
		SELECT min(l.job_ids[1]), 1, 1, 'completed' FROM pelton.job_lease l GROUP BY l.executor`)
	if err != nil || held.RowsAffected() != 2 {
		t.Fatalf("%d runs are held, want 2: %v", held.RowsAffected(), err)
	}
	close(letGo)
	const ended = `SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'completed'`
	pgtest.Eventually(t, 3*patience, func() bool { return one[int](t, pool, ended) == 2*slots-2 }, "all runs but those held are recorded")
	pgtest.Eventually(t, patience, func() bool { return leases(t, pool) <= 2 }, "used-up leases go")
	jobstest.NoneLost(t, pool, "pelton")
	if n := leases(t, pool); n != 2 {
		t.Errorf("%d leases while a run of each executor is not recorded, want 2", n)
	}
	if err := stranger.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, patience, func() bool { return one[int](t, pool, ended) == 2*slots }, "the held runs are recorded too")
	pgtest.Eventually(t, patience, func() bool { return leases(t, pool) == 0 }, "no lease is left")
	for _, client := range clients {
		if err := client.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := refused.n.Load(); n != 0 || running.Load() != 2*slots {
		t.Errorf("%d results refused, %d runs; want none, %d", n, running.Load(), 2*slots)
	}
	if n := one[int](t, pool, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func leases(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	return one[int](t, pool, `SELECT count(*) FROM pelton.job_lease`)
}

// Bulk and single enqueuers draw their ids from one sequence at once, while jobs are worked: no id is drawn twice, every job runs once.
func TestBulkAndSingleEnqueuersAtOnce(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	const each, size, rounds = 4, 200, 5 // enqueuers of a sort, jobs of a block, blocks of an enqueuer
	const total = each*rounds*size + each*size
	var ran [total]atomic.Int32
	c := config(func(_ context.Context, job *river.Job[taskArgs]) error {
		ran[job.Args.N].Add(1)
		return nil
	})
	c.Queues["default"] = jobs.QueueConfig{MaxWorkers: 100}
	client := start(t, pool, c)
	var next atomic.Int32
	args := func() taskArgs { return taskArgs{N: int(next.Add(1)) - 1} }
	var enqueuers sync.WaitGroup
	for range each {
		enqueuers.Go(func() {
			for range rounds {
				params := make([]river.InsertManyParams, size)
				for i := range params {
					params[i].Args = args()
				}
				if _, err := client.InsertManyFast(t.Context(), params); err != nil {
					t.Errorf("bulk: %v", err)
				}
			}
		})
		enqueuers.Go(func() {
			for range size {
				if _, err := client.Insert(t.Context(), args(), nil); err != nil {
					t.Errorf("single: %v", err)
				}
			}
		})
	}
	enqueuers.Wait()
	if t.Failed() {
		return
	}
	pgtest.Retry(t, patience, func(context.Context) error {
		if n := one[int](t, pool, `SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'completed'`); n != total {
			return fmt.Errorf("%d of %d completed", n, total)
		}
		return nil
	})
	for i := range ran {
		if n := ran[i].Load(); n != 1 {
			t.Fatalf("job %d ran %d times", i, n)
		}
	}
	if n := one[int](t, pool, `SELECT count(DISTINCT id) FROM pelton.job`); n != total {
		t.Errorf("%d ids, want %d", n, total)
	}
}
