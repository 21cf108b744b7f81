package periodic

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/periodic/internal/store"
)

// A scheduler stands still in the middle of its transaction, as one that is stopped, or whose host is gone. Others fire what it held, and when it
// goes on it fires nothing.
func TestStoppedInItsTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.stored(Schedule{Name: "held", Cron: "* * * * * *", Job: task("k")}, 0)
	other := newRigOn(t, r.pool)
	pgtest.Eventually(t, patience, func() bool {
		next, err := r.store.NextDue(t.Context(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		return next.Any && next.In <= 0
	}, "the schedule to be due")
	err := r.store.Tx(t.Context(), store.Limits{Lock: fireLock, Head: true}, func(tx pgx.Tx) error {
		claimed, err := r.store.Claim(t.Context(), tx, 0, nil, 10)
		if err != nil || len(claimed) != 1 {
			t.Fatal(claimed, err)
		}
		pgtest.Eventually(t, patience, func() bool {
			n, err := other.firer.fire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return n == 1
		}, "somebody else to fire it")
		_, err = r.settle(t.Context(), tx, claimed, 10)
		return err
	})
	if err == nil {
		t.Error("the one that stood still has stored what it decided")
	}
	var runs, distinct int
	if err := r.pool.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT tick) FROM pelton.schedule_tick WHERE schedule_id = $1 AND job_id IS NOT NULL", id).
		Scan(&runs, &distinct); err != nil {
		t.Fatal(err)
	}
	if runs == 0 || runs != distinct {
		t.Errorf("%d runs of %d ticks", runs, distinct)
	}
}
