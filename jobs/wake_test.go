package jobs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// startIdle starts a client that only hints can wake within the time of a test, and waits until it sleeps and has been quiet
// for a while.
func startIdle(t *testing.T, dsn string, c *jobs.Config) *jobs.Client {
	t.Helper()
	c.PollInterval, c.Heartbeat, c.Lease, c.DutiesOff = time.Hour, 5*time.Second, 30*time.Second, true
	c.ID = "idle"
	pool := pgtest.Pool(t, dsn, func(pc *pgxpool.Config) { pc.ConnConfig.RuntimeParams["application_name"] = c.ID })
	client := start(t, pool, c)
	quiet(t, pgtest.Pool(t, dsn))
	return client
}

// quiet waits until the idle client sleeps and has asked the database nothing for a while.
func quiet(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	pgtest.Eventually(t, patience, func() bool {
		return one[bool](t, pool, `SELECT count(*) FILTER (WHERE query LIKE 'LISTEN%') = 1
				AND max(query_start) < clock_timestamp() - interval '300 milliseconds'
				AND EXISTS (SELECT FROM pelton.job_sleeper s JOIN pelton.executor e ON e.id = s.executor WHERE e.name = 'idle')
			FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'idle'`)
	}, "the client sleeps")
}

// A run that is handed back by a client that stops wakes another that sleeps.
func TestReturnedRunsWakeSleepers(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	pool := pgtest.Pool(t, dsn)
	b := newBlocking()
	first := config(b.work)
	client := start(t, pool, first)
	id := insert(t, client, 1, nil)
	<-b.began
	other := config(func(context.Context, *river.Job[taskArgs]) error { return nil })
	startIdle(t, dsn, other)
	if err := client.StopAndCancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, pool, id, "returned completed")
}

// Of inserts that stand alone, one at a time hints at a line; one in a transaction that may stay open always sends its own hint.
func TestOneHintAtATime(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := newClient(t, pool, nil)
	exec(t, pool, `INSERT INTO pelton.job_sleeper (line, executor) VALUES ('default', 1)`)
	listener, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Release()
	if _, err := listener.Exec(t.Context(), `LISTEN pelton_wake`); err != nil {
		t.Fatal(err)
	}
	mark := func(name string) { exec(t, pool, `SELECT pg_notify('pelton_wake', '`+name+`')`) }
	first, err := pool.Begin(t.Context()) // stands for an insert whose commit is under way
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback(context.Background()) }()
	if _, err := first.Exec(t.Context(), `SELECT pelton.wake('{default}', true)`); err != nil {
		t.Fatal(err)
	}
	insert(t, client, 1, nil)
	mark("left to the first")
	tx, _ := insertIn(t, pool, client, nil)
	commit(t, tx)
	mark("in a transaction")
	commit(t, first)
	mark("the first")
	insert(t, client, 1, nil)
	for _, want := range []string{"left to the first", "default", "in a transaction", "default", "the first", "default"} {
		if hint, err := listener.Conn().WaitForNotification(t.Context()); err != nil || hint.Payload != want {
			t.Fatalf("got the hint %v, want %q: %v", hint, want, err)
		}
	}
}

