package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/grant"
	"github.com/peltonq/pelton/schema/schematest"
)

// enqueuer makes a role of the database that may enqueue and nothing else, and returns a pool of it.
func enqueuer(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	owner := pgtest.Pool(t, dsn)
	name := "enqueuer of " + one[string](t, owner, "SELECT current_database()")
	quoted := pgx.Identifier{name}.Sanitize()
	statements, err := grant.Statements("pelton", name, grant.Enqueuer)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range append([]string{"CREATE ROLE " + quoted + " LOGIN"}, statements...) {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	t.Cleanup(func() {
		if _, err := owner.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+quoted+"; DROP ROLE "+quoted); err != nil {
			t.Error(err)
		}
	})
	return pgtest.Pool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.User = name })
}

// forge is SQL that inserts a job with some columns of its own, and a ticket of it.
func forge(columns, values string) string {
	return fmt.Sprintf(`WITH j AS (INSERT INTO pelton.job (kind, args, %s) VALUES ('task', '{}', %s) RETURNING id)
		INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'default', ARRAY[id] FROM j`, columns, values)
}

// forgeDue is SQL that inserts a job, and the row by which it waits for its time.
func forgeDue(columns, values string) string {
	return fmt.Sprintf(`WITH j AS (INSERT INTO pelton.job (kind, args) VALUES ('task', '{}') RETURNING id)
		INSERT INTO pelton.job_scheduled (job_id, %s) SELECT id, %s FROM j`, columns, values)
}

// What an enqueuer writes into the tables itself, past the client and the functions, is refused where it could not be read, or would stop a duty: the
// jobs of others would wait with it.
func TestForgedRowsAreRefused(t *testing.T) {
	t.Parallel()
	pool := enqueuer(t, schematest.DSN(t))
	for want, forged := range map[string][]string{
		"job_sound": {
			forge("created_at", "'infinity'"), forge("created_at", "'-infinity'"), forge("created_at", "'294276-01-01'"), forge("created_at", "'4713-01-01 BC'"),
			forge("scheduled_at", "'infinity'"), forge("scheduled_at", "'-infinity'"), forge("scheduled_at", "'10000-01-01 00:00:00+00'"),
			forge("tags", "ARRAY[NULL::text]"), forge("tags", "ARRAY[ARRAY['a'], ARRAY['b']]"),
			forge("tags", "(SELECT array_agg(repeat('x', 255)) FROM generate_series(1, 40000))"),
			forge("metadata", "'[1]'"), forge("metadata", "'null'"), forge("metadata", "jsonb_build_object('a', repeat('x', 9000000))"),
			forge("queue", "repeat('q', 65)"), strings.Replace(forge("queue", "'q'"), "'task'", "repeat('k', 129)", 1),
			strings.Replace(forge("queue", "'q'"), "'{}'", "to_json(repeat('a', 1048576))", 1),
		},
		"job_priority_check": {forge("priority", "5"), forge("priority", "-32768")},
		"job_ready_sound": {
			`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (0, 'default', ARRAY[-1])`,
			`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (5, 'default', ARRAY[-1])`,
			`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, repeat('l', 1001), ARRAY[-1])`,
			`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, 'default', '[5:6]={-1,-2}')`,
			`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, 'default', ARRAY[ARRAY[-1], ARRAY[-2]])`,
		},
		"job_scheduled_sound": {
			forgeDue("wake, due", "now(), 'infinity'"), forgeDue("wake, due", "now(), '-infinity'"), forgeDue("wake, due", "now(), '294276-01-01'"),
			forgeDue("wake, due", "'infinity', now()"), forgeDue("wake, due", "now() + interval '2 hours', now()"),
		},
		"null value": {forgeDue("wake, due", "NULL, now()"), forgeDue("wake, due", "now(), NULL")},
		"permission denied": {
			forgeDue("wake, due, run", "now(), now(), 2147483647"), forgeDue("wake, due, attempts", "now(), now(), -5"),
			forgeDue("wake, due, retry", "now(), now(), true"),
			`INSERT INTO pelton.job_parked (job_id, run) VALUES (-1, 7)`, `INSERT INTO pelton.job_parked (job_id, since) VALUES (-1, '-infinity')`,
		},
	} {
		for _, sql := range forged {
			if _, err := pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", sql, err, want)
			}
		}
	}
}

