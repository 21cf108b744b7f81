package periodic

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
)

// A firer that rests is told of a schedule that another client has put, when that client's transaction commits. Without the hint it would look again
// only when its rest is over.
func TestHintEndsTheRest(t *testing.T) {
	t.Parallel()
	r := newWorking(t, &Config{look: time.Hour}, "x", func(context.Context, *river.Job[reportArgs]) error { return nil })
	pgtest.Eventually(t, patience, func() bool {
		return one[bool](t, r.pool, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query ILIKE 'listen%' AND datname = current_database())`)
	}, "the client to listen")
	other := newRigOn(t, r.pool)
	at := r.now().Add(5 * time.Second) // a busy machine has it stored by then
	err := pgx.BeginFunc(t.Context(), r.pool, func(tx pgx.Tx) error {
		_, err := other.PutTx(t.Context(), tx, once("a", at, task("x")))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, patience, func() bool { return one[bool](t, r.pool, `SELECT EXISTS (SELECT FROM pelton.schedule_tick)`) }, "the tick")
}
