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
		"search_jobs": {byID(), "job_rest_pkey"}, "search_states, looked_in_places, discarded": {byID([]string{"discarded"}), badly},
		"search_states, looked_in_places, completed": {byID([]string{"completed", "running"}), "job_attempt_rest_pkey"},
		"search_states, looked_in_places, waiting":   {byID([]string{"running", "scheduled", "available"}), "job_rest_pkey"},
		"search_states, looked_at_all, available":    {byID([]string{"available"}), "job_rest_pkey"},
		"search_states, looked_at_all, completed":    {byID([]string{"completed"}), "job_attempt_rest_pkey"},
		"search_ended, completed":                    {byEnd(now.Add(-time.Minute), "completed"), ended},
		"search_ended, discarded":                    {byEnd(now.Add(-9*time.Hour), "discarded"), badly},
		"job_bounds":                                 {nil, "job_rest_pkey"},
	} {
		for _, descending := range []bool{false, true} {
			parts := strings.Split(name, ", ")
			looked := ""
			if len(parts) > 2 {
				looked = parts[1]
			}
			text := strings.ReplaceAll(d.SearchText(parts[0], looked, descending), "{sign}", ">")
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
				t.Errorf("%s, descending %v: the plan does not begin at %s:\n%s", name, descending, c.index, plan)
			}
		}
	}
}

// TestManyChangesAreFoundByKey: whether a job was changed is not looked for among all that were, however many these are.
func TestManyChangesAreFoundByKey(t *testing.T) {
	t.Parallel()
	d := &desk{Store: store.New(schematest.Pool(t), "pelton"), t: t} // not audited: what lies there is no job's
	d.exec(`INSERT INTO pelton.job (kind, args) SELECT 'noop', '{}' FROM generate_series(1, 5000) n`)
	d.exec(`INSERT INTO pelton.job_change (job_id) SELECT id FROM pelton.job`)
	d.exec(`VACUUM ANALYZE`)
	var plan string
	err := d.Tx(t.Context(), store.Limits{}, func(tx pgx.Tx) error {
		// As with a hundred times as many: they are too many for a table in memory.
		if _, err := tx.Exec(t.Context(), "SET LOCAL work_mem = '64kB'; SET LOCAL hash_mem_multiplier = 1"); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), "EXPLAIN "+d.SearchText("search_states", "looked_at_all", true), pgx.QueryExecModeExec,
			int64(0), int64(1)<<62, nil, []string{"q"}, nil, nil, nil, nil, nil, nil, nil, 100, []string{"completed"})
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plan, "Seq Scan on job_change") || !strings.Contains(plan, "job_change_pkey") {
		t.Errorf("changes are not found by their key:\n%s", plan)
	}
}
