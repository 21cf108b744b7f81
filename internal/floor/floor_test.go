package floor_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

const schemaName = "pelton"

// quick is a marker that publishes whatever was drawn.
func quick() floor.MarkerConfig {
	return floor.MarkerConfig{
		Pace: time.Millisecond, Look: time.Millisecond, Pass: time.Minute, Worth: 1, Idle: time.Millisecond,
	}
}

func step(t *testing.T, m *floor.Marker, db floor.DB) {
	t.Helper()
	if _, err := m.Step(t.Context(), db); err != nil {
		t.Fatal(err)
	}
}

func refresh(t *testing.T, r *floor.Tracker, db floor.DB) int64 {
	t.Helper()
	if err := r.Refresh(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return r.Mark("a", 1)
}

func enqueue(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), insertTickets, n); err != nil {
		t.Fatal(err)
	}
}

const insertTickets = `INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'a', ARRAY[g] FROM generate_series(1, $1::int) g`

func newTracker(t *testing.T) *floor.Tracker {
	t.Helper()
	tracker := floor.NewTracker(schemaName, floor.Ready, func(n int) { t.Errorf("%d lines had rows below their marks", n) })
	tracker.Use("a")
	return tracker
}

func TestMarkFollowsTheHead(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	marker, tracker := floor.NewMarker(schemaName, floor.Ready, quick()), newTracker(t)
	if got := refresh(t, tracker, pool); got != 0 {
		t.Fatalf("mark is %d before anything was published", got)
	}
	enqueue(t, pool, 10)
	step(t, marker, pool)
	if got := refresh(t, tracker, pool); got != 1 {
		t.Fatalf("mark is %d, want 1, the first row", got)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM pelton.job_ready WHERE seq < 7`); err != nil {
		t.Fatal(err)
	}
	if got := refresh(t, tracker, pool); got != 7 {
		t.Fatalf("mark is %d, want 7, the first row left", got)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM pelton.job_ready`); err != nil {
		t.Fatal(err)
	}
	if got := refresh(t, tracker, pool); got != 11 {
		t.Fatalf("mark is %d, want 11, behind all that was settled", got)
	}
	enqueue(t, pool, 1)
	if got := refresh(t, tracker, pool); got != 11 {
		t.Fatalf("mark is %d, want 11", got)
	}
}

func TestMarkWaitsForAnOpenWriter(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	marker, tracker := floor.NewMarker(schemaName, floor.Ready, quick()), newTracker(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SAVEPOINT a"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), insertTickets, 5); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		step(t, marker, pool)
	}
	if got := refresh(t, tracker, pool); got != 0 {
		t.Fatalf("mark is %d while the writer is open, want 0", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	step(t, marker, pool)
	if got := refresh(t, tracker, pool); got != 1 {
		t.Fatalf("mark is %d after the commit, want 1", got)
	}
}

func TestWriterThatStaysOpenIsPassedAndLookedForLater(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	config := quick()
	config.Pass = time.Nanosecond
	marker, tracker := floor.NewMarker(schemaName, floor.Ready, config), newTracker(t)
	enqueue(t, pool, 1)
	step(t, marker, pool) // settles 1
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), insertTickets, 5); err != nil { // 2 to 6
		t.Fatal(err)
	}
	enqueue(t, pool, 4) // 7 to 10
	step(t, marker, pool)
	if _, err := pool.Exec(t.Context(), `DELETE FROM pelton.job_ready`); err != nil {
		t.Fatal(err)
	}
	if got := refresh(t, tracker, pool); got != 11 {
		t.Fatalf("mark is %d, want 11: the open writer is passed", got)
	}
	if _, err := tx.Exec(t.Context(), insertTickets, 1); err != nil { // 11
		t.Fatal(err)
	}
	enqueue(t, pool, 1)
	step(t, marker, pool)
	if got := refresh(t, tracker, pool); got != 12 {
		t.Fatalf("mark is %d, want 12: a writer passed once is not waited for again", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := tracker.CheckBelow(t.Context(), pool); err != nil || n != 0 {
		t.Fatalf("%d lines had rows below their marks, want 0: the writer was passed (%v)", n, err)
	}
	if got := tracker.Mark("a", 1); got != 2 {
		t.Fatalf("mark is %d after looking below, want 2", got)
	}
	other := floor.NewMarker(schemaName, floor.Ready, config)
	late := newTracker(t)
	if got := refresh(t, late, pool); got != 2 {
		t.Fatalf("a new reader's mark is %d, want 2", got)
	}
	step(t, other, pool)
	var from int64
	if err := pool.QueryRow(t.Context(), `SELECT look_from FROM pelton.floor ORDER BY no DESC LIMIT 1`).Scan(&from); err != nil || from != 2 {
		t.Fatalf("another marker published look_from %d, want 2 (%v)", from, err)
	}
}

func TestPreparedWriterIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, passed := range []bool{false, true} {
		pool := schematest.Pool(t)
		config := quick()
		if passed {
			config.Pass = time.Nanosecond
		}
		marker, tracker := floor.NewMarker(schemaName, floor.Ready, config), newTracker(t)
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), insertTickets, 5); err != nil {
			t.Fatal(err)
		}
		enqueue(t, pool, 5)
		step(t, marker, pool) // notes, or passes, the open writer
		if _, err := conn.Exec(t.Context(), "PREPARE TRANSACTION 'late'"); err != nil {
			t.Fatal(err)
		}
		conn.Release()
		if _, err := pool.Exec(t.Context(), `DELETE FROM pelton.job_ready`); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			step(t, marker, pool)
		}
		if got, want := refresh(t, tracker, pool), map[bool]int64{false: 0, true: 11}[passed]; got != want {
			t.Fatalf("passed %v: mark is %d while the writer is prepared, want %d", passed, got, want)
		}
		if _, err := pool.Exec(t.Context(), "COMMIT PREPARED 'late'"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			step(t, marker, pool)
		}
		if got := refresh(t, tracker, pool); got != 1 {
			t.Fatalf("passed %v: mark is %d after the commit, want 1", passed, got)
		}
	}
}

