package sqltest

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/schema/schematest"
)

func TestEveryJobIsInOnePlace(t *testing.T) {
	t.Parallel()
	pool := seeded(t)
	rows, err := pool.Query(t.Context(), `SELECT state, count(*), count(DISTINCT job_id) FROM pelton.job_state GROUP BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	var state string
	var n, distinct int
	if _, err := pgx.ForEachRow(rows, []any{&state, &n, &distinct}, func() error {
		found[state] = n
		if n != distinct {
			t.Errorf("%d rows of %d jobs are %s", n, distinct, state)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"available": 13, "cancelled": 3, "completed": 370, "discarded": 4, "pending": 1, "retryable": 1, "running": 3, "scheduled": 4,
	}
	if !maps.Equal(found, want) {
		t.Errorf("states are %v, want %v", found, want)
	}
	if n := value[int](t, pool, `SELECT count(*)::int FROM pelton.job j
		WHERE (SELECT count(*) FROM pelton.job_state s WHERE s.job_id = j.id) <> 1`); n != 0 {
		t.Errorf("%d jobs are not in exactly one place", n)
	}
}

func TestStateOfEachKindOfJob(t *testing.T) {
	t.Parallel()
	pool := seeded(t)
	for which, want := range map[string]string{
		`SELECT job_id FROM pelton.job_attempt WHERE outcome = 'moved'`:                                                      "completed 5 1",
		`SELECT job_id FROM pelton.job_attempt WHERE error = 'context deadline exceeded'`:                                    "retryable 2 1",
		`SELECT id FROM pelton.job WHERE args ->> 'retried' = 'true'`:                                                        "available 3 1",
		`SELECT id FROM pelton.job WHERE kind = 'pdf'`:                                                                       "available 2 0",
		`SELECT job_id FROM pelton.job_void v JOIN pelton.job_attempt USING (job_id, run)`:                                   "available 3 0",
		`SELECT job_id FROM pelton.job_void v WHERE NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = v.job_id)`: "cancelled 1 0",
		`SELECT job_ids[1] FROM pelton.job_lease WHERE executor = 2`:                                                         "running 1 1",
		`SELECT job_ids[2] FROM pelton.job_lease WHERE executor = 2`:                                                         "completed 1 1",
		`SELECT job_id FROM pelton.job_parked`:                                                                               "pending 1 0",
		`SELECT min(job_id) FROM pelton.job_dead`:                                                                            "discarded 2 2",
		`SELECT min(job_id) FROM pelton.job_scheduled WHERE NOT retry`:                                                       "scheduled 1 0",
	} {
		got := value[string](t, pool, `SELECT concat_ws(' ', state, run, attempt) FROM pelton.job_state WHERE job_id = (`+which+`)`)
		if got != want {
			t.Errorf("%s is %s, want %s", which, got, want)
		}
		report := value[string](t, pool, `SELECT concat_ws(' ', state, run, attempt) FROM pelton.job_report WHERE id = (`+which+`)`)
		if report != want {
			t.Errorf("%s is %s in job_report, want %s", which, report, want)
		}
	}
}

// TestLostJobsAreFound takes jobs out of each place and looks whether they are missed.
func TestLostJobsAreFound(t *testing.T) {
	t.Parallel()
	pool := seeded(t)
	if lost := values[int64](t, pool, `SELECT job_id FROM pelton.lost_jobs('0')`); len(lost) != 0 {
		t.Fatalf("jobs %v are lost", lost)
	}
	for place, loss := range map[string]string{
		"the line":        `DELETE FROM pelton.job_ready WHERE line = 'archive' RETURNING job_ids[1]`,
		"a lease":         `DELETE FROM pelton.job_lease WHERE executor = 2 RETURNING job_ids[1]`,
		"scheduled":       `DELETE FROM pelton.job_scheduled WHERE NOT retry AND due < now() RETURNING job_id`,
		"retryable":       `DELETE FROM pelton.job_scheduled WHERE retry RETURNING job_id`,
		"parked":          `DELETE FROM pelton.job_parked RETURNING job_id`,
		"the last run":    `DELETE FROM pelton.job_attempt WHERE ctid IN (SELECT min(ctid) FROM pelton.job_attempt WHERE outcome = 'discarded') RETURNING job_id`,
		"the second life": `DELETE FROM pelton.job_ready WHERE runs[1] = 3 AND line = 'default' RETURNING job_ids[1]`,
	} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gone := value[int64](t, tx, loss)
		if lost := values[int64](t, tx, `SELECT job_id FROM pelton.lost_jobs()`); len(lost) != 1 || lost[0] != gone {
			t.Errorf("job %d was taken out of %s: lost are %v", gone, place, lost)
		}
		exec(t, tx, `INSERT INTO pelton.job_void (job_id, run, reason) VALUES ($1, 99, 'deleted')`, gone)
		if lost := values[int64](t, tx, `SELECT job_id FROM pelton.lost_jobs()`); len(lost) != 0 {
			t.Errorf("job %d was deleted, but counts as lost: %v", gone, lost)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, pool, `DELETE FROM pelton.job_parked`)
	if lost := values[int64](t, pool, `SELECT job_id FROM pelton.lost_jobs('1 day')`); len(lost) != 0 {
		t.Errorf("jobs younger than the grace are lost: %v", lost)
	}
}

func TestWaitingNamesWhom(t *testing.T) {
	t.Parallel()
	pool := seeded(t)
	for line, want := range map[string]string{
		"default": "a free slot", "mail": "somebody to resume queue mail", "archive": "an executor of queue archive",
		"default/kind=pdf": "an executor of queue default that knows kind pdf",
	} {
		for _, got := range values[string](t, pool, `SELECT waits_for FROM pelton.waiting WHERE line = $1`, line) {
			if got != want {
				t.Errorf("jobs in line %s wait for %s, want %s", line, got, want)
			}
		}
	}
	exec(t, pool, `INSERT INTO pelton.queue (name, paused_at) VALUES ('*', now())`)
	if got := value[string](t, pool, `SELECT DISTINCT waits_for FROM pelton.waiting WHERE line = 'default'`); got !=
		"somebody to resume queue *" {
		t.Errorf("with all queues paused, jobs wait for %s", got)
	}
	inState := value[int](t, pool, `SELECT count(*)::int FROM pelton.job_state
		WHERE state IN ('available', 'scheduled', 'retryable', 'pending')`)
	if n := value[int](t, pool, `SELECT count(*)::int FROM pelton.waiting`); n != inState {
		t.Errorf("%d jobs are in waiting, %d in job_state", n, inState)
	}
}

func TestRunReportTimes(t *testing.T) {
	t.Parallel()
	pool := seeded(t)
	times := values[string](t, pool, `SELECT concat_ws(' ', run, outcome, waited, took) FROM pelton.run_report
		WHERE job_id = (SELECT job_id FROM pelton.job_attempt WHERE outcome = 'moved') ORDER BY run`)
	want := []string{
		"1 snoozed 00:00:01 00:00:01", "2 returned 00:00:01 00:00:01", "3 parked", "4 moved", "5 completed 00:00:01 00:00:05",
	}
	if fmt.Sprint(times) != fmt.Sprint(want) {
		t.Errorf("runs are %q, want %q", times, want)
	}
	if n := value[int](t, pool, `SELECT count(*)::int FROM pelton.run_report WHERE outcome = 'running'`); n != 3 {
		t.Errorf("%d runs go on, want 3", n)
	}
}

func TestViewsAreCommented(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	const named = `SELECT c.relname || coalesce('.' || a.attname, '') FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'pelton'
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
		WHERE c.relkind = 'v'`
	if views := values[string](t, pool, named); len(views) < 100 {
		t.Fatalf("only %d view columns", len(views))
	}
	for _, missing := range values[string](t, pool, named+` AND col_description(c.oid, a.attnum) IS NULL`) {
		t.Errorf("%s has no comment", missing)
	}
	for _, missing := range values[string](t, pool, named+` AND obj_description(c.oid) IS NULL`) {
		t.Errorf("the view of %s has no comment", missing)
	}
}

// TestOneJobReadsItsPartitionsOnly explains job_state for one id in a schema of many partitions: each partitioned table may show
// the partition of the id and no other.
func TestOneJobReadsItsPartitionsOnly(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `ALTER TABLE pelton.job DETACH PARTITION pelton.job_rest;
		ALTER TABLE pelton.job_attempt DETACH PARTITION pelton.job_attempt_rest`)
	day := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 40 {
		for _, table := range []string{"job", "job_attempt"} {
			from, to := idAt(day.AddDate(0, 0, i)), idAt(day.AddDate(0, 0, i+1))
			exec(t, pool, fmt.Sprintf(`CREATE TABLE pelton.%[1]s_d%02[2]d PARTITION OF pelton.%[1]s FOR VALUES FROM (%[3]d) TO (%[4]d)`,
				table, i, from, to))
		}
	}
	id := idAt(day.AddDate(0, 0, 17)) + 5
	exec(t, pool, `INSERT INTO pelton.job (id, kind, queue, args) VALUES ($1, 'k', 'q', '{}')`, id)
	exec(t, pool, `INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, 1, 1, 'errored')`, id)
	exec(t, pool, `INSERT INTO pelton.job_lease (executor, no, job_ids) VALUES (1, 1, ARRAY[$1::bigint])`, id)
	exec(t, pool, `INSERT INTO pelton.job_scheduled (job_id, wake, due, run, retry) VALUES ($1, now(), now(), 2, true)`, id)
	for _, query := range []string{
		`SELECT * FROM pelton.job_state WHERE job_id = %d`,
		`SELECT j.kind, s.state FROM pelton.job j JOIN pelton.job_state s ON s.job_id = j.id WHERE j.id = %d`,
	} {
		plan := values[string](t, pool, `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) `+fmt.Sprintf(query, id))
		read := 0
		for _, line := range plan {
			if strings.Contains(line, "_d17") {
				read++
			} else if isPartition.MatchString(line) && !strings.Contains(line, "never executed") {
				t.Errorf("the plan reads another partition: %s", line)
			}
		}
		if read == 0 {
			t.Errorf("the plan does not read the partition of the id:\n%s", strings.Join(plan, "\n"))
		}
	}
	line := strings.Join(values[string](t, pool, `EXPLAIN (COSTS OFF) SELECT * FROM pelton.job_state WHERE state = 'available'`), "\n")
	for _, table := range []string{"job_attempt", "job_lease", "job_scheduled", "job_parked"} {
		if strings.Contains(line, table) {
			t.Errorf("what is available reads %s:\n%s", table, line)
		}
	}
}

// isPartition finds a scan of one of the test's partitions in a plan.
var isPartition = regexp.MustCompile(`Scan.* on (job|job_attempt)_d\d\d `)

// idAt is the least id of a second, as id_at has it.
func idAt(at time.Time) int64 {
	return (at.Unix() - time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Unix()) << 24
}
