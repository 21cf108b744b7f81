package sqltest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// stored is a job as the table has it.
type stored struct {
	Kind, Queue, Args     string
	Priority, MaxAttempts int16
	Due                   *time.Time
	Metadata              *string
	Tags                  []string
	State                 string
}

func storedJob(t *testing.T, db queryer, id int64) stored {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT j.kind, j.queue, j.args::text, j.priority, j.max_attempts, j.scheduled_at,
		j.metadata::text, j.tags, s.state FROM pelton.job j JOIN pelton.job_state s ON s.job_id = j.id WHERE j.id = $1`, id)
	if err != nil {
		t.Fatal(err)
	}
	j, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[stored])
	if err != nil {
		t.Fatalf("job %d: %v", id, err)
	}
	return j
}

func TestEnqueueDefaults(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	j := storedJob(t, pool, value[int64](t, pool, `SELECT pelton.enqueue('greet')`))
	if j.Kind != "greet" || j.Queue != "default" || j.Args != "{}" || j.Priority != 1 || j.MaxAttempts != 25 || j.Due != nil ||
		j.Metadata != nil || j.Tags != nil || j.State != "available" {
		t.Errorf("stored %+v", j)
	}
}

func TestEnqueueOptions(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	j := storedJob(t, pool, value[int64](t, pool, `SELECT pelton.enqueue('greet', '{"n":  1}', queue => 'mail', priority => 4,
		run_at => '2040-01-01Z', tags => '{red,dark-blue}', metadata => '{"trace": "7"}', max_attempts => 3)`))
	if j.Args != `{"n":  1}` {
		t.Errorf("args are %q, want them byte for byte", j.Args)
	}
	if j.Queue != "mail" || j.Priority != 4 || j.MaxAttempts != 3 || j.State != "scheduled" || *j.Metadata != `{"trace": "7"}` ||
		!slices.Equal(j.Tags, []string{"red", "dark-blue"}) || !j.Due.Equal(time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("stored %+v", j)
	}
	for call, state := range map[string]string{
		`pelton.enqueue('greet', pending => true, run_at => '2040-01-01')`:           "pending",
		`pelton.enqueue('greet', run_at => clock_timestamp() - interval '1 minute')`: "available",
		`pelton.enqueue('greet', to_json(7), queue => NULL, priority => NULL)`:       "available",
		`pelton.enqueue('greet', jsonb_build_object('a', 1), tags => '{}')`:          "available",
	} {
		if j := storedJob(t, pool, value[int64](t, pool, `SELECT `+call)); j.State != state {
			t.Errorf("%s is %s, want %s", call, j.State, state)
		}
	}
}

var refusals = []struct{ arguments, message string }{
	{`''`, `kind is empty`},
	{`NULL`, `kind is empty`},
	{`repeat('k', 129)`, `kind is 129 bytes`},
	{`E'bad kind\nx'`, `kind has characters that control a terminal`},
	{`E'bad kind\u009bx'`, `kind has characters that control a terminal`},
	{`'k', queue => 'Mail'`, `queue name "Mail"`},
	{`'k', queue => ''`, `queue name ""`},
	{`'k', queue => repeat('q', 65)`, `queue name "q`},
	{`'k', queue => 'a/kind=b'`, `queue name "a/kind=b"`},
	{`'k', priority => 0`, `priority is 0`},
	{`'k', priority => 5`, `priority is 5`},
	{`'k', max_attempts => 0`, `max_attempts is 0`},
	{`'k', max_attempts => 32768`, `max_attempts is 32768`},
	{`'k', tags => '{ab}'`, `tag "ab"`},
	{`'k', tags => '{good,-bad}'`, `tag "-bad"`},
	{`'k', tags => '{"one,two"}'`, `tag "one,two"`},
	{`'k', tags => '{NULL}'`, `tag NULL`},
	{`'k', tags => ARRAY[repeat('t', 256)]`, `tag "tttt`},
	{`'k', tags => ARRAY['good' || chr(10)]`, `tag "good`},
	{`'k', run_at => 'infinity'`, `run_at is infinity`},
	{`'k', run_at => '2030-01-01 BC'`, `run_at is`},
	{`'k', NULL::jsonb`, `args are NULL`},
	{`'k', '{"a":'`, `args are not JSON that Postgres can keep: invalid input syntax`},
	{`'k', '{"a":"\u0000"}'`, `args are not JSON that Postgres can keep: unsupported Unicode escape sequence`},
	{`'k', '{"a":"\u0000"}'::json`, `args are not JSON that Postgres can keep: unsupported Unicode escape sequence`},
	{`'k', '{"a":"\ud800"}'`, `args are not JSON that Postgres can keep`},
	{`'k', '1e999999'`, `args are not JSON that Postgres can keep: value overflows`},
	{`'k', repeat('[', 100000)`, `args are not JSON that Postgres can keep`},
	{`'k', to_json(repeat('x', 1048576))`, `args are 1048578 bytes, over the limit of 1048576`},
	{`'k', metadata => '[]'`, `metadata is a JSON array`},
	{`'k', metadata => jsonb_build_object('a', repeat('x', 1048576))`, `metadata is 1048585 bytes`},
	{`'k', unique_by_period => '0.9 s'`, `unique_by_period is 00:00:00.9, want at least 1 second`},
	{`'k', unique_by_period => '-1 day'`, `unique_by_period is -1 days, want at least 1 second`},
	{`'k', unique_by_period => '1 month'`, `unique_by_period is 1 mon, but months have no fixed length`},
	{`'k', unique_states => '{available,pending,running,schedulled}'`, `unique_states has unknown state "schedulled"`},
	{`'k', unique_states => '{running,completed}'`, `unique_states must hold available, pending, scheduled too`},
	{`'k', unique_exclude_kind => true`, `unique_exclude_kind needs unique_by_args`},
	{`'k', '[1]', unique_by_args => true`, `args of a job unique by its args are a JSON array`},
	{`'k', '"a"', unique_fields => '{a}'`, `args of a job unique by its args are a JSON string`},
}