func TestTrackerThatMissedRowsStartsAnew(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	marker, tracker := floor.NewMarker(schemaName, floor.Ready, quick()), newTracker(t)
	enqueue(t, pool, 1)
	step(t, marker, pool)
	if _, err := pool.Exec(t.Context(), `DELETE FROM pelton.job_ready`); err != nil {
		t.Fatal(err)
	}
	refresh(t, tracker, pool)
	for range 3 {
		enqueue(t, pool, 1)
		step(t, marker, pool)
	}
	// Somebody puts a row below the mark, which never happens, to see that it is looked for.
	if _, err := pool.Exec(t.Context(), `INSERT INTO pelton.job_ready (seq, priority, line, job_ids) VALUES (1, 1, 'a', '{1}')`); err != nil {
		t.Fatal(err)
	}
	if got := refresh(t, tracker, pool); got != 2 {
		t.Fatalf("mark is %d, want 2", got)
	}
	enqueue(t, pool, 1)
	step(t, marker, pool)
	enqueue(t, pool, 1)
	step(t, marker, pool)
	if _, err := pool.Exec(t.Context(), `DELETE FROM pelton.floor WHERE no < (SELECT max(no) FROM pelton.floor)`); err != nil {
		t.Fatal(err)
	}
	if got := refresh(t, tracker, pool); got != 1 {
		t.Fatalf("mark is %d after missing rows, want 1", got)
	}
}

func TestNetCountsRowsBelowTheMark(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	counted := 0
	marker, tracker := floor.NewMarker(schemaName, floor.Ready, quick()), floor.NewTracker(schemaName, floor.Ready, func(n int) { counted += n })
	tracker.Use("a", "b")
	enqueue(t, pool, 3)
	step(t, marker, pool)
	if _, err := pool.Exec(t.Context(), `DELETE FROM pelton.job_ready`); err != nil {
		t.Fatal(err)
	}
	refresh(t, tracker, pool)
	if _, err := pool.Exec(t.Context(), `INSERT INTO pelton.job_ready (seq, priority, line, job_ids) VALUES (2, 1, 'a', '{1}')`); err != nil {
		t.Fatal(err)
	}
	if n, err := tracker.CheckBelow(t.Context(), pool); err != nil || n != 1 || counted != 1 {
		t.Fatalf("found %d and counted %d, want 1 (%v)", n, counted, err)
	}
	if got := tracker.Mark("a", 1); got != 2 {
		t.Fatalf("mark is %d, want 2", got)
	}
}

