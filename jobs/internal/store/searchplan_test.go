package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

// TestSearchesReadIndexes: what is searched for among many jobs is found by the indexes that are meant for it.
func TestSearchesReadIndexes(t *testing.T) {
	t.Parallel()
	d := &desk{Store: store.New(schematest.Pool(t), "pelton"), t: t} // not audited: what lies there is no job's
	for _, statement := range []string{
		`INSERT INTO pelton.job (kind, args) SELECT 'noop', '{}' FROM generate_series(1, 20000) n`,
		`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt, ended_at)
			SELECT id, 1, CASE WHEN id % 1000 = 0 THEN 'discarded' ELSE 'completed' END::pelton.outcome, 1, now() - id % 20000 * interval '1 second' FROM pelton.job ORDER BY id % 20000`,
		`VACUUM ANALYZE`,
	} {
		d.exec(statement)
	}
	badly, ended := "job_attempt_rest_job_id_idx", "job_attempt_rest_ended_at_idx"
	now, high := time.Now(), int64(1)<<62
	byID := func(more ...any) []any {
		return append([]any{int64(0), high, nil, nil, nil, nil, nil, nil, nil, nil, nil, 100}, more...)
	}
	byEnd := func(from time.Time, state string) []any {
		return []any{from, now, from, int64(-1), nil, nil, nil, nil, nil, nil, nil, []string{state}, 100, int64(0), high}
	}
	for name, c := range map[string]struct {
		args  []any
		index string
	}{
		"search_jobs": {byID(), "job_rest_pkey"}, "search_states, discarded": {byID([]string{"discarded"}, false), badly},
		"search_states, completed": {byID([]string{"completed"}, false), "job_attempt_rest_pkey"},
		"search_states, waiting":   {byID([]string{"running", "scheduled", "available"}, false), "job_rest_pkey"},
		"search_states, whole":     {byID([]string{"available"}, true), "job_rest_pkey"},
		"search_ended, completed":  {byEnd(now.Add(-time.Minute), "completed"), ended},
		"search_ended, discarded":  {byEnd(now.Add(-9*time.Hour), "discarded"), badly},
		"job_bounds":               {nil, "job_rest_pkey"},
	} {
		for order, end := range map[string]string{"ASC": "max", "DESC": "min"} {
			statement, _, _ := strings.Cut(name, ",")
			text := strings.NewReplacer("{order}", order, "{end}", end, "{sign}", ">").Replace(d.Statement(statement))
			var plan string
			err := d.Tx(t.Context(), store.Limits{}, func(tx pgx.Tx) error {
				rows, err := tx.Query(t.Context(), "EXPLAIN "+text, append([]any{pgx.QueryExecModeExec}, c.args...)...)
				if err != nil {
					return err
				}
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				plan = strings.Join(lines, "\n")
				return err
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !strings.Contains(plan, c.index) || strings.Contains(plan, "Seq Scan on job_attempt_rest") || strings.Contains(plan, "Seq Scan on job_rest") {
				t.Errorf("%s, %s: the plan does not begin at %s:\n%s", name, order, c.index, plan)
			}
		}
	}
}
