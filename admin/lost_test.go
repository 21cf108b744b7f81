package admin

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/schema/schematest"
)

// Lost jobs are counted in pieces, as lost_jobs() finds them, and what has ended is not read again for a day.
func TestLostJobsAreCountedInPieces(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t) // not audited: jobs are lost
	exec := func(statement string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	// By the last digit of n: 0 to 2 ended, 3 retried and in line again, 4 scheduled, 5 parked, 6 running, 7 in line, 8 cancelled in the line, 9 deleted in the line.
	// Of each kind the first five are lost, but for the deleted ones: they lack the row that tells where they are.
	exec(`CREATE TABLE made AS SELECT pelton.id_at(now() - interval '5 hours') + n * pelton.id_at('2024-01-01 00:00:03+00') AS id, n, n % 10 AS d, n < 50 AS lost
		FROM generate_series(0, 4999) n`)
	exec(`INSERT INTO pelton.job (id, kind, args, created_at) SELECT id, 'k', '{}', pelton.job_id_time(id) FROM made`)
	exec(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) SELECT id, 1, 1, (ARRAY['completed', 'cancelled', 'discarded', 'discarded'])[1 + d]::pelton.outcome
		FROM made WHERE d < 3 AND NOT lost OR d = 3`)
	exec(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) SELECT id, 2, 1, 'retried' FROM made WHERE d = 3`)
	exec(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) SELECT id, 1, 1, 'errored' FROM made WHERE d = 6 AND lost`)
	exec(`INSERT INTO pelton.job_scheduled (job_id, wake, due) SELECT id, now(), now() FROM made WHERE d = 4 AND NOT lost`)
	exec(`INSERT INTO pelton.job_parked (job_id) SELECT id FROM made WHERE d = 5 AND NOT lost`)
	exec(`INSERT INTO pelton.job_lease (executor, no, job_ids) SELECT 1, n, ARRAY[id] FROM made WHERE d = 6`)
	exec(`INSERT INTO pelton.job_ready (priority, line, job_ids, runs) SELECT 1, 'default', array_agg(id), array_agg(CASE d WHEN 3 THEN 3 ELSE 1 END)
		FROM made WHERE d IN (3, 7, 8, 9) AND NOT lost GROUP BY n / 100`)
	exec(`INSERT INTO pelton.job_void (job_id, run, reason) SELECT id, 1, CASE d WHEN 8 THEN 'cancelled' ELSE 'deleted' END FROM made WHERE d IN (8, 9)`)
	exec(`INSERT INTO pelton.job (kind, args, created_at) SELECT 'too young', '{}', now() + interval '1 hour' FROM generate_series(1, 10)`)
	l := newLost(pool, MetricsConfig{Logger: slog.New(slog.DiscardHandler)}.withDefaults())
	l.rows, l.share = lostLeast, 0
	expect := func(want int64) {
		t.Helper()
		n, err := l.count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Errorf("%d jobs are lost, want %d", n, want)
		}
	}
	var lost int64
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.lost_jobs()`, pgx.QueryExecModeExec).Scan(&lost); err != nil {
		t.Fatal(err)
	}
	if lost != 45 {
		t.Fatalf("lost_jobs() finds %d jobs, want 45", lost)
	}
	expect(lost)
	if n := l.jobs.Load(); n != lost {
		t.Errorf("what was found is not known at once: %d", n)
	}

	// All that is not in its place is there now, and what else was to be done is done.
	exec(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) SELECT j.id, 9, 1, 'completed' FROM pelton.job j JOIN made m ON m.id = j.id WHERE m.d NOT IN (4, 5, 9) OR m.lost`)
	expect(0)
	var oldest int64
	if err := pool.QueryRow(t.Context(), `SELECT pelton.id_at(now() - interval '20 minutes')`).Scan(&oldest); err != nil {
		t.Fatal(err)
	}
	if l.settled < oldest {
		t.Errorf("the next count reads from %d on, as if there were older jobs that have not ended", l.settled)
	}
	exec(`DELETE FROM pelton.job_attempt WHERE job_id = (SELECT min(id) FROM made)`)
	expect(0)
	l.whole = l.whole.Add(-lostWhole)
	expect(1)
	exec(`DELETE FROM pelton.job WHERE id = (SELECT min(id) FROM made)`)
	expect(0)
	if time.Since(l.whole) > lostWhole {
		t.Error("the next count reads the history again")
	}
}
