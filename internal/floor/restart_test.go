package floor_test

import (
	"context"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/internal/postgres"
	"github.com/peltonq/pelton/schema"
)

// A prepared transaction outlives a restart under another virtual id, whether it was waited for or passed. Marks start anew
// on the new instance.
func TestPreparedWriterOverARestart(t *testing.T) {
	t.Parallel()
	for _, passed := range []bool{false, true} {
		cluster := pgtest.NewCluster(t, postgres.Config{NoSync: true})
		dsn := cluster.DSN("postgres")
		if err := schema.Up(t.Context(), dsn, schemaName); err != nil {
			t.Fatal(err)
		}
		config := quick()
		if passed {
			config.Pass = time.Nanosecond
		}
		marker, tracker := floor.NewMarker(schemaName, floor.Ready, config), newTracker(t)
		pool := pgtest.Pool(t, dsn)
		enqueue(t, pool, 1) // 1
		step(t, marker, pool)
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{
			"BEGIN", `INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, 'a', '{1}')`, // 2
		} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		enqueue(t, pool, 4) // 3 to 6
		step(t, marker, pool)
		if _, err := conn.Exec(t.Context(), "PREPARE TRANSACTION 'late'"); err != nil {
			t.Fatal(err)
		}
		conn.Release()
		if _, err := pool.Exec(t.Context(), `DELETE FROM pelton.job_ready`); err != nil {
			t.Fatal(err)
		}
		if got, want := refresh(t, tracker, pool), map[bool]int64{false: 2, true: 7}[passed]; got != want {
			t.Fatalf("passed %v: mark is %d before the restart, want %d", passed, got, want)
		}
		if err := cluster.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		pgtest.Retry(t, time.Minute, func(ctx context.Context) error { // connections of before fail
			for range 3 {
				if _, err := marker.Step(ctx, pool); err != nil {
					return err
				}
			}
			return tracker.Refresh(ctx, pool)
		})
		if _, err := pool.Exec(t.Context(), "COMMIT PREPARED 'late'"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			step(t, marker, pool)
		}
		if got := refresh(t, tracker, pool); got != 2 {
			t.Fatalf("passed %v: mark is %d after the commit, want 2", passed, got)
		}
	}
}