// What an enqueuer can write that is of no use holds up nobody: jobs of others, scheduled ones and such as are tried again, are all worked beside it, and
// jobs can be listed.
func TestForgedRowsHoldUpNobody(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t) // not audited: some of what is forged has no job
	pool := pgtest.Pool(t, dsn)
	c := config(func(_ context.Context, job *river.Job[taskArgs]) error {
		if job.Args.N%3 == 2 && job.Attempt == 1 {
			return errors.New("once more")
		}
		return nil
	})
	c.RetryPolicy = shortly{}
	client := newClient(t, pool, c)
	var ids []int64
	add := func() {
		for i := range 12 {
			opts := &river.InsertOpts{}
			if i%4 == 1 {
				opts.ScheduledAt = time.Now().Add(time.Second)
			}
			in, err := client.Insert(t.Context(), taskArgs{N: i}, opts)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, in.Job.ID)
		}
	}
	add()
	forger := enqueuer(t, dsn)
	for _, sql := range []string{
		forgeDue("wake, due", "'-infinity', now()"), forgeDue("wake, due", "now() - interval '1 hour', now() - interval '1 hour'"),
		forgeDue("wake, due", "now(), '0001-01-01 00:00:00+00'"), forgeDue("wake, due", "now(), '9999-12-31 00:00:00+00'"),
		`INSERT INTO pelton.job_scheduled (job_id, wake, due) VALUES (-77, now(), now()), (9223372036854775806, now(), now())`,
		`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, 'default', ARRAY[-1, 9223372036854775807])`,
		`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, '', ARRAY[-2]), (1, E'\x01\n', ARRAY[-3]), (1, 'default/kind=', ARRAY[-4])`,
		`INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'default', array_fill(min(id), ARRAY[100]) FROM pelton.job`,
		`INSERT INTO pelton.job_unique (key, job_id, states) SELECT decode(md5(id::text), 'hex'), id, -1 FROM pelton.job`,
		forge("metadata", `'{"pelton:flow": {"run": 1, "node": 1}}'`), forge("metadata", `'{"pelton:flow": "x"}'`),
		forge("metadata", `'{"pelton:flow": {"run": 1e300, "node": -1e300}}'`), forge("metadata", `'{"traceparent": 7, "tracestate": {"a": []}}'`),
		forge("metadata", "'{\"a\": 1e100000}'"), forge("queue", "''"), forge("tags", "'[5:6]={a,b}'"), forge("id", "-9223372036854775808"),
		forge("unique_key, unique_states", `'\x00', -1`), forge("unique_key", "decode(repeat('00', 1000000), 'hex')"),
		strings.Replace(forge("queue", "'default'"), "'{}'", `'{"a": "\u0000"}'`, 1), strings.Replace(forge("queue", "'default'"), "'task'", "''", 1),
	} {
		if _, err := forger.Exec(t.Context(), sql); err != nil {
			t.Errorf("%s: %v; if it is refused now, have TestForgedRowsAreRefused say so", sql, err)
		}
	}
	add()
	start(t, pool, c)
	pgtest.Retry(t, patience, func(context.Context) error {
		if n := one[int](t, pool, `SELECT count(*) FROM pelton.job_attempt WHERE job_id = ANY ($1) AND outcome = 'completed'`, ids); n != len(ids) {
			return fmt.Errorf("%d of %d jobs of others are done", n, len(ids))
		}
		return nil
	})
	pgtest.Retry(t, patience, func(context.Context) error {
		if n := one[int](t, pool, `SELECT count(*) FROM pelton.job_scheduled WHERE due < now()`); n > 0 {
			return fmt.Errorf("%d jobs are due and wait", n)
		}
		return nil
	})
	if _, err := client.JobList(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A row by which a running job is said to wait for a time is no hindrance to what its run ends with.
func TestForgedWaitOfARunningJob(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	pool, forger := pgtest.Pool(t, dsn), enqueuer(t, dsn)
	c := config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		if job.Attempt > 1 {
			return nil
		}
		if _, err := forger.Exec(ctx, `INSERT INTO pelton.job_scheduled (job_id, wake, due) VALUES ($1, now() + interval '1 hour', now() + interval '1 hour')`, job.ID); err != nil {
			t.Error(err)
		}
		return errors.New("once more")
	})
	c.RetryPolicy = shortly{}
	client := start(t, pool, c)
	id := insert(t, client, 1, nil)
	waitOutcomes(t, pool, id, "errored completed")
}

// shortly has jobs tried again so soon that they wait in job_scheduled for a moment.
type shortly struct{}

func (shortly) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(200 * time.Millisecond) }
