package store_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

// TestSearchOfEndedReadsItsIndex: jobs that ended badly are found among many that were completed.
func TestSearchOfEndedReadsItsIndex(t *testing.T) {
	t.Parallel()
	d := &desk{Store: store.New(schematest.Pool(t), "pelton"), t: t} // not audited: what lies there is no job's
	for _, statement := range []string{
		`INSERT INTO pelton.job (kind, args) SELECT 'noop', '{}' FROM generate_series(1, 20000) n`,
		`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt)
			SELECT id, 1, CASE WHEN id % 1000 = 0 THEN 'discarded' ELSE 'completed' END::pelton.outcome, 1 FROM pelton.job`,
		`ANALYZE`,
	} {
		d.exec(statement)
	}
	for order, end := range map[string]string{"ASC": "max", "DESC": "min"} {
		text := strings.NewReplacer("{order}", order, "{end}", end).Replace(d.Statement("search_ended"))
		var plan string
		err := d.Tx(t.Context(), store.Limits{}, func(tx pgx.Tx) error {
			rows, err := tx.Query(t.Context(), "EXPLAIN "+text, pgx.QueryExecModeExec, nil, nil, nil, nil, nil, nil, nil, nil, []string{"discarded"}, 100)
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
		if !strings.Contains(plan, "job_attempt_rest_job_id_idx") || strings.Contains(plan, "Seq Scan on job_attempt_rest") || strings.Contains(plan, "Seq Scan on job_rest") {
			t.Errorf("%s: the plan does not begin at the index:\n%s", order, plan)
		}
	}
}
