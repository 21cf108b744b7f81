package store_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

// TestFiltersReadTheirIndexes: what is rare is found among much that is not, whatever filter asks for it.
func TestFiltersReadTheirIndexes(t *testing.T) {
	t.Parallel()
	d := &desk{Store: store.New(schematest.Pool(t), "pelton"), t: t}
	for _, statement := range []string{
		`INSERT INTO pelton.audit (at, actor, action, target)
			SELECT now() - n * interval '1 second', CASE WHEN n % 5000 = 0 THEN 'rare' ELSE 'often' END, CASE WHEN n % 5000 = 1 THEN 'rare' ELSE 'often' END, n
			FROM generate_series(20000, 1, -1) n`,
		`INSERT INTO pelton.job_dead (job_id, died_at, created_at, priority, max_attempts, attempt, reason, kind, queue, args, attempts)
			SELECT n, now() - n * interval '1 second', now(), 1, 1, 1, CASE WHEN n % 5000 = 0 THEN 'poison' ELSE 'exhausted' END,
				CASE WHEN n % 5000 = 1 THEN 'rare' ELSE 'often' END, CASE WHEN n % 5000 = 2 THEN 'rare' ELSE 'often' END, '{}', '[]'
			FROM generate_series(20000, 1, -1) n`,
		`ANALYZE pelton.audit, pelton.job_dead`,
	} {
		d.exec(statement)
	}
	rare := []string{"rare"}
	for name, c := range map[string]struct {
		statement, index string
		args             []any
	}{
		"all entries":         {"list_audit", "audit_pkey", []any{nil, nil, nil, nil, nil, 100}},
		"entries of a target": {"list_audit", "audit_target", []any{"7", nil, nil, nil, nil, 100}},
		"of an action":        {"list_audit", "audit_action", []any{nil, "rare", nil, nil, nil, 100}},
		"of an actor":         {"list_audit", "audit_actor", []any{nil, nil, "rare", nil, nil, 100}},
		"all letters":         {"list_dead", "job_dead_order", []any{nil, nil, nil, nil, nil, nil, nil, nil, 100}},
		"letters of a kind":   {"list_dead", "job_dead_of_kind", []any{nil, rare, nil, nil, nil, nil, nil, nil, 100}},
		"of a queue":          {"list_dead", "job_dead_of_queue", []any{nil, nil, rare, nil, nil, nil, nil, nil, 100}},
		"of a reason":         {"list_dead", "job_dead_rare", []any{nil, nil, nil, "poison", nil, nil, nil, nil, 100}},
		"nodes' of a kind":    {"dead_nodes", "job_dead_of_kind", []any{nil, rare, nil, nil, nil, nil, 100}},
	} {
		err := d.Tx(t.Context(), store.Limits{}, func(tx pgx.Tx) error {
			rows, err := tx.Query(t.Context(), "EXPLAIN "+d.Statement(c.statement), append([]any{pgx.QueryExecModeExec}, c.args...)...)
			if err != nil {
				return err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			plan := strings.Join(lines, "\n")
			if !strings.Contains(plan, c.index) || regexp.MustCompile(`Seq Scan on (audit|job_dead) `).MatchString(plan) {
				t.Errorf("%s: want a plan that reads %s:\n%s", name, c.index, plan)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoticesAreFoundByTheirIndex: an erase looks for notices among the jobs of some days.
func TestNoticesAreFoundByTheirIndex(t *testing.T) {
	t.Parallel()
	d := &desk{Store: store.New(schematest.Pool(t), "pelton"), t: t} // not audited: what lies there is no job's
	d.exec(`INSERT INTO pelton.job (kind, args) SELECT CASE WHEN n % 2000 = 0 THEN 'pelton_alert' ELSE 'noop' END, '{}' FROM generate_series(1, 20000) n`)
	d.exec(`ANALYZE pelton.job`)
	for _, kind := range []string{"flow_notify", "pelton_alert"} {
		err := d.Tx(t.Context(), store.Limits{}, func(tx pgx.Tx) error {
			rows, err := tx.Query(t.Context(), `EXPLAIN SELECT j.id, j.args FROM pelton.job j
				WHERE j.id BETWEEN pelton.id_at(now() - interval '1 day') AND pelton.id_at(now() + interval '4 days') AND j.kind = '`+kind+`'`)
			if err != nil {
				return err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			plan := strings.Join(lines, "\n")
			if !regexp.MustCompile(`job_rest_id_idx\d*`).MatchString(plan) || strings.Contains(plan, "Seq Scan on job_rest") {
				t.Errorf("%s: want a plan that reads the index of notices:\n%s", kind, plan)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
