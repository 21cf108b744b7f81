package schematest_test

import (
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

func TestPoolIsMigratedAndOwn(t *testing.T) {
	t.Parallel()
	one, other := schematest.Pool(t), schematest.Pool(t)
	if _, err := one.Exec(t.Context(), `INSERT INTO pelton.queue (name) VALUES ('a')`); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := other.QueryRow(t.Context(), `SELECT count(*) FROM pelton.queue`).Scan(&n); err != nil || n != 0 {
		t.Fatalf("another test's database has %d queues: %v", n, err)
	}
}

// failures counts what a test would be failed for.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Helper() {}

func (f *failures) Errorf(string, ...any) { f.n++ }

func TestAuditFindsFaults(t *testing.T) {
	t.Parallel()
	for fault, sql := range map[string]string{
		"":                `SELECT pelton.enqueue('k')`,
		"a lost ticket":   `DELETE FROM pelton.job_ready`,
		"a second ticket": `INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'default', job_ids FROM pelton.job_ready`,
		"a missing run": `WITH gone AS (DELETE FROM pelton.job_ready RETURNING job_ids)
			INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) SELECT job_ids[1], 2, 1, 'completed' FROM gone`,
	} {
		pool := schematest.Audited(t)
		for _, statement := range []string{`SELECT pelton.enqueue('k')`, sql} {
			if _, err := pool.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		found := failures{TB: t}
		schematest.Audit(&found, pool)
		if (found.n > 0) != (fault != "") {
			t.Errorf("%q: the audit finds %d faults", fault, found.n)
		}
		if _, err := pool.Exec(t.Context(), `TRUNCATE pelton.job, pelton.job_attempt, pelton.job_ready`); err != nil {
			t.Fatal(err)
		}
	}
}

// What is looked for is found in texts, arrays, JSON and bytes, and in partitions.
func TestFind(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	for table, sql := range map[string]string{
		"queue":   `INSERT INTO pelton.queue (name, metadata) VALUES ('a', '{"b": ["needle"]}')`,
		"job":     `INSERT INTO pelton.job (kind, args, tags) VALUES ('a', '{}', '{a,needle}')`,
		"job_log": `INSERT INTO pelton.job_log (job_id, pos, run, stream, data) VALUES (1, 0, 1, 'o', 'a needle b')`,
	} {
		if found := schematest.Find(t, pool, "needle"); len(found) != 0 {
			t.Fatalf("found before it was there: %q", found)
		}
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if found := schematest.Find(t, pool, "needle"); len(found) != 1 || !strings.HasPrefix(found[0], table+": ") {
			t.Errorf("%s: found %q", table, found)
		}
		if _, err := pool.Exec(t.Context(), "TRUNCATE pelton.queue, pelton.job, pelton.job_log"); err != nil {
			t.Fatal(err)
		}
	}
}