func TestEnqueueRefuses(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	for _, r := range refusals {
		_, err := pool.Exec(t.Context(), `SELECT pelton.enqueue(`+r.arguments+`)`)
		if err == nil {
			t.Errorf("enqueue(%s) was taken", r.arguments)
			continue
		}
		e := refusal(t, err)
		if e.Code != "22023" || !strings.HasPrefix(e.Message, r.message) || e.Hint == "" {
			t.Errorf("enqueue(%s): %s %q, hint %q; want 22023 %q", r.arguments, e.Code, e.Message, e.Hint, r.message)
		}
	}
	if n := value[int](t, pool, `SELECT count(*)::int FROM pelton.job`); n != 0 {
		t.Errorf("%d jobs are stored", n)
	}
}

func TestEnqueueFromTrigger(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `CREATE TABLE orders (id int PRIMARY KEY, customer text);
		CREATE FUNCTION order_placed() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pelton.enqueue('invoice', jsonb_build_object('order', NEW.id), queue => 'billing');
			RETURN NULL;
		END $$;
		CREATE TRIGGER order_placed AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION order_placed()`)

	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, `INSERT INTO orders VALUES (1, 'a'), (2, 'b')`)
	if n := value[int](t, tx, `SELECT count(*)::int FROM pelton.job_state`); n != 2 {
		t.Errorf("the transaction sees %d jobs, want 2", n)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"job", "job_ready", "job_unique"} {
		if n := value[int](t, pool, `SELECT count(*)::int FROM pelton.`+table); n != 0 {
			t.Errorf("a rollback left %d rows in %s", n, table)
		}
	}

	exec(t, pool, `INSERT INTO orders VALUES (1, 'a'), (2, 'b')`)
	args := values[string](t, pool, `SELECT args::text FROM pelton.job WHERE queue = 'billing' ORDER BY id`)
	if !slices.Equal(args, []string{`{"order": 1}`, `{"order": 2}`}) {
		t.Errorf("jobs have args %q", args)
	}
}

func TestEnqueueInAnotherSchema(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	for _, name := range []string{"second", "third"} {
		if err := schema.Up(t.Context(), dsn, name); err != nil {
			t.Fatal(err)
		}
	}
	pool := pgtest.Pool(t, dsn)
	exec(t, pool, `SELECT second.enqueue('k', unique_by_args => true), second.enqueue_many('[{"kind": "k"}]')`)
	if n := value[int](t, pool, `SELECT count(*)::int FROM second.job_state`); n != 2 {
		t.Errorf("schema second has %d jobs, want 2", n)
	}
	if n := value[int](t, pool, `SELECT count(*)::int FROM third.job_state`); n != 0 {
		t.Errorf("schema third has %d jobs, want none", n)
	}
	if n := value[int](t, pool, `SELECT count(*)::int FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		WHERE n.nspname = 'second' AND p.prosrc ~ '\mpelton\.'`); n != 0 {
		t.Errorf("%d functions still speak of a schema named pelton", n)
	}
}

