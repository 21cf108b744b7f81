package jobs_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/jobstest"
	"github.com/peltonq/pelton/schema/schematest"
)

// commitAfter matches the COMMIT that follows a statement with the given text. It needs statements to be sent as text.
func commitAfter(text string) func(message []byte) bool {
	var seen atomic.Bool
	return func(message []byte) bool {
		if message[0] != 'P' {
			return false
		}
		if bytes.Contains(message, []byte(text)) {
			seen.Store(true)
		}
		return seen.Load() && bytes.Contains(message, []byte("\x00COMMIT\x00"))
	}
}

// throughProxy returns a proxy in front of a migrated database, a pool through it that sends statements as text, and one past it.
func throughProxy(t *testing.T) (*pgtest.Proxy, *pgxpool.Pool, *pgxpool.Pool) {
	t.Helper()
	dsn := schematest.DSN(t)
	proxy := pgtest.NewProxy(t, dsn)
	through := pgtest.Pool(t, proxy.DSN(), func(c *pgxpool.Config) {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	})
	return proxy, through, pgtest.Pool(t, dsn)
}

func TestClaimWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	proxy, through, direct := throughProxy(t)
	var ran atomic.Int32
	c := config(func(context.Context, *river.Job[taskArgs]) error { ran.Add(1); return nil })
	c.DutiesOff = true // what is handed back must not come from the reaper
	cut := proxy.CutAfterSend(commitAfter("WITH head AS"))
	id := insert(t, newClient(t, direct, nil), 1, nil) // before the first claim
	client := start(t, through, c)
	<-cut
	waitOutcomes(t, direct, id, "returned completed")
	if attempt := one[int](t, direct, `SELECT max(attempt) FROM pelton.job_attempt`); attempt != 1 || ran.Load() != 1 {
		t.Errorf("the job ran %d times and counts %d attempts, want 1 and 1", ran.Load(), attempt)
	}
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := one[int](t, direct, `SELECT count(*) FROM pelton.job_lease`); left != 0 {
		t.Errorf("%d leases left", left)
	}
	jobstest.NoneLost(t, direct, "pelton")
}

func TestFinishWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	proxy, through, direct := throughProxy(t)
	var ran atomic.Int32
	c := config(func(context.Context, *river.Job[taskArgs]) error { ran.Add(1); return nil })
	refused := &refusals{}
	c.Observer = refused
	cut := proxy.CutAfterSend(func(message []byte) bool {
		return message[0] == 'Q' && bytes.Contains(message, []byte("COPY")) && bytes.Contains(message, []byte("job_attempt"))
	})
	client := start(t, through, c)
	id := insert(t, newClient(t, direct, nil), 1, nil)
	<-cut
	pgtest.Eventually(t, patience, func() bool {
		return one[int](t, direct, `SELECT count(*) FROM pelton.job_lease`) == 0
	}, "the repeated finish takes its own row for its own")
	if got := outcomes(t, direct, id); got != "completed" || ran.Load() != 1 || refused.n.Load() != 0 {
		t.Errorf("job ended %q, ran %d times, was refused %d times", got, ran.Load(), refused.n.Load())
	}
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	jobstest.NoneLost(t, direct, "pelton")
}
