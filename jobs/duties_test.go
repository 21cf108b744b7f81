package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestScheduledJobsAndRetriesRun(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	var tries atomic.Int32
	done := make(chan time.Time, 1)
	c := config(func(context.Context, *river.Job[taskArgs]) error {
		if tries.Add(1) == 1 {
			return errors.New("not yet")
		}
		done <- time.Now()
		return nil
	})
	c.RetryPolicy = atOnce{}
	client := start(t, pool, c)
	due := time.Now().Add(300 * time.Millisecond)
	insert(t, client, 1, &river.InsertOpts{ScheduledAt: due})
	select {
	case at := <-done:
		if at.Before(due) {
			t.Fatalf("ran %v before its time", due.Sub(at))
		}
	case <-time.After(patience):
		t.Fatal("the scheduled job does not run")
	}
}

// A process that left leases and no sign of life: its jobs run elsewhere, each once more.
func TestJobsOfADeadProcessRunElsewhere(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	var ran atomic.Int32
	c := config(func(context.Context, *river.Job[taskArgs]) error {
		ran.Add(1)
		return nil
	})
	c.DutiesOff = true
	client := newClient(t, pool, c)
	for n := range 5 {
		insert(t, client, n, nil)
	}
	_, err := pool.Exec(t.Context(), `
		WITH dead AS (INSERT INTO pelton.executor (pid, name, host) VALUES (1, 'dead', 'h') RETURNING id),
			taken AS (DELETE FROM pelton.job_ready RETURNING job_ids, seq)
		INSERT INTO pelton.job_lease (executor, no, job_ids) SELECT id, seq, job_ids FROM taken, dead`)
	if err != nil {
		t.Fatal(err)
	}
	told := &reapings{}
	scheduler := config(nil)
	scheduler.Queues, scheduler.Workers, scheduler.Lease, scheduler.Observer = nil, nil, time.Second, told
	reaps := start(t, pool, scheduler)
	pgtest.Eventually(t, patience, func() bool { return told.lost.Load() == 5 }, "the observer to be told of five lost runs")
	if err := reaps.Stop(t.Context()); err != nil { // before it takes another process for dead that a busy machine keeps from its heartbeat
		t.Fatal(err)
	}
	start(t, pool, c)
	pgtest.Eventually(t, patience, func() bool { return ran.Load() == 5 }, "the jobs to run")
	var lost int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'lost'`).Scan(&lost); err != nil || lost != 5 {
		t.Fatalf("%d runs are recorded as lost, want 5 (%v)", lost, err)
	}
}

// reapings counts lost runs.
type reapings struct {
	refusals

	lost atomic.Int32
}

func (r *reapings) Reaped(lost, _ int) { r.lost.Add(int32(lost)) }

// What the keeper finds and cannot put right is logged.
func TestOrphansAreReported(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `CREATE TABLE pelton.job_p_20200101 (LIKE pelton.job INCLUDING ALL)`)
	exec(t, pool, `INSERT INTO pelton.job_p_20200101 (kind, args) VALUES ('k', '{}')`)
	lines := make(chan string, 100)
	c := config(nil)
	c.Queues, c.Workers, c.Logger = nil, nil, slog.New(slog.NewTextHandler(writerFunc(func(line string) {
		if strings.Contains(line, "attached to nothing") {
			lines <- line
		}
	}), nil))
	start(t, pool, c)
	select {
	case line := <-lines:
		if !strings.Contains(line, "job_p_20200101") {
			t.Errorf("log says %q, want the table's name", line)
		}
	case <-time.After(patience):
		t.Error("the orphan is not reported")
	}
}

type writerFunc func(string)

func (f writerFunc) Write(b []byte) (int, error) {
	f(string(b))
	return len(b), nil
}

// The database is away for longer than the lease while a job runs, and the scheduler is back before the executor. Nobody is
// dead: the job ends once.
func TestNobodyIsReapedAfterAnOutage(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	direct, executors, schedulers := pgtest.Pool(t, dsn), pgtest.NewProxy(t, dsn), pgtest.NewProxy(t, dsn)
	begun, finish := make(chan struct{}, 10), make(chan struct{})
	c := config(func(context.Context, *river.Job[taskArgs]) error {
		begun <- struct{}{}
		<-finish
		return nil
	})
	c.DutiesOff, c.Lease = true, 9*time.Second // a third of it must be enough for a look, and for a heartbeat, on a busy machine
	start(t, pgtest.Pool(t, executors.DSN()), c)
	scheduler := config(nil)
	scheduler.Queues, scheduler.Workers, scheduler.Lease = nil, nil, c.Lease
	start(t, pgtest.Pool(t, schedulers.DSN()), scheduler)
	id := insert(t, newClient(t, direct, c), 1, nil)
	<-begun
	looked := func() {
		// A lease that nobody has is reaped at the first look.
		exec(t, direct, `INSERT INTO pelton.job_lease (executor, no, job_ids) VALUES (-1, 1, '{1}')`)
		pgtest.Retry(t, patience, func(ctx context.Context) error {
			var n int
			err := direct.QueryRow(ctx, `SELECT count(*) FROM pelton.job_lease WHERE executor = -1`).Scan(&n)
			if err == nil && n > 0 {
				err = errors.New("the scheduler has not looked")
			}
			return err
		})
	}
	executors.Down()
	looked() // and has seen the last counter
	schedulers.Down()
	<-time.After(c.Lease + time.Second)
	schedulers.Up()
	looked()
	executors.Up()
	looked()
	close(finish)
	pgtest.Retry(t, patience, func(ctx context.Context) error {
		var outcomes string
		err := direct.QueryRow(ctx, `SELECT coalesce(string_agg(outcome::text, ' '), '') FROM pelton.job_attempt WHERE job_id = $1`, id).Scan(&outcomes)
		if err == nil && outcomes != "completed" {
			err = errors.New("attempts: " + outcomes)
		}
		return err
	})
	if len(begun) > 0 {
		t.Fatal("the job ran twice")
	}
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}
