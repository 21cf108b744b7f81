package store

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/floor"
)

// A snapshot is kept open while schedules have fired 50,000 times, so that no trace of that can be removed. A claim, and a look at the next schedule,
// touch a few pages from the floor on, as they do in a fresh table; from the start they wade through what is dead.
func TestClaimUnderAPinnedSnapshot(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	execOn(t, s.Pool, `INSERT INTO pelton.schedule (name, spec) SELECT 's' || n, '{}' FROM generate_series(1, 1000) n`)
	execOn(t, s.Pool, `INSERT INTO pelton.schedule_due (schedule_id, wake, decided) SELECT id, now(), now() FROM pelton.schedule WHERE id <= 1`)
	marker := floor.NewMarker("pelton", floor.Schedules, floor.MarkerConfig{Pace: time.Millisecond, Worth: 1, Idle: time.Millisecond})
	tracker := floor.NewTracker("pelton", floor.Schedules, func(n int) { t.Errorf("%d had rows below their marks", n) })
	look := func(from int64) int {
		return pages(t, explain(t, s, true, "claim", from, 1)) + pages(t, explain(t, s, true, "next", from, []string{}))
	}
	fresh := look(0)
	pin, err := s.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pin.Rollback(context.WithoutCancel(t.Context())) }()
	execOn(t, s.Pool, `INSERT INTO pelton.schedule_due (schedule_id, wake, decided) SELECT id, clock_timestamp(), now() FROM pelton.schedule WHERE id > 1`)
	if _, err := pin.Exec(t.Context(), `SELECT count(*) FROM pelton.schedule_due`); err != nil { // takes the snapshot
		t.Fatal(err)
	}
	for range 50 {
		execOn(t, s.Pool, `UPDATE pelton.schedule_due SET wake = clock_timestamp()`)
		marker.Moved(1000)
		if _, err := marker.Step(t.Context(), s.Pool); err != nil {
			t.Fatal(err)
		}
		if err := tracker.Refresh(t.Context(), s.Pool); err != nil {
			t.Fatal(err)
		}
	}
	execOn(t, s.Pool, `VACUUM pelton.schedule_due`) // in vain
	marked, unmarked := look(tracker.Floor()), look(0)
	t.Logf("pages of a claim and a look: %d in a fresh table, %d from the floor on, %d from the start", fresh, marked, unmarked)
	if unmarked < 20*fresh {
		t.Errorf("from the start it touches %d pages: the test shows nothing", unmarked)
	}
	if marked > 2*fresh {
		t.Errorf("from the floor on it touches %d pages, in a fresh table %d", marked, fresh)
	}
}
