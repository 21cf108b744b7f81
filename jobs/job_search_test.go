package jobs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// search reads a list to its end, page by page, and tells how often the search stopped before a page was full.
func search(t *testing.T, client *jobs.Client, params *jobs.JobListParams) (ids []int64, stops int) {
	t.Helper()
	for {
		page, err := client.JobList(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range page.Jobs {
			ids = append(ids, job.ID)
		}
		if page.Stopped {
			stops++
		} else if len(page.Jobs) == 0 {
			return ids, stops
		}
		params = params.After(page.LastCursor)
	}
}

// A search whose time is up goes on where it was, and finds the same as one that takes its time.
func TestSearchStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t) // not audited: the jobs have no places
	client := newClient(t, pool, nil)
	// By the last digit of n: 1 cancelled, 2 discarded, 3 cancelled in the line, 4 cancelled and retried, 5 cancelled, retried and put off; others completed.
	for _, statement := range []string{
		`INSERT INTO pelton.job (id, kind, args) SELECT (pelton.id_at(now()) / 1000 - 1000 + n) * 10 + n % 10, CASE WHEN n IN (1, 999) THEN 'rare' ELSE 'k' END, '{}'
			FROM generate_series(1, 1000) n`,
		`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) SELECT id, 1, CASE id % 10 WHEN 2 THEN 'discarded' WHEN 1 THEN 'cancelled' WHEN 4 THEN 'cancelled'
			WHEN 5 THEN 'cancelled' ELSE 'completed' END::pelton.outcome, 1 FROM pelton.job WHERE id % 10 <> 3`,
		`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) SELECT id, 2, 'retried', 1 FROM pelton.job WHERE id % 10 IN (4, 5)`,
		`INSERT INTO pelton.job_scheduled (job_id, wake, due, run) SELECT id, now(), now(), 3 FROM pelton.job WHERE id % 10 = 5`,
		`INSERT INTO pelton.job_void (job_id, run, reason) SELECT id, 1, 'cancelled' FROM pelton.job WHERE id % 10 = 3`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	list := jobs.NewJobListParams().First(70)
	for name, c := range map[string]struct {
		params *jobs.JobListParams
		where  string
		stops  bool
	}{
		"all":                       {list, "true", false},
		"kind":                      {list.Kinds("rare"), "kind = 'rare'", true},
		"discarded":                 {list.States(rivertype.JobStateDiscarded), "state = 'discarded'", true},
		"discarded of a kind":       {list.States(rivertype.JobStateDiscarded).Kinds("none"), "false", true},
		"cancelled":                 {list.States(rivertype.JobStateCancelled), "state = 'cancelled'", true},
		"cancelled of a kind":       {list.States(rivertype.JobStateCancelled).Kinds("rare"), "state = 'cancelled' AND kind = 'rare'", true},
		"discarded or cancelled":    {list.States(rivertype.JobStateDiscarded, rivertype.JobStateCancelled), "state IN ('discarded', 'cancelled')", true},
		"completed, which is whole": {list.States(rivertype.JobStateCompleted).Kinds("rare"), "state = 'completed' AND kind = 'rare'", false},
	} {
		var want []int64
		if err := pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(r.id ORDER BY r.id), '{}') FROM pelton.job_rows(ARRAY(SELECT id FROM pelton.job)) r WHERE `+c.where,
			pgx.QueryExecModeExec).Scan(&want); err != nil {
			t.Fatal(err)
		}
		for _, within := range []time.Duration{0, time.Nanosecond} {
			params := c.params.Within(within)
			if found, stops := search(t, client, params); !slices.Equal(found, want) || (stops > 0) != (c.stops && within > 0) {
				t.Errorf("%s within %v: %d found in %d pieces more, want %d", name, within, len(found), stops, len(want))
			}
			found, _ := search(t, client, params.OrderBy(jobs.JobListOrderByID, jobs.SortOrderDesc))
			if slices.Reverse(found); !slices.Equal(found, want) {
				t.Errorf("%s within %v, the newest first: %d found, want %d", name, within, len(found), len(want))
			}
		}
	}
}
