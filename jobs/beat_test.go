package jobs_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// Workers that hold all connections of the pool do not stop the heartbeat.
func TestHeartbeatNeedsNoConnectionOfThePool(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	direct := pgtest.Pool(t, dsn)
	small := pgtest.Pool(t, dsn, func(c *pgxpool.Config) { c.MaxConns = 4 })
	began, letGo := make(chan struct{}, 4), make(chan struct{})
	c := config(func(ctx context.Context, _ *river.Job[taskArgs]) error {
		conn, err := small.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		began <- struct{}{}
		<-letGo
		return nil
	})
	c.DutiesOff = true
	client := start(t, small, c)
	enqueuer := newClient(t, direct, nil)
	var ids []int64
	for n := range 4 {
		ids = append(ids, insert(t, enqueuer, n, nil))
	}
	for range 4 {
		<-began
	}
	defer close(letGo)
	beats := func() int {
		return one[int](t, direct, `SELECT beat FROM pelton.executor WHERE name = $1`, client.ID())
	}
	before := beats()
	pgtest.Eventually(t, patience, func() bool { return beats() >= before+3 }, "the heart beats on")
	if got := outcomes(t, direct, ids[0]); got != "" {
		t.Errorf("the running job ended %q", got)
	}
}

// An executor is taken for dead while it reads what it has claimed. The runs are the reaper's: they are not started.
func TestClaimOfThoseTakenForDead(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	ran := make(chan struct{}, 10)
	c := config(func(context.Context, *river.Job[taskArgs]) error {
		ran <- struct{}{}
		return nil
	})
	c.DutiesOff = true
	id := insert(t, newClient(t, pool, nil), 1, nil)
	lock, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `LOCK TABLE pelton.job`); err != nil {
		t.Fatal(err)
	}
	start(t, pool, c)
	pgtest.Eventually(t, patience, func() bool {
		return one[int](t, pool, `SELECT count(*) FROM pelton.job_lease`) == 1
	}, "the job is claimed")
	exec(t, pool, `UPDATE pelton.executor SET died_at = now()`)
	pgtest.Eventually(t, patience, func() bool {
		return one[int](t, pool, `SELECT count(*) FROM pelton.executor`) == 2
	}, "the executor takes a new incarnation")
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ran
	waitOutcomes(t, pool, id, "returned completed")
	if n := len(ran); n > 0 {
		t.Errorf("the job ran %d times more", n)
	}
}
