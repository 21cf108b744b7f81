package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/schema/schematest"
)

// A worker sees what its job's earlier runs left, however many there were, and the last hundred of its errors.
func TestJobOfManyRuns(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	const before, further = 5000, 230 // runs written by hand: five that leave something, then snoozes and 200 errors; and runs worked
	seen := make(chan *rivertype.JobRow, 1)
	worked := 0
	c := config(func(_ context.Context, job *river.Job[taskArgs]) error {
		switch worked++; worked {
		case 1:
			return errors.New("failed once more")
		case further:
			seen <- job.JobRow
			return nil
		}
		return river.JobSnooze(0)
	})
	c.RetryPolicy = atOnce{}
	client := newClient(t, pool, c)
	id := insert(t, client, 1, &river.InsertOpts{MaxAttempts: 1000, Metadata: []byte(`{"k1": 0, "asked": 1}`)})
	exec(t, pool, fmt.Sprintf(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, started_at, error, metadata, output)
		SELECT %d, n, n / 25, CASE WHEN n %% 25 = 0 THEN 'errored' ELSE 'snoozed' END::pelton.outcome, now(),
			CASE WHEN n %% 25 = 0 THEN 'fault ' || n END, CASE WHEN n <= 5 THEN jsonb_build_object('k' || n, n) END,
			CASE WHEN n = 3 THEN '"early"'::json END
		FROM generate_series(1, %d) n`, id, before))
	exec(t, pool, fmt.Sprintf(`WITH gone AS (DELETE FROM pelton.job_ready)
		INSERT INTO pelton.job_ready (priority, line, job_ids, runs, attempts) VALUES (1, 'default', '{%d}', '{%d}', '{%d}')`,
		id, before+1, before/25))
	start(t, pool, c)

	row := <-seen
	if row.Attempt != before/25+2 {
		t.Errorf("attempt %d, want %d", row.Attempt, before/25+2)
	}
	for _, want := range []string{`"k1":1`, `"k2":2`, `"k5":5`, `"asked":1`, `"output":"early"`, fmt.Sprintf(`"snoozes":%d`, further-2)} {
		if !strings.Contains(string(row.Metadata), want) {
			t.Errorf("metadata is %s, want %s in it", row.Metadata, want)
		}
	}
	n := len(row.Errors)
	if n != 100 || row.Errors[n-1].Error != "failed once more" || row.Errors[n-2].Error != "fault 5000" || row.Errors[0].Error != "fault 2550" {
		t.Errorf("%d errors: %v", n, row.Errors)
	}
	if noted := one[int](t, pool, `SELECT count(*) FROM pelton.job_attempt WHERE carried IS NOT NULL`); noted < 4 || noted > 6 {
		t.Errorf("what was left is noted with %d of %d runs", noted, further)
	}
}
