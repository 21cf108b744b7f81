package jobs_test

import (
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// Keys of metadata that are Pelton's own are refused wherever somebody else could give them, and sizes are bounded where they add up.
func TestOwnKeysOfMetadata(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	c, err := jobs.NewClient(pool, &jobs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := c.Insert(t.Context(), jobs.RawArgs{JobKind: "k", JSON: []byte("{}")}, &river.InsertOpts{})
	if err != nil {
		t.Fatal(err)
	}
	const mark = `{"a": 1, "pelton:flow": {"run": 1, "node": -1}}`
	sql := func(query string, args ...any) error {
		_, err := pool.Exec(t.Context(), query, args...)
		return err
	}
	update := func(key string) error {
		_, err := c.JobUpdate(t.Context(), job.Job.ID, &jobs.JobUpdateParams{Metadata: map[string]any{key: 1}})
		return err
	}
	for name, err := range map[string]error{
		"enqueue":      sql(`SELECT pelton.enqueue('k', '{}', metadata => $1::jsonb)`, mark),
		"enqueue many": sql(`SELECT pelton.enqueue_many(json_build_array(json_build_object('kind', 'k', 'metadata', $1::json)))`, mark),
		"change":       sql(`SELECT pelton.change($1, new_metadata => $2::jsonb)`, job.Job.ID, mark),
		"update":       update("pelton:flow"),
		"check":        jobs.CheckMetadata([]byte(mark)),
	} {
		if err == nil || !strings.Contains(err.Error(), `metadata key "pelton:flow"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"enqueue": sql(`SELECT pelton.enqueue('k', '{}', metadata => '{"pelton": 1, "mine:flow": {"pelton:flow": 1}}')`),
		"change":  sql(`SELECT pelton.change($1, new_metadata => '{"pelton": 1}')`, job.Job.ID),
		"update":  update("pelton"),
		"no JSON": jobs.CheckMetadata([]byte("[")), // which is told by others
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := strings.Repeat("x", 800<<10)
	for i, want := range []string{"", "", "over the limit"} {
		err := sql(`SELECT pelton.change($1, new_metadata => jsonb_build_object($2::text, $3::text))`, job.Job.ID, string(rune('a'+i)), long)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("change %d: %v, want %q", i, err, want)
		}
	}
	if err := sql(`SELECT pelton.change($1, new_args => to_json($2::text))`, job.Job.ID, long+long); err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("large args: %v", err)
	}
	if err := sql(`SELECT pelton.change($1, new_args => '{"a": "\u0000"}')`, job.Job.ID); err == nil || !strings.Contains(err.Error(), "not JSON that Postgres can keep") {
		t.Errorf("args with NUL: %v", err)
	}
}

// A ticket that no program could read is refused, whoever writes it.
func TestTicketsAreWhole(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	for _, arrays := range []string{
		`ARRAY[1, NULL], NULL, NULL`, `'{}', NULL, NULL`, `ARRAY[1, 2], ARRAY[1], NULL`, `ARRAY[1], ARRAY[NULL::integer], NULL`, `ARRAY[1], NULL, ARRAY[1, 2]`,
		`(SELECT array_agg(n) FROM generate_series(1, 1001) n), NULL, NULL`,
	} {
		_, err := pool.Exec(t.Context(), `INSERT INTO pelton.job_ready (priority, line, job_ids, runs, attempts) SELECT 1, 'default', `+arrays)
		if err == nil || !strings.Contains(err.Error(), "job_ready_whole") {
			t.Errorf("%s: %v", arrays, err)
		}
	}
}
