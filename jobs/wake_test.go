package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// startIdle starts a client that only hints can wake within the time of a test, and waits until it sleeps.
func startIdle(t *testing.T, pool *pgxpool.Pool, c *jobs.Config) *jobs.Client {
	t.Helper()
	c.PollInterval = time.Hour
	client := start(t, pool, c)
	pgtest.Eventually(t, patience, func() bool {
		return one[int](t, pool, `SELECT count(*) FROM pelton.job_sleeper s
			JOIN pelton.executor e ON e.id = s.executor WHERE e.name = $1`, client.ID()) > 0
	}, "the client sleeps")
	return client
}

// A run that is handed back by a client that stops wakes another that sleeps.
func TestReturnedRunsWakeSleepers(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	b := newBlocking()
	first := config(b.work)
	first.ID = "first"
	client := start(t, pool, first)
	id := insert(t, client, 1, nil)
	<-b.began
	other := config(func(context.Context, *river.Job[taskArgs]) error { return nil })
	other.ID, other.DutiesOff = "other", true
	startIdle(t, pool, other)
	if err := client.StopAndCancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, pool, id, "returned completed")
}
