package store_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

// cutIntoDays cuts job and job_attempt into 45 partitions of a day, 40 of them in the past.
const cutIntoDays = `DO $$
DECLARE
	day bigint := 86400::bigint << 24;
	first bigint := (pelton.id_at(now()) / (86400::bigint << 24) - 40) * (86400::bigint << 24);
	name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['job', 'job_attempt'] LOOP
		EXECUTE format('ALTER TABLE pelton.%1$s DETACH PARTITION pelton.%1$s_rest', name);
		EXECUTE format('CREATE TABLE pelton.%1$s_past PARTITION OF pelton.%1$s FOR VALUES FROM (0) TO (%2$s)', name, first);
		FOR i IN 0..44 LOOP
			EXECUTE format('CREATE TABLE pelton.%1$s_day%2$s PARTITION OF pelton.%1$s FOR VALUES FROM (%3$s) TO (%4$s)',
				name, i, first + i * day, first + (i + 1) * day);
		END LOOP;
		EXECUTE format('ALTER TABLE pelton.%1$s ATTACH PARTITION pelton.%1$s_rest FOR VALUES FROM (%2$s) TO (MAXVALUE)',
			name, first + 45 * day);
	END LOOP;
END $$`

// fill puts 50 jobs a day into the last 40 days, each with an ended run, and much into the moving tables, which were empty when
// they were analyzed: the statistics say nothing of their heads.
var fill = []string{
	cutIntoDays,
	`INSERT INTO pelton.job (id, kind, args) SELECT pelton.id_at(now() - d * interval '1 day') + n, 'noop', '{}'
		FROM generate_series(0, 39) d, generate_series(1, 50) n`,
	`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) SELECT id, 1, 'errored', 1 FROM pelton.job`,
	`ANALYZE`,
	`INSERT INTO pelton.job_ready (priority, line, job_ids)
		SELECT 1 + n % 4, 'line' || n % 5, ARRAY[n, n + 1] FROM generate_series(1, 20000) n`,
	`INSERT INTO pelton.job_scheduled (job_id, wake, due)
		SELECT n, at, at FROM generate_series(1, 20000) n, LATERAL (SELECT now() + n * interval '1 second' - interval '1 hour' AS at) t`,
}

// TestPlansOfWhatRunsAllTheTime looks at the statements that are run all the time, on a database that has been filled.
func TestPlansOfWhatRunsAllTheTime(t *testing.T) {
	t.Parallel()
	d := &desk{Store: store.New(schematest.Pool(t), "pelton"), t: t} // not audited: what lies there is no job's
	for _, statement := range fill {
		d.exec(statement)
	}
	for name, look := range map[string]func(d *desk){
		"claim": planOfTheClaim, "looks": plansOfLooks, "reads by ids": readsByIDsPrune,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look(&desk{Store: d.Store, t: t})
		})
	}
}