func TestEnqueueMany(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	rows, err := pool.Query(t.Context(), `SELECT n, id, skipped FROM pelton.enqueue_many($1::json)`, `[
		{"kind": "a", "args": {"x":  1}, "unique_by_args": true},
		{"kind": "b", "queue": "q", "priority": 2, "tags": ["red", "blue"], "metadata": {"m": 1}, "max_attempts": 2},
		{"kind": "a", "args": {"x":1}, "unique_by_args": true},
		{"kind": "c", "run_at": "2040-01-01T00:00:00Z"},
		{"kind": "d", "pending": true, "args": null}]`)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		N       int
		ID      int64
		Skipped bool
	}
	results, err := pgx.CollectRows(rows, pgx.RowToStructByPos[result])
	if err != nil || len(results) != 5 {
		t.Fatalf("%d results, want 5: %v", len(results), err)
	}
	for i, r := range results {
		if r.N != i+1 || r.Skipped != (i == 2) {
			t.Errorf("result %d is %+v", i, r)
		}
	}
	if results[2].ID != results[0].ID {
		t.Errorf("the duplicate has id %d, want that of the first, %d", results[2].ID, results[0].ID)
	}
	if j := storedJob(t, pool, results[0].ID); j.Args != `{"x":  1}` {
		t.Errorf("args are %q, want them byte for byte", j.Args)
	}
	b := storedJob(t, pool, results[1].ID)
	if b.Queue != "q" || b.Priority != 2 || b.MaxAttempts != 2 || *b.Metadata != `{"m": 1}` ||
		!slices.Equal(b.Tags, []string{"red", "blue"}) {
		t.Errorf("stored %+v", b)
	}
	if c, d := storedJob(t, pool, results[3].ID), storedJob(t, pool, results[4].ID); c.State != "scheduled" ||
		d.State != "pending" || d.Args != "{}" {
		t.Errorf("stored %+v and %+v", c, d)
	}
	if n := len(values[int](t, pool, `SELECT n FROM pelton.enqueue_many('[]')`)); n != 0 {
		t.Errorf("an empty array gives %d rows", n)
	}
}

func TestEnqueueManyMakesFewTickets(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `SELECT pelton.enqueue_many((SELECT json_agg(json_build_object('kind', 'k')) FROM generate_series(1, 5000)))`)
	if n := value[int](t, pool, `SELECT count(*)::int FROM pelton.job_ready`); n > 70 {
		t.Errorf("5000 jobs made %d tickets, want about 64", n)
	}
}

func TestEnqueueManyRefuses(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	for input, message := range map[string]string{
		`{}`:                                    `jobs are a JSON object, want an array`,
		`[{"kind": "a"}, 3]`:                    `job 2: a JSON number, want an object`,
		`[{"kind": "a"}, {"kind": "b", "x":1}]`: `job 2: unknown field "x"`,
		`[{"kind": "a", "priority": "first"}]`:  `job 1: invalid input syntax for type integer`,
		`[{"kind": "a"}, {"kind": "b", "priority": 7}]`: `job 2: priority is 7`,
		`[{"queue": "a"}]`: `job 1: kind is empty`,
		`[{"kind": "a", "unique_by_period": "1 ms"}]`:          `job 1: unique_by_period is`,
		`[{"kind": "a", "unique_states": ["running"]}]`:        `job 1: unique_states must hold`,
		`[{"kind": "a", "args": [1], "unique_by_args": true}]`: `job 1: args of a job unique by its args`,
		`[{"kind": "a", "args": {"x": "\u0000"}}]`:             `job 1: unsupported Unicode escape sequence`,
		`[{"kind": "a", "metadata": {"x": "\u0000"}}]`:         `job 1: unsupported Unicode escape sequence`,
	} {
		_, err := pool.Exec(t.Context(), `SELECT pelton.enqueue_many($1::text::json)`, input)
		if err == nil {
			t.Errorf("%s was taken", input)
			continue
		}
		if e := refusal(t, err); e.Code != "22023" || !strings.HasPrefix(e.Message, message) || e.Hint == "" {
			t.Errorf("%s: %s %q, hint %q; want 22023 %q", input, e.Code, e.Message, e.Hint, message)
		}
	}
	if n := value[int](t, pool, `SELECT count(*)::int FROM pelton.job`); n != 0 {
		t.Errorf("%d jobs are stored", n)
	}
}

