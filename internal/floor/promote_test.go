package floor_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/internal/postgres"
	"github.com/peltonq/pelton/schema"
)

// A standby that is behind is promoted: its sequence has not drawn what marks, notes and published rows of the old primary
// speak of. A reader that goes over to it starts anew, and a marker in the middle of a note forgets that.
func TestPromotedStandbyIsBehind(t *testing.T) {
	t.Parallel()
	primary := pgtest.NewCluster(t, postgres.Config{NoSync: true})
	if err := schema.Up(t.Context(), primary.DSN("postgres"), schemaName); err != nil {
		t.Fatal(err)
	}
	standby := pgtest.NewStandby(t, primary)
	before := pgtest.Pool(t, primary.DSN("postgres"))
	marker, noting, tracker := floor.NewMarker(schemaName, floor.Ready, quick()), floor.NewMarker(schemaName, floor.Ready, quick()), newTracker(t)
	enqueue(t, before, 5)
	step(t, marker, before)
	refresh(t, tracker, before)
	standby.AwaitCopy(t)
	standby.Lag()
	enqueue(t, before, 200)
	if _, err := before.Exec(t.Context(), `DELETE FROM pelton.job_ready`); err != nil {
		t.Fatal(err)
	}
	step(t, marker, before)
	if got := refresh(t, tracker, before); got != 206 {
		t.Fatalf("mark is %d on the old primary, want 206", got)
	}
	writer, err := before.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Exec(t.Context(), insertTickets, 1); err != nil {
		t.Fatal(err)
	}
	step(t, noting, before) // waits for the writer
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Rollback(t.Context()) // its server is gone
	standby.Promote(t)

	after := pgtest.Pool(t, standby.DSN("postgres"))
	if got := refresh(t, tracker, after); got != 1 {
		t.Errorf("mark is %d on the new primary, want 1: the five rows that it has got are in its line", got)
	}
	drain := func() int64 {
		var last int64
		if err := after.QueryRow(t.Context(), `WITH gone AS (DELETE FROM pelton.job_ready RETURNING seq) SELECT max(seq) FROM gone`).Scan(&last); err != nil {
			t.Fatal(err)
		}
		return last
	}
	drain()
	enqueue(t, after, 1)
	first := least(t, after)
	if first >= 206 {
		t.Fatalf("the new primary's row is at %d: the test shows nothing", first)
	}
	step(t, noting, after)
	step(t, noting, after)
	if got := refresh(t, tracker, after); got > first {
		t.Fatalf("mark is %d on the new primary, its first row at %d", got, first)
	}
	last := drain()
	for range 2 {
		step(t, marker, after)
		step(t, noting, after)
	}
	if got := refresh(t, tracker, after); got != last+1 {
		t.Errorf("mark is %d, want %d: markers go on", got, last+1)
	}
	if n, err := tracker.CheckBelow(t.Context(), after); err != nil || n != 0 {
		t.Errorf("%d lines had rows below their marks: %v", n, err)
	}
}

// least is the first position in the line.
func least(t *testing.T, pool *pgxpool.Pool) (seq int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT min(seq) FROM pelton.job_ready`).Scan(&seq); err != nil {
		t.Fatal(err)
	}
	return seq
}
