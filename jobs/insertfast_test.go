package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// What goes in by COPY is what goes in by insert_jobs, every column of it.
func TestFastAndPlainInsertsAgree(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := newClient(t, pool, nil)
	due := time.Date(2040, 2, 29, 12, 30, 15, 123456000, time.UTC)
	raw := func(j string) jobs.RawArgs { return jobs.RawArgs{JobKind: "task", JSON: []byte(j)} }
	params := []river.InsertManyParams{
		{Args: taskArgs{N: 1}},
		{Args: raw(`{"text":"ü\n` + strings.Repeat("x", 100_000) + `"}`), InsertOpts: &river.InsertOpts{
			Queue: "other", Priority: 3, MaxAttempts: 7, Tags: []string{"one", "two-three"},
			Metadata: []byte(`{"a":{"b":[1,2]}}`),
		}},
		{Args: raw(`[1,2]`), InsertOpts: &river.InsertOpts{ScheduledAt: due}},
		{Args: raw(`null`), InsertOpts: &river.InsertOpts{Pending: true}},
		{Args: taskArgs{N: 5}, InsertOpts: &river.InsertOpts{ScheduledAt: time.Unix(0, 0)}},
	}
	if _, err := client.InsertMany(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	if n, err := client.InsertManyFast(t.Context(), params); err != nil || n != len(params) {
		t.Fatalf("inserted %d: %v", n, err)
	}
	const differ = `WITH j AS (
			SELECT row_number() OVER (ORDER BY j.id) AS n, to_jsonb(j) - 'id' - 'created_at' AS job, args::text AS args,
				(SELECT to_jsonb(s) - 'job_id' FROM pelton.job_scheduled s WHERE s.job_id = j.id) AS scheduled,
				(SELECT p.reason FROM pelton.job_parked p WHERE p.job_id = j.id) AS parked,
				(SELECT array_agg((r.line, r.priority)) FROM pelton.job_ready r WHERE j.id = ANY (r.job_ids)) AS line
			FROM pelton.job j)
		SELECT count(*) FROM j a JOIN j b ON b.n = a.n + $1
		WHERE (a.job, a.args, a.scheduled, a.parked, a.line) IS DISTINCT FROM (b.job, b.args, b.scheduled, b.parked, b.line)`
	if n := one[int](t, pool, differ, len(params)); n != 0 {
		t.Errorf("%d of %d jobs differ", n, len(params))
	}
	if n := one[int](t, pool, `SELECT count(*) FROM pelton.job`); n != 2*len(params) {
		t.Errorf("%d jobs stored", n)
	}
}
