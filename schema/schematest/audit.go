package schematest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// audits are questions whose answers must be empty whenever no statement is under way.
var audits = map[string]string{
	"jobs in no place": `SELECT concat_ws(' ', job_id, kind, queue, 'last run', last_run, last_outcome) FROM pelton.lost_jobs('0')`,
	"jobs in two places": `SELECT concat_ws(' ', job_id, array_agg(state || ' run ' || run)) FROM pelton.job_state
		GROUP BY job_id HAVING count(*) > 1`,
	"jobs whose runs have gaps": `SELECT concat_ws(' ', job_id, count(*), 'runs, the last is', max(run)) FROM pelton.job_attempt
		GROUP BY job_id HAVING count(*) <> max(run)`,
}

// Audit fails the test if a job is lost, is in two places at once, or lacks a run. Call it when what the test started has
// stopped.
func Audit(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	for what, sql := range audits {
		rows, err := pool.Query(ctx, sql)
		if err != nil {
			t.Errorf("audit of %s: %v", what, err)
			return
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Errorf("audit of %s: %v", what, err)
			return
		}
		for _, job := range found {
			t.Errorf("audit: %s: %s", what, job)
		}
	}
}

// Audited is Pool, with an Audit when the test has ended and has not failed.
func Audited(t testing.TB, options ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	pool := Pool(t, options...)
	t.Cleanup(func() {
		if !t.Failed() {
			Audit(t, pool)
		}
	})
	return pool
}
