package schema_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// A job whose id is far ahead finds no place, so that it cannot have a partition made that reaches over years and is not dropped in their time. Partitions that
// have an end are spared the question.
func TestIdsFarAheadAreRefused(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	add := func(when string) error {
		_, err := pool.Exec(t.Context(), `INSERT INTO pelton.job (id, kind, args) VALUES (`+when+`, 'k', '{}')`)
		return err
	}
	refused := func() {
		t.Helper()
		for _, when := range []string{"pelton.id_at(now() + interval '1 year')", "9223372036854775807"} {
			if err := add(when); err == nil || !strings.Contains(err.Error(), "job_not_far_ahead") {
				t.Errorf("a job of %s: %v", when, err)
			}
		}
	}
	refused()
	if err := add("pelton.id_at(now() + interval '5 minutes')"); err != nil { // clocks of servers that take turns may differ
		t.Error(err)
	}
	k := newKeeper(t, pool, schema.KeeperConfig{Ahead: 3, PartitionSize: hour})
	if report := maintain(t, k); len(report.Closed) == 0 {
		t.Fatalf("%+v, want the open-ended partition of job closed, since it has rows", report)
	}
	refused()
	if in := askedAhead(t, pool); in != "job_rest" {
		t.Errorf("%q ask for ids far ahead, want job_rest alone", in)
	}
	if report := maintain(t, k); len(report.Closed) != 0 {
		t.Errorf("another pass did %+v", report)
	}
	contiguous(t, k)
	for _, p := range list(t, k) {
		if p.Parent == "job" && p.State == schema.PartitionRest && p.From > idIn(t, pool, "1 day") {
			t.Errorf("the open-ended partition begins at %d, more than a day ahead", p.From)
		}
	}
}

// A run of no job that is recorded under an id far ahead keeps no partition from being made, and stretches none.
func TestAttemptsOfNoJobFarAhead(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	_, err := pool.Exec(t.Context(), `WITH j AS (INSERT INTO pelton.job (kind, args) VALUES ('k', '{}') RETURNING id)
		INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome)
		SELECT id, 1, 1, 'discarded'::pelton.outcome FROM j UNION ALL SELECT unnest(ARRAY[9223372036854775807, pelton.id_at(now() + interval '1 year')]), 1, 1, 'discarded'`)
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper(t, pool, schema.KeeperConfig{Ahead: 3, PartitionSize: hour})
	maintain(t, k)
	contiguous(t, k)
	for _, p := range list(t, k) {
		if p.Parent == "job_attempt" && p.State == schema.PartitionRest && p.From > idIn(t, pool, "1 day") {
			t.Errorf("the open-ended partition begins at %d, more than a day ahead", p.From)
		}
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.job_attempt`).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d attempts are left, %v; want that of the job alone", left, err)
	}
}

// askedAhead names the tables that refuse ids far ahead.
func askedAhead(t *testing.T, pool *pgxpool.Pool) (names string) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `SELECT string_agg(conrelid::regclass::text, ' ') FROM pg_constraint WHERE conname = 'job_not_far_ahead'`).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(names, "pelton.", "")
}

// idIn is the least id of a time to come.
func idIn(t *testing.T, pool *pgxpool.Pool, span string) (id int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT pelton.id_at(now() + $1::text::interval)", span).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}