func TestInsertJSON(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	input, err := json.Marshal([]map[string]any{
		{"kind": "a", "args": `{"x":  "é"}`, "queue": "q", "priority": 3, "max_attempts": 7, "tags": []string{"red", "blue"}},
		{"kind": "b", "args": `{}`, "due": "2040-01-01T00:00:00Z", "unique_key": "00ff", "unique_states": 245},
		{"kind": "b", "args": `{}`, "metadata": `{"m": 1}`, "unique_key": "00ff", "unique_states": 245},
		{"kind": "c", "pending": true, "metadata": "", "unique_key": ""},
	})
	if err != nil {
		t.Fatal(err)
	}
	const query = `SELECT id, created_at, state, skipped FROM pelton.insert_json($1::text::json, false)`
	rows, err := pool.Query(t.Context(), query, string(input))
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		ID        int64
		CreatedAt time.Time
		State     string
		Skipped   bool
	}
	results, err := pgx.CollectRows(rows, pgx.RowToStructByPos[result])
	if err != nil || len(results) != 4 {
		t.Fatalf("%d results, want 4: %v", len(results), err)
	}
	if !results[2].Skipped || results[2].ID != results[1].ID || results[0].Skipped || results[1].Skipped || results[3].Skipped {
		t.Errorf("results %+v: want the third skipped", results)
	}
	for i, state := range map[int]string{0: "available", 1: "scheduled", 3: "pending"} {
		if j := storedJob(t, pool, results[i].ID); j.State != state || results[i].State != state {
			t.Errorf("job %d is %s and said to be %s, want %s", i, j.State, results[i].State, state)
		}
	}
	a := storedJob(t, pool, results[0].ID)
	if a.Args != `{"x":  "é"}` || a.Queue != "q" || a.Priority != 3 || a.MaxAttempts != 7 ||
		!slices.Equal(a.Tags, []string{"red", "blue"}) {
		t.Errorf("stored %+v", a)
	}
	if n := len(values[int64](t, pool, query, "[]")); n != 0 {
		t.Errorf("an empty array gives %d rows", n)
	}
}

func TestEnqueueHintsOnlyIfAsked(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	listener, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Release()
	exec(t, listener, `LISTEN pelton_wake`)
	exec(t, pool, `INSERT INTO pelton.job_sleeper (line, executor) VALUES ('quiet', 1), ('loud', 1)`)
	exec(t, pool, `SELECT pelton.enqueue('k', queue => 'quiet', notify => false)`)
	exec(t, pool, `SELECT pelton.enqueue_many('[{"kind": "k", "queue": "quiet"}]', notify => false)`)
	exec(t, pool, `SELECT pelton.enqueue('k', queue => 'loud')`)
	hint, err := listener.Conn().WaitForNotification(t.Context())
	if err != nil || hint.Payload != "loud" {
		t.Errorf("the first hint is %v, want one for loud: %v", hint, err)
	}
}

// Movers are told of jobs due before their next look: once in a while in a session, and again if the hint was rolled back.
func TestEnqueueHintsAtJobsDueSoon(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	listener, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Release()
	exec(t, listener, `LISTEN pelton_wake`)
	writer, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Release()
	// None of these sends one: due late, gone by, pending, told not to.
	exec(t, writer, `SELECT pelton.enqueue('k', run_at => now() + interval '1 minute'), pelton.enqueue('k', run_at => now()),
		pelton.enqueue('k', run_at => now() + interval '3 seconds', pending => true),
		pelton.enqueue('k', run_at => now() + interval '3 seconds', notify => false)`)
	const soon = `SELECT pelton.enqueue('k', run_at => clock_timestamp() + interval '3 seconds')`
	exec(t, writer, `BEGIN`)
	exec(t, writer, soon)
	exec(t, writer, `ROLLBACK`)
	exec(t, pool, `SELECT pg_notify('pelton_wake', 'first')`)
	exec(t, writer, soon)
	exec(t, pool, `SELECT pg_notify('pelton_wake', 'second')`)
	const told = `SELECT set_config('peltonq.told_due', (extract(epoch FROM clock_timestamp()) * 1000 - $1)::bigint::text, false),
		pelton.enqueue('k', run_at => clock_timestamp() + interval '3 seconds')`
	exec(t, writer, told, 0)
	exec(t, writer, told, 1000)
	exec(t, pool, `SELECT pg_notify('pelton_wake', 'last')`)
	for _, want := range []string{"first", "due:", "second", "due:", "last"} {
		if hint, err := listener.Conn().WaitForNotification(t.Context()); err != nil || hint.Payload != want {
			t.Fatalf("got the hint %v, want %q: %v", hint, want, err)
		}
	}
}