func TestSequenceBehindResetsTheMarks(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	marker, tracker := floor.NewMarker(schemaName, floor.Ready, quick()), newTracker(t)
	enqueue(t, pool, 10)
	step(t, marker, pool)
	if _, err := pool.Exec(t.Context(), `TRUNCATE pelton.job_ready; ALTER SEQUENCE pelton.job_ready_seq RESTART`); err != nil {
		t.Fatal(err)
	}
	if got := refresh(t, tracker, pool); got != 11 {
		t.Fatalf("mark is %d, want 11", got)
	}
	enqueue(t, pool, 3)
	step(t, marker, pool)
	if got := refresh(t, tracker, pool); got != 1 {
		t.Fatalf("mark is %d after the reset, want 1", got)
	}
}

func TestTwoMarkersPublishOneChain(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	one, other := floor.NewMarker(schemaName, floor.Ready, quick()), floor.NewMarker(schemaName, floor.Ready, quick())
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), insertTickets, 5); err != nil {
		t.Fatal(err)
	}
	step(t, one, pool) // both note the writer
	step(t, other, pool)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	step(t, one, pool)
	step(t, other, pool)
	var rows int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.floor`).Scan(&rows); err != nil || rows != 1 {
		t.Fatalf("%d rows were published, want 1 (%v)", rows, err)
	}
}

// Reports have ids of a sequence and one mark for all.
func TestReportsFloor(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	marker := floor.NewMarker(schemaName, floor.Reports, quick())
	tracker := floor.NewTracker(schemaName, floor.Reports, func(int) { t.Errorf("rows below the floor") })
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	rises := func(want int64) {
		t.Helper()
		marker.Moved(1)
		step(t, marker, pool)
		if err := tracker.Refresh(t.Context(), pool); err != nil || tracker.Floor() != want {
			t.Fatalf("floor is %d, want %d (%v)", tracker.Floor(), want, err)
		}
	}
	exec(`INSERT INTO pelton.flow_report (run_id) SELECT 1 FROM generate_series(1, 5)`)
	exec(`DELETE FROM pelton.flow_report WHERE id <= 3`)
	rises(4)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `INSERT INTO pelton.flow_report (run_id) VALUES (2)`); err != nil { // 6
		t.Fatal(err)
	}
	exec(`DELETE FROM pelton.flow_report`)
	exec(`INSERT INTO pelton.flow_report (run_id) VALUES (3)`)
	rises(6) // what is settled, and no row up to there
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	rises(6)
	exec(`DELETE FROM pelton.flow_report`)
	rises(8)
	if n, err := tracker.CheckBelow(t.Context(), pool); err != nil || n != 0 {
		t.Fatal(n, err)
	}
}

func TestScheduledFloor(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	marker := floor.NewMarker(schemaName, floor.Scheduled, quick())
	tracker := floor.NewTracker(schemaName, floor.Scheduled, func(int) { t.Errorf("rows below the floor") })
	_, err := pool.Exec(t.Context(), `INSERT INTO pelton.job_scheduled (job_id, wake, due)
		SELECT g, clock_timestamp(), now() - interval '1 hour' FROM generate_series(1, 3) g`)
	if err != nil {
		t.Fatal(err)
	}
	step(t, marker, pool)
	if err := tracker.Refresh(t.Context(), pool); err != nil || tracker.Floor() != 0 {
		t.Fatalf("floor is %d though nothing was moved, want 0 (%v)", tracker.Floor(), err)
	}
	marker.Moved(1)
	step(t, marker, pool)
	var first int64
	if err := pool.QueryRow(t.Context(), `SELECT min(pelton.position_of(wake)) FROM pelton.job_scheduled`).Scan(&first); err != nil {
		t.Fatal(err)
	}
	if err := tracker.Refresh(t.Context(), pool); err != nil || tracker.Floor() != first {
		t.Fatalf("floor is %d, want %d (%v)", tracker.Floor(), first, err)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM pelton.job_scheduled`); err != nil {
		t.Fatal(err)
	}
	if err := tracker.Refresh(t.Context(), pool); err != nil || tracker.Floor() <= first {
		t.Fatalf("floor is %d, want it behind %d (%v)", tracker.Floor(), first, err)
	}
	if n, err := tracker.CheckBelow(t.Context(), pool); err != nil || n != 0 {
		t.Fatal(n, err)
	}
}
