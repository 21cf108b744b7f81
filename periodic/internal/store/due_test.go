package store

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/periodic/internal/plan"
)

// A wake time is never before the time at which it is written: the floor may be there already.
func TestWakeIsNotInThePast(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	execOn(t, s.Pool, `INSERT INTO pelton.schedule (name, spec) VALUES ('a', '{}')`)
	execOn(t, s.Pool, `INSERT INTO pelton.schedule_due (schedule_id, decided) SELECT id, now() FROM pelton.schedule`)
	var id int64
	var before, wake time.Time
	if err := s.Pool.QueryRow(t.Context(), "SELECT id, clock_timestamp() FROM pelton.schedule").Scan(&id, &before); err != nil {
		t.Fatal(err)
	}
	err := s.Tx(t.Context(), Limits{Lock: time.Second}, func(tx pgx.Tx) error {
		due := Due{ID: id, State: plan.State{Decided: before, Next: before.Add(-time.Hour)}}
		return s.WriteDue(t.Context(), tx, []Written{{Due: due, Wake: before.Add(-time.Hour)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Pool.QueryRow(t.Context(), "SELECT wake FROM pelton.schedule_due").Scan(&wake); err != nil || wake.Before(before) {
		t.Errorf("asked for an hour ago at %v, it is %v, %v", before, wake, err)
	}
}

// Each failure in a row doubles the time that a schedule is put off, up to five minutes; one that is paused stays so.
func TestPutOffDoubles(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	execOn(t, s.Pool, `INSERT INTO pelton.schedule (name, spec) VALUES ('a', '{}'), ('paused', '{}')`)
	execOn(t, s.Pool, `INSERT INTO pelton.schedule_due (schedule_id, decided, wake) SELECT id, now(), CASE name WHEN 'a' THEN now() END FROM pelton.schedule`)
	for i, want := range []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		var before time.Time
		if err := s.Pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&before); err != nil {
			t.Fatal(err)
		}
		if err := s.PutOff(t.Context(), s.Pool, []int64{1, 2}, time.Second); err != nil {
			t.Fatal(err)
		}
		var awake int
		var off float64 // a little more than asked for: the clock goes on
		if err := s.Pool.QueryRow(t.Context(), "SELECT count(wake), extract(epoch FROM max(wake) - $1)::float8 FROM pelton.schedule_due", before).Scan(&awake, &off); err != nil {
			t.Fatal(err)
		}
		if awake != 1 {
			t.Fatalf("%d schedules wake, want the one that is not paused", awake)
		}
		if off < want || want < 300 && off >= 2*want {
			t.Errorf("after %d failures it is put off by %.1f s, want %.0f", i+1, off, want)
		}
	}
}