// explain returns the plan of a statement as the store runs it: planned for these values, under these limits.
func (d *desk) explain(limits store.Limits, name string, args ...any) string {
	d.t.Helper()
	var plan string
	err := d.Tx(d.t.Context(), limits, func(tx pgx.Tx) error {
		rows, err := tx.Query(d.t.Context(), "EXPLAIN (ANALYZE, VERBOSE, COSTS off, TIMING off) "+d.Statement(name),
			append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	if err != nil {
		d.t.Fatalf("%s: %v", name, err)
	}
	return plan
}

// wants wants all of these in a plan, and none of those that begin with "not ".
func wants(t *testing.T, name, plan string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		pattern, unwanted := strings.CutPrefix(p, "not ")
		if regexp.MustCompile(pattern).MatchString(plan) == unwanted {
			t.Errorf("%s: want %s in its plan:\n%s", name, p, plan)
		}
	}
}

// The claim deletes what it locked by its place in the table, and looks for nothing else.
func planOfTheClaim(d *desk) {
	d.t.Helper()
	plan := d.explain(store.Limits{NoSeqScan: true}, "claim", int64(7), int64(1), []string{"line1", "line2"}, []int16{1, 2},
		[]int64{15000, 1}, []float64{0, 60}, 10, 100)
	wants(d.t, "claim", plan, `Tid Scan on pelton\.job_ready`, `not (Seq|Bitmap Heap) Scan on pelton`)
}

// The polls of idle executors, the mover and its look at what comes next read by their indexes.
func plansOfLooks(d *desk) {
	t := d.t
	t.Helper()
	const head = `Index (Only )?Scan using job_ready_head on pelton\.job_ready t`
	const cond = `Index Cond: \(\(t\.line = p\.line\) AND \(t\.priority = p\.priority\) AND \(t\.seq >= p\.mark\)\)`
	for _, name := range []string{"look_lines", "look_again"} {
		plan := d.explain(store.Limits{}, name, []string{"line1", "none"}, []int16{1, 2}, []int64{15000, 1})
		wants(t, name, plan, head, cond, `not Seq Scan on pelton\.job_ready`, `not Sort Key: t\.seq`)
	}
	var floor int64
	if err := d.Pool.QueryRow(t.Context(), `SELECT pelton.position_of(now() - interval '10 minutes')`).Scan(&floor); err != nil {
		t.Fatal(err)
	}
	wants(t, "take_due", d.explain(store.MoveLimits, "take_due", floor, 500),
		`Index Scan using job_scheduled_wake on pelton\.job_scheduled s\w*`,
		`Index Cond: \(\(s\w*\.wake >= .*\) AND \(s\w*\.wake <= now\(\)\)\)`,
		`Tid Scan on pelton\.job_scheduled`, `not Seq Scan on pelton`, `not Sort Key: s\w*\.wake`)
}

// The reads of the heads' first rows are within functions, whose plans cannot be seen: count the scans they make. The tables hold
// so little that the planner would read them whole if it were free to.
func TestLooksForFirstRowsScanNoTable(t *testing.T) {
	t.Parallel()
	d := &desk{Store: store.New(schematest.Pool(t), "pelton"), t: t}
	d.exec(`ANALYZE pelton.job_ready, pelton.job_scheduled`)
	d.exec(`INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'line1', ARRAY[n] FROM generate_series(1, 3) n`)
	d.exec(`INSERT INTO pelton.job_scheduled (job_id, wake, due) SELECT n, now(), now() FROM generate_series(1, 3) n`)
	for table, sql := range map[string]string{
		"job_ready": `SELECT pelton.job_ready_first(ARRAY['line1', 'none'], ARRAY[1, 2]::smallint[], ARRAY[1, 1]::bigint[],
			ARRAY[15000, 15000]::bigint[])`,
		"job_scheduled": `SELECT pelton.job_scheduled_first(ARRAY[0::bigint], ARRAY[253402300799000000])`,
	} {
		d.inTx(func(ctx context.Context, tx pgx.Tx) {
			var first []*int64
			if err := tx.QueryRow(ctx, sql).Scan(&first); err != nil || first[0] == nil {
				t.Fatalf("first of %s: %v, %v", table, first, err)
			}
			var whole int64
			if err := tx.QueryRow(ctx, `SELECT seq_scan FROM pg_stat_xact_user_tables
				WHERE schemaname = 'pelton' AND relname = $1`, table).Scan(&whole); err != nil || whole != 0 {
				t.Errorf("%s was read whole %d times: %v", table, whole, err)
			}
		})
	}
}

var partition = regexp.MustCompile(`on pelton\.(job(?:_attempt)?_(?:day\d+|past|old|rest))\b`)

// Reads by ids look at the partitions of those ids alone, and are planned for them: no generic plan locks the others.
func readsByIDsPrune(d *desk) {
	t := d.t
	t.Helper()
	var ids []int64
	if err := d.Pool.QueryRow(t.Context(), `SELECT array_agg(pelton.id_at(now() - d * interval '1 day') + 0) FROM generate_series(3, 5) d`).
		Scan(&ids); err != nil {
		t.Fatal(err)
	}
	rows, err := d.Pool.Query(t.Context(), `SELECT id FROM pelton.job WHERE id BETWEEN $1 AND $2 ORDER BY id`, slices.Min(ids), slices.Max(ids))
	if err != nil {
		t.Fatal(err)
	}
	if ids, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil || len(ids) < 100 {
		t.Fatalf("%d ids: %v", len(ids), err)
	}
	for _, name := range []string{"read", "places", "read_attempts", "stored_attempts", "outcomes"} {
		args := []any{ids, ids[0], ids[len(ids)-1]}
		if name == "read_attempts" || name == "outcomes" {
			args = append(args, slices.Repeat([]int32{2}, len(ids)), store.EarlierRuns)
		}
		plan := d.explain(store.Limits{}, name, args...)
		var seen []string
		for _, m := range partition.FindAllStringSubmatch(plan, -1) {
			seen = append(seen, m[1])
		}
		slices.Sort(seen)
		if seen = slices.Compact(seen); len(seen) == 0 || len(seen) > 4 {
			t.Errorf("%s reads %d partitions %v:\n%s", name, len(seen), seen, plan)
		}
	}
	// As the store runs it, many times over on one connection, when a generic plan would have been tried.
	again := make([]store.RunKey, len(ids))
	for i, id := range ids {
		again[i] = store.RunKey{JobID: id, Run: 2}
	}
	for range 10 {
		if _, err := d.ReadClaimed(t.Context(), ids, again); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Places(t.Context(), d.Pool, ids); err != nil {
			t.Fatal(err)
		}
	}
	d.inTx(func(ctx context.Context, tx pgx.Tx) {
		for range 10 {
			if _, err := d.Places(ctx, tx, ids); err != nil {
				t.Fatal(err)
			}
		}
		var locked int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
			WHERE l.pid = pg_backend_pid() AND c.relkind = 'r' AND c.relname ~ '^job_(day|past|old|rest)'`).Scan(&locked); err != nil {
			t.Fatal(err)
		}
		if locked == 0 || locked > 4 {
			t.Errorf("%d partitions are locked after reads of a few days", locked)
		}
	})
}
