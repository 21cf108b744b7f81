package jobs_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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

// A search whose time is up goes on where it was, and finds the same as one that takes its time; by id, newest first or last, and by the time of the end.
func TestSearchStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t) // not audited: the jobs have no places
	client := newClient(t, pool, nil)
	// By the last two digits of n: see the states below; others are completed. Those that ended did so in an order that is not that of their ids.
	for _, statement := range []string{
		`CREATE TABLE made AS SELECT pelton.id_at(now() - interval '1 hour') + n * (pelton.id_at('2024-01-01 00:00:02+00')) AS id, n, n % 100 AS d FROM generate_series(1, 1000) n`,
		`INSERT INTO pelton.job (id, kind, queue, args, metadata, tags) SELECT id, CASE WHEN n IN (1, 999) THEN 'rare' ELSE 'k' END, 'q' || n % 3,
			json_build_object('n', n), CASE WHEN n % 7 = 0 THEN '{"a": 1}'::jsonb END, CASE WHEN n % 2 = 0 THEN '{even}'::text[] END FROM made`,
		`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt, ended_at, metadata)
			SELECT id, 1, CASE WHEN d IN (2, 3) THEN 'discarded' WHEN d IN (1, 4, 5) THEN 'cancelled' WHEN d = 6 THEN 'errored' ELSE 'completed' END::pelton.outcome, 1,
				now() - (n * 7919 % 1000) * interval '0.2 seconds', CASE WHEN n % 11 = 0 THEN '{"a": 2}'::jsonb END
			FROM made WHERE d NOT IN (0, 7, 8, 9, 10, 11)`,
		`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) SELECT id, 2, 'retried', 1 FROM made WHERE d IN (4, 5)`,
		`INSERT INTO pelton.job_scheduled (job_id, wake, due, run, retry) SELECT id, now(), now(), CASE d WHEN 5 THEN 3 WHEN 6 THEN 2 ELSE 1 END, d = 6 FROM made WHERE d IN (5, 6, 7)`,
		`INSERT INTO pelton.job_parked (job_id) SELECT id FROM made WHERE d = 8`,
		`INSERT INTO pelton.job_lease (executor, no, job_ids) SELECT 1, 1, array_agg(id) FROM made WHERE d = 9`,
		`INSERT INTO pelton.job_ready (priority, line, job_ids, runs) SELECT 1, 'default', array_agg(id), array_agg(CASE d WHEN 4 THEN 3 ELSE 1 END) FROM made WHERE d IN (0, 4, 10, 11)`,
		`INSERT INTO pelton.job_void (job_id, run, reason, at) SELECT id, 1, 'cancelled', now() - n * interval '0.1 seconds' FROM made WHERE d IN (10, 11)`,
		`INSERT INTO pelton.job_void (job_id, run, reason, at) SELECT id, 0, 'cancelled', now() FROM made WHERE d = 11`,
		`INSERT INTO pelton.job_change (job_id, queue, metadata) SELECT id, 'moved', '{"a": 3}' FROM made WHERE n % 13 = 0`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	type set = []rivertype.JobState
	list := jobs.NewJobListParams().First(70)
	for name, c := range map[string]struct {
		params *jobs.JobListParams
		where  string
		stops  bool // a search without time is not through with its first piece
	}{
		"all":                  {list, "true", false},
		"kind":                 {list.Kinds("rare"), "kind = 'rare'", true},
		"queue":                {list.Queues("moved"), "queue = 'moved'", true},
		"tags":                 {list.TagsAll("even").TagsAny("odd"), "false", true},
		"metadata":             {list.Since(time.Now().Add(-100 * time.Hour)).Metadata(`{"a": 2}`), `metadata @> '{"a": 2}'`, true},
		"args":                 {list.Since(time.Now().Add(-100 * time.Hour)).Args(`{"n": 77}`), `args::jsonb @> '{"n": 77}'`, true},
		"text in the args":     {list.ArgsText(`: 77}`), `strpos(args::text, ': 77}') > 0`, true},
		"completed":            {list.States("completed"), "state = 'completed'", false},
		"completed of a kind":  {list.States("completed").Kinds("none"), "false", true},
		"completed, available": {list.States("completed", "available").Metadata(`{"a": 1}`).Since(time.Now().Add(-100 * time.Hour)), `state IN ('completed', 'available') AND metadata @> '{"a": 1}'`, true},
		"discarded, cancelled": {list.States("discarded", "cancelled"), "state IN ('discarded', 'cancelled')", false},
		"cancelled of a kind":  {list.States("cancelled").Kinds("rare"), "state = 'cancelled' AND kind = 'rare'", false},
		"waiting":              {list.States("running", "pending", "retryable"), "state IN ('running', 'pending', 'retryable')", false},
		"available":            {list.States("available"), "state = 'available'", false},
		"scheduled":            {list.States("scheduled"), "state = 'scheduled'", false},
		"ids":                  {list.IDs(idOf(t, pool, 9), idOf(t, pool, 500), idOf(t, pool, 511)).States("running", "cancelled"), "r.id IN (SELECT id FROM made WHERE n IN (9, 511))", false},
	} {
		want := idsOf(t, pool, c.where, "r.id")
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
	for name, states := range map[string]set{
		"completed": {"completed"}, "discarded": {"discarded"}, "cancelled": {"cancelled"}, "all that ended": nil, "completed or cancelled": {"completed", "cancelled"},
	} {
		where := "finalized_at IS NOT NULL"
		if states != nil {
			where = fmt.Sprintf("state IN ('%s', '%s')", states[0], states[len(states)-1])
		}
		for filter, params := range map[string]*jobs.JobListParams{
			"true": list, "queue = 'moved'": list.Queues("moved"), `metadata @> '{"a": 2}'`: list.Metadata(`{"a": 2}`).Since(time.Now().Add(-100 * time.Hour)),
		} {
			want := idsOf(t, pool, where+" AND "+filter, "r.finalized_at, r.id")
			for _, within := range []time.Duration{0, time.Nanosecond} {
				if within > 0 && (states != nil || filter != "true") {
					continue // it takes a list for each minute
				}
				params := params.States(states...).Within(within)
				if found, stops := search(t, client, params.OrderBy(jobs.JobListOrderByFinalizedAt, jobs.SortOrderAsc)); !slices.Equal(found, want) || (stops > 0) != (within > 0) {
					t.Errorf("%s, %s, by the end within %v: %d found in %d pieces more, want %d", name, filter, within, len(found), stops, len(want))
				}
				found, _ := search(t, client, params.OrderBy(jobs.JobListOrderByFinalizedAt, jobs.SortOrderDesc))
				if slices.Reverse(found); !slices.Equal(found, want) {
					t.Errorf("%s, %s, the last end first within %v: %d found, want %d", name, filter, within, len(found), len(want))
				}
			}
		}
	}
}

// Who asks for the oldest jobs that are available in a long line gets them by its tickets, however many jobs ended before them, and goes on where the search stopped.
func TestTheOldestAvailableOfALongLine(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t) // not audited: tickets are put in by hand
	client := newClient(t, pool, nil)
	const ended, tickets = 30_000, 10_500
	for _, statement := range []string{
		fmt.Sprintf(`CREATE TABLE made AS SELECT pelton.id_at(now() - interval '1 hour') + n * 1000 AS id, n FROM generate_series(1, %d) n`, ended+tickets),
		`INSERT INTO pelton.job (id, kind, args) SELECT id, CASE WHEN n % 1000 = 0 THEN 'rare' ELSE 'k' END, '{}' FROM made`,
		// An old job that waits, among many that ended, stands last in the line; one stands there twice, one is cancelled, and one has ended, whose ticket is left.
		fmt.Sprintf(`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) SELECT id, 1, 'completed', 1 FROM made WHERE n <= %d AND n <> 5000 OR n = %d`, ended, ended+7),
		fmt.Sprintf(`INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'q' || n %% 3, ARRAY[id] FROM made WHERE n > %d OR n = 5000 ORDER BY n <= %[1]d, n`, ended),
		fmt.Sprintf(`INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'default', ARRAY[id] FROM made WHERE n = %d`, ended+9),
		fmt.Sprintf(`INSERT INTO pelton.job_void (job_id, run, reason) SELECT id, 1, 'cancelled' FROM made WHERE n = %d`, ended+8),
		`VACUUM ANALYZE`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	list := jobs.NewJobListParams().States(rivertype.JobStateAvailable).First(1000)
	for name, params := range map[string]*jobs.JobListParams{"all": list, "of a kind": list.Kinds("rare")} {
		where := "state = 'available'"
		if name != "all" {
			where += " AND kind = 'rare'"
		}
		want := idsOf(t, pool, where, "r.id")
		for _, within := range []time.Duration{0, time.Minute, time.Nanosecond} { // the last has no time for the line, and looks at all jobs
			if found, stops := search(t, client, params.Within(within)); !slices.Equal(found, want) || (stops > 0) != (within == time.Nanosecond) {
				t.Errorf("%s within %v: %d found in %d pieces more, want %d", name, within, len(found), stops, len(want))
			}
		}
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			// What the connection did before may be in the numbers of this transaction too.
			const reads = `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables WHERE relname = 'job_rest'`
			var before, read int64
			if err := tx.QueryRow(t.Context(), reads).Scan(&before); err != nil {
				return err
			}
			page, err := client.JobListTx(t.Context(), tx, params.First(5).Within(time.Minute))
			if err != nil || len(page.Jobs) != 5 || page.Jobs[0].ID != want[0] {
				t.Errorf("%s: the first ones are %+v, %v", name, page, err)
			}
			err = tx.QueryRow(t.Context(), reads).Scan(&read)
			if most := int64(3 * tickets); read-before > most {
				t.Errorf("%s: %d jobs were read for five, want at most %d: those that ended are not to be looked at", name, read-before, most)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A long line is read some times, and not for every piece of a search: the first time for the first jobs only.
func TestALongLineIsReadFewTimes(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t) // not audited: tickets are put in by hand, of jobs that there are not
	client := newClient(t, pool, nil)
	for _, statement := range []string{
		`INSERT INTO pelton.job (id, kind, args) VALUES (1, 'k', '{}'), (300000, 'rare', '{}')`,
		`INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'default', ARRAY(SELECT n * 20 + i FROM generate_series(1, 20) i) FROM generate_series(1, 15000) n`,
		`VACUUM ANALYZE`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		reads := func() (n int64) {
			// What the connection did before may be in the numbers of this transaction too.
			if err := tx.QueryRow(t.Context(), `SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'job_ready'`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := reads()
		page, err := client.JobSearchTx(t.Context(), tx, jobs.NewJobListParams().States(rivertype.JobStateAvailable).Kinds("rare"))
		if err != nil || !slices.Equal(page.IDs, []int64{300000}) || !page.Ended {
			t.Errorf("found %+v, %v", page, err)
		}
		// How long it is; the first jobs, the others, and that there are no more.
		if n := reads() - before; n > 4 {
			t.Errorf("the line of 300,000 jobs was read %d times, want at most 4", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Who asks for completed jobs of a rare kind has all jobs looked at in the order in which they are stored, and only those of the kind by their keys; jobs that wait before
// the newest that ended are not looked at. A job that was moved since counts where it is now.
func TestCompletedOfARareKind(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t) // not audited: the jobs have no places
	client := newClient(t, pool, nil)
	const ended, waiting = 20_000, 20_000
	for _, statement := range []string{
		fmt.Sprintf(`CREATE TABLE made AS SELECT pelton.id_at(now() - interval '1 hour') + n * 1000 AS id, n FROM generate_series(1, %d) n`, ended+waiting),
		`INSERT INTO pelton.job (id, kind, queue, args) SELECT id, CASE WHEN n % 1000 = 0 THEN 'rare' ELSE 'k' END, CASE WHEN n % 1000 IN (0, 1) THEN 'q' ELSE 'default' END, '{}' FROM made`,
		fmt.Sprintf(`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) SELECT id, 1, CASE n WHEN 3000 THEN 'discarded' ELSE 'completed' END::pelton.outcome, 1 FROM made WHERE n <= %d`, ended),
		`INSERT INTO pelton.job_change (job_id, queue) SELECT id, CASE n WHEN 4500 THEN 'q' ELSE 'other' END FROM made WHERE n IN (4000, 4500)`,
		`INSERT INTO pelton.job_void (job_id, run, reason) SELECT id, 1, 'cancelled' FROM made WHERE n = 5000`,
		`VACUUM ANALYZE`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	completed := jobs.NewJobListParams().States(rivertype.JobStateCompleted).OrderBy(jobs.JobListOrderByID, jobs.SortOrderDesc)
	for name, c := range map[string]struct {
		params *jobs.JobListParams
		where  string
		rows   int64 // that may be read
		keys   int64 // that may be looked up
	}{
		"the newest": {completed.First(50), "true", 300, 300},
		"of a kind":  {completed.Kinds("rare"), "kind = 'rare'", ended * 11 / 10, 100},
		"of a queue": {completed.Queues("q"), "queue = 'q'", ended * 11 / 10, 200},
	} {
		want := idsOf(t, pool, "state = 'completed' AND "+c.where, "r.id DESC")
		want = want[:min(len(want), 50)]
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			reads := func() (rows, keys int64, err error) {
				err = tx.QueryRow(t.Context(), `SELECT coalesce(sum(seq_tup_read + idx_tup_fetch) FILTER (WHERE relname = 'job_rest'), 0), sum(idx_scan)
					FROM pg_stat_xact_user_tables WHERE relname IN ('job_rest', 'job_attempt_rest')`).Scan(&rows, &keys)
				return rows, keys, err
			}
			rowsBefore, keysBefore, err := reads()
			if err != nil {
				return err
			}
			found, err := client.JobSearchTx(t.Context(), tx, c.params)
			if err != nil || !slices.Equal(found.IDs, want) {
				t.Errorf("%s: found %v, want %v, %v", name, found, want, err)
			}
			rows, keys, err := reads()
			if rows -= rowsBefore; rows > c.rows {
				t.Errorf("%s: %d jobs were read, want at most %d", name, rows, c.rows)
			}
			if keys -= keysBefore; keys > c.keys {
				t.Errorf("%s: %d keys were looked up, want at most %d", name, keys, c.keys)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func idOf(t *testing.T, pool *pgxpool.Pool, n int) (id int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT id FROM made WHERE n = $1", n).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// idsOf are the jobs that their own rows tell to match.
func idsOf(t *testing.T, pool *pgxpool.Pool, where, order string) (ids []int64) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(r.id ORDER BY `+order+`), '{}') FROM pelton.job_rows(ARRAY(SELECT id FROM pelton.job)) r WHERE `+where,
		pgx.QueryExecModeExec).Scan(&ids)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// A list that no index has the order of is given up when its time is up, and what follows in the caller's transaction has its own time.
func TestListThatTakesTooLong(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := newClient(t, pool, nil)
	if _, err := pool.Exec(t.Context(), `INSERT INTO pelton.job (kind, args) SELECT 'k', '{}' FROM generate_series(1, 20000)`); err != nil {
		t.Fatal(err)
	}
	list := jobs.NewJobListParams().OrderBy(jobs.JobListOrderByScheduledAt, jobs.SortOrderAsc)
	if _, err := client.JobList(t.Context(), list.Within(time.Millisecond)); !errors.Is(err, jobs.ErrListTooLong) {
		t.Errorf("the list is given up with %v", err)
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL statement_timeout = '77s'"); err != nil {
			return err
		}
		if _, err := client.JobListTx(t.Context(), tx, list.Within(time.Minute)); err != nil {
			return err
		}
		var after string
		err := tx.QueryRow(t.Context(), "SHOW statement_timeout").Scan(&after)
		if after != "77s" {
			t.Errorf("then statements may take %s", after)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
