package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// taskArgs are the args of the tests' job; what it does is a function of the test.
type taskArgs struct {
	N int `json:"n"`
}

func (taskArgs) Kind() string { return "task" }

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// config works queue default with ten slots and the given function, quickly.
func config(work func(ctx context.Context, job *river.Job[taskArgs]) error) *jobs.Config {
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(work))
	return &jobs.Config{
		Queues:       map[string]jobs.QueueConfig{"default": {MaxWorkers: 10}},
		Workers:      workers,
		Heartbeat:    50 * time.Millisecond,
		Lease:        30 * time.Second, // longer than a busy machine keeps a process from its heartbeat
		PollInterval: 100 * time.Millisecond,
		Logger:       slog.New(slog.DiscardHandler),
	}
}

// start starts a client that is stopped when the test ends.
func start(t *testing.T, pool *pgxpool.Pool, c *jobs.Config) *jobs.Client {
	t.Helper()
	client := newClient(t, pool, c)
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := client.StopAndCancel(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return client
}

func newClient(t *testing.T, pool *pgxpool.Pool, c *jobs.Config) *jobs.Client {
	t.Helper()
	client, err := jobs.NewClient(pool, c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func insert(t *testing.T, client *jobs.Client, n int, opts *river.InsertOpts) int64 {
	t.Helper()
	res, err := client.Insert(t.Context(), taskArgs{N: n}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return res.Job.ID
}

// outcomes reads the outcomes of a job's runs in order.
func outcomes(t *testing.T, pool *pgxpool.Pool, id int64) string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT outcome::text FROM pelton.job_attempt WHERE job_id = $1 ORDER BY run`, id)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

// waitOutcomes waits until a job's runs have ended like this.
func waitOutcomes(t *testing.T, pool *pgxpool.Pool, id int64, want string) {
	t.Helper()
	pgtest.Retry(t, patience, func(context.Context) error {
		if got := outcomes(t, pool, id); got != want {
			return fmt.Errorf("job %d ended %q, want %q", id, got, want)
		}
		return nil
	})
}

func TestWorkRunsWhatCommitted(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	ran := make(chan int, 10)
	client := start(t, pool, config(func(_ context.Context, job *river.Job[taskArgs]) error {
		ran <- job.Args.N
		return nil
	}))
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.InsertTx(t.Context(), tx, taskArgs{N: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := insert(t, client, 2, nil)
	waitOutcomes(t, pool, id, "completed")
	if n := <-ran; n != 2 || len(ran) > 0 {
		t.Fatalf("job %d ran, want only 2", n)
	}
}

func TestWorkOutcomes(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	var snoozed atomic.Int32
	at := func(when string, then error) func(*river.Job[taskArgs]) error {
		return func(*river.Job[taskArgs]) error {
			if when == "" {
				return then
			}
			return nil
		}
	}
	cases := []struct {
		name string
		work func(job *river.Job[taskArgs]) error
		max  int
		want string
		text string
	}{
		{"error", at("", errors.New("no luck")), 1, "discarded", "no luck"},
		{"panic", func(*river.Job[taskArgs]) error { panic("oh no") }, 1, "discarded", "oh no"},
		{"cancel", at("", river.JobCancel(errors.New("give up"))), 5, "cancelled", "give up"},
		{"goexit", func(*river.Job[taskArgs]) error { runtime.Goexit(); return nil }, 1, "discarded", "Goexit"},
		{"nul", at("", errors.New("a\x00b\xff")), 1, "discarded", `a\0b` + "\uFFFD"},
		{"snooze", func(*river.Job[taskArgs]) error {
			if snoozed.Add(1) < 3 {
				return river.JobSnooze(0)
			}
			return nil
		}, 1, "snoozed snoozed completed", ""},
		{"retry", func(job *river.Job[taskArgs]) error {
			if job.Attempt == 1 {
				return errors.New("first")
			}
			return nil
		}, 2, "errored completed", ""},
	}
	c := config(func(_ context.Context, job *river.Job[taskArgs]) error { return cases[job.Args.N].work(job) })
	c.RetryPolicy = atOnce{}
	client := start(t, pool, c)
	for i, tc := range cases {
		id := insert(t, client, i, &river.InsertOpts{MaxAttempts: tc.max})
		waitOutcomes(t, pool, id, tc.want)
		var text, trace string
		err := pool.QueryRow(t.Context(), `SELECT coalesce(error, ''), coalesce(trace, '') FROM pelton.job_attempt
			WHERE job_id = $1 ORDER BY run DESC LIMIT 1`, id).Scan(&text, &trace)
		if err != nil || !strings.Contains(text, tc.text) {
			t.Errorf("%s: error is %q, %v; want %q in it", tc.name, text, err, tc.text)
		}
		if tc.name == "panic" && !strings.Contains(trace, "work_test.go") {
			t.Errorf("trace of the panic is %q", trace)
		}
	}
}

// atOnce retries at once.
type atOnce struct{}

func (atOnce) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(-time.Second) }

func TestBulkIsWorkedOnce(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	const n = 5000
	var ran [n]atomic.Int32
	c := config(func(_ context.Context, job *river.Job[taskArgs]) error {
		ran[job.Args.N].Add(1)
		return nil
	})
	c.Queues["default"] = jobs.QueueConfig{MaxWorkers: 300}
	client := newClient(t, pool, c)
	params := make([]river.InsertManyParams, n)
	for i := range params {
		params[i].Args = taskArgs{N: i}
	}
	if in, err := client.InsertManyFast(t.Context(), params); err != nil || in != n {
		t.Fatalf("inserted %d: %v", in, err)
	}
	start(t, pool, c)
	pgtest.Retry(t, patience, func(ctx context.Context) error {
		var done, leases, tickets int
		err := pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'completed'),
			(SELECT count(*) FROM pelton.job_lease), (SELECT count(*) FROM pelton.job_ready)`).Scan(&done, &leases, &tickets)
		if err == nil && (done != n || leases > 0 || tickets > 0) {
			err = fmt.Errorf("%d of %d completed, %d leases and %d tickets left", done, n, leases, tickets)
		}
		return err
	})
	for i := range ran {
		if got := ran[i].Load(); got != 1 {
			t.Fatalf("job %d ran %d times", i, got)
		}
	}
}