// Jobs whose inserts left the hint to another one start all the same.
func TestHintsLeftToOthersLoseNoWakeUp(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	pool := pgtest.Pool(t, dsn, func(c *pgxpool.Config) { c.MaxConns = 20 })
	startIdle(t, dsn, config(func(context.Context, *river.Job[taskArgs]) error { return nil }))
	client := newClient(t, pool, nil)
	const rounds, inserts = 15, 20
	for round := 1; round <= rounds; round++ {
		var all sync.WaitGroup
		for range inserts {
			all.Go(func() {
				if _, err := client.Insert(t.Context(), taskArgs{}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		pgtest.Eventually(t, patience, func() bool {
			return one[int](t, pool, `SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'completed'`) == round*inserts
		}, "all of a round to run")
	}
}

// later retries a little later.
type later struct{}

func (later) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(300 * time.Millisecond) }

// A process with the duties and no queues moves, in time, what others schedule for soon.
func TestDistantMoverHearsOfDueJobs(t *testing.T) {
	t.Parallel()
	soon := func() *river.InsertOpts {
		return &river.InsertOpts{ScheduledAt: time.Now().Add(300 * time.Millisecond)}
	}
	for name, schedule := range map[string]func(t *testing.T, pool *pgxpool.Pool, c *jobs.Client){
		"insert": func(t *testing.T, _ *pgxpool.Pool, c *jobs.Client) { insert(t, c, 1, soon()) },
		"transaction": func(t *testing.T, pool *pgxpool.Pool, c *jobs.Client) {
			tx, _ := insertIn(t, pool, c, soon())
			commit(t, tx)
		},
		"bulk": func(t *testing.T, _ *pgxpool.Pool, c *jobs.Client) {
			if _, err := c.InsertManyFast(t.Context(), []river.InsertManyParams{{Args: taskArgs{}, InsertOpts: soon()}}); err != nil {
				t.Fatal(err)
			}
		},
		"database/sql": func(t *testing.T, pool *pgxpool.Pool, c *jobs.Client) {
			db := stdlib.OpenDBFromPool(pool)
			t.Cleanup(func() { _ = db.Close() })
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.InsertSQLTx(t.Context(), tx, taskArgs{}, soon()); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		},
		"enqueue": func(t *testing.T, pool *pgxpool.Pool, _ *jobs.Client) {
			exec(t, pool, `SELECT pelton.enqueue('task', run_at => clock_timestamp() + interval '300 milliseconds')`)
		},
		"enqueue_many": func(t *testing.T, pool *pgxpool.Pool, _ *jobs.Client) {
			exec(t, pool, `SELECT pelton.enqueue_many(json_build_array(
				json_build_object('kind', 'task', 'run_at', clock_timestamp() + interval '300 milliseconds')))`)
		},
		"reschedule": func(t *testing.T, _ *pgxpool.Pool, c *jobs.Client) {
			if _, err := c.JobReschedule(t.Context(), insert(t, c, 1, inAnHour()), time.Now().Add(300*time.Millisecond), nil); err != nil {
				t.Fatal(err)
			}
		},
		"retry": func(t *testing.T, _ *pgxpool.Pool, c *jobs.Client) { insert(t, c, 1, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := schematest.DSN(t)
			pool := pgtest.Pool(t, dsn)
			server := config(nil)
			server.Queues, server.Workers = nil, nil
			server.SetMoveLook(time.Hour)
			start(t, pgtest.Pool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = "server" }), server)
			pgtest.Eventually(t, patience, func() bool {
				return one[bool](t, pool, `SELECT EXISTS (SELECT FROM pg_stat_activity
					WHERE datname = current_database() AND application_name = 'server' AND query LIKE 'LISTEN%'
						AND query_start < clock_timestamp() - interval '500 milliseconds')`)
			}, "the server listens, and has looked")
			c := config(func(_ context.Context, job *river.Job[taskArgs]) error {
				if name == "retry" && job.Attempt == 1 {
					return errors.New("not yet")
				}
				return nil
			})
			c.DutiesOff, c.RetryPolicy = true, later{}
			if name != "retry" { // without a worker: nobody sleeps, and the enqueue hints at nothing
				schedule(t, pool, newClient(t, pool, c))
				pgtest.Eventually(t, patience, func() bool {
					return one[int](t, pool, `SELECT count(*) FROM pelton.job_ready`) == 1
				}, "the job is moved")
				return
			}
			schedule(t, pool, start(t, pool, c))
			pgtest.Eventually(t, patience, func() bool {
				return one[int](t, pool, `SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'completed'`) == 1
			}, "the job runs")
		})
	}
}
