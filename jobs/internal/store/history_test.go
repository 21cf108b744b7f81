package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

// manyRuns gives a job 10,000 runs: snoozes, of which each leaves something in the metadata, and a failure at every 40th. What was
// left is noted at every 50th.
const manyRuns = `INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, executor, started_at, error, metadata, carried)
	SELECT $1, n, n / 40, CASE WHEN n % 40 = 0 THEN 'errored' ELSE 'snoozed' END::pelton.outcome, 7, now(),
		CASE WHEN n % 40 = 0 THEN 'fault ' || n END, jsonb_build_object('n', n), CASE WHEN n % 50 = 0 THEN '{}'::jsonb END
	FROM generate_series(1, 10000) n`

// What is read before a further run does not grow with the number of runs before.
func TestReadsOfEarlierRunsAreBounded(t *testing.T) {
	t.Parallel()
	d := &desk{Store: store.New(schematest.Pool(t), "pelton"), t: t} // not audited: the job stands in the line at its first run
	id := d.insert(nil)
	d.exec(manyRuns, id)
	again := store.RunKey{JobID: id, Run: 10001}

	claimed, err := d.ReadClaimed(t.Context(), []int64{id}, []store.RunKey{again})
	if err != nil {
		t.Fatal(err)
	}
	runs, failed := claimed.Attempts[id], []string{}
	for _, a := range runs {
		if a.Error != nil {
			failed = append(failed, *a.Error)
		}
	}
	if len(runs) > 2*store.EarlierRuns || !slices.IsSortedFunc(runs, func(a, b store.Attempt) int { return int(a.Run - b.Run) }) {
		t.Errorf("%d earlier runs were read, want at most %d, in order", len(runs), 2*store.EarlierRuns)
	}
	if first, last := runs[len(runs)-store.EarlierRuns], runs[len(runs)-1]; first.Run != 9901 || last.Run != 10000 || string(last.Metadata) != `{"n": 10000}` {
		t.Errorf("the last runs are %d to %d with %s, want 9901 to 10000", first.Run, last.Run, last.Metadata)
	}
	if n := len(failed); n < store.EarlierRuns || failed[n-1] != "fault 10000" || failed[n-store.EarlierRuns] != "fault 6040" {
		t.Errorf("failures are %v", failed)
	}

	past, err := d.PastOutcomes(t.Context(), d.Pool, []store.RunKey{again})
	if err != nil || len(past[id]) != store.EarlierRuns || past[id][0] != "errored" || past[id][1] != "snoozed" {
		t.Errorf("the outcomes are %v: %v", past[id], err)
	}
	for _, name := range []string{"read_attempts", "outcomes"} {
		if n := d.rowsRead(name, []int64{id}, id, id, []int32{10001}, store.EarlierRuns); n == 0 || n > 2*store.EarlierRuns {
			t.Errorf("%s read %d rows, want 1 to %d", name, n, 2*store.EarlierRuns)
		}
	}
}

// rowsRead is the number of rows of job_attempt that a statement reads.
func (d *desk) rowsRead(name string, args ...any) (n int) {
	d.t.Helper()
	d.inTx(func(ctx context.Context, tx pgx.Tx) {
		count := func() (n int) { // what the connection did before may count too
			if err := tx.QueryRow(ctx, `SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables
				WHERE schemaname = 'pelton' AND relname ~ '^job_attempt_'`).Scan(&n); err != nil {
				d.t.Fatal(err)
			}
			return n
		}
		n = -count()
		if _, err := tx.Exec(ctx, d.Statement(name), append([]any{pgx.QueryExecModeCacheDescribe}, args...)...); err != nil {
			d.t.Fatal(err)
		}
		n += count()
	})
	return n
}

// Where none of the last runs has noted what those before left, all are read for it.
func TestWhatEarlierRunsLeftIsFound(t *testing.T) {
	t.Parallel()
	d := &desk{Store: store.New(schematest.Pool(t), "pelton"), t: t}
	id := d.insert(nil)
	d.exec(manyRuns, id)
	d.exec(`UPDATE pelton.job_attempt SET outcome = 'retried', metadata = NULL, carried = NULL WHERE run > 5`)
	claimed, err := d.ReadClaimed(t.Context(), []int64{id}, []store.RunKey{{JobID: id, Run: 10001}})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for i, a := range claimed.Attempts[id] {
		if a.Metadata != nil {
			left = append(left, string(a.Metadata))
		}
		if i > 0 && claimed.Attempts[id][i-1].Run > a.Run {
			t.Errorf("run %d comes after run %d", a.Run, claimed.Attempts[id][i-1].Run)
		}
	}
	if fmt.Sprint(left) != `[{"n": 1} {"n": 2} {"n": 3} {"n": 4} {"n": 5}]` {
		t.Errorf("the runs left %v", left)
	}
}
