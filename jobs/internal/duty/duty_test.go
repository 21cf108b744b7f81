package duty_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

// fixture is a database with what a test of a duty needs.
type fixture struct {
	testing.TB
	pool  *pgxpool.Pool
	store *store.Store
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	pool := schematest.Pool(t)
	return &fixture{t, pool, store.New(pool, "pelton")}
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.pool.Exec(f.Context(), sql, args...); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
}

func (f *fixture) int(sql string, args ...any) int64 {
	f.Helper()
	var n int64
	if err := f.pool.QueryRow(f.Context(), sql, args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (f *fixture) text(sql string, args ...any) string {
	f.Helper()
	var s string
	if err := f.pool.QueryRow(f.Context(), sql, args...).Scan(&s); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	return s
}

// jobs appends n jobs that are in no place yet.
func (f *fixture) jobs(n int) []int64 {
	f.Helper()
	rows, err := f.pool.Query(f.Context(), `INSERT INTO pelton.job (kind, args) SELECT 'k', '{}' FROM generate_series(1, $1::int) RETURNING id`, n)
	if err != nil {
		f.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		f.Fatal(err)
	}
	return ids
}

// executor registers an executor that leases the first runs of jobs.
func (f *fixture) executor(ids []int64) int64 {
	f.Helper()
	id := f.int(`INSERT INTO pelton.executor (pid, name, host) VALUES (1, 'e', 'h') RETURNING id`)
	if len(ids) > 0 {
		f.exec(`INSERT INTO pelton.job_lease (executor, no, job_ids) SELECT $1, g.n, ($2::bigint[])[g.n:g.n + 99]
			FROM generate_series(1, cardinality($2::bigint[]), 100) AS g(n)`, id, ids)
	}
	return id
}

// begin opens a transaction that the test ends.
func (f *fixture) begin() pgx.Tx {
	f.Helper()
	tx, err := f.pool.Begin(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// letter is the reason of a job's dead letter, "" if it has none.
func (f *fixture) letter(id int64) string {
	f.Helper()
	return f.text(`SELECT coalesce((SELECT reason FROM pelton.job_dead WHERE job_id = $1), '')`, id)
}
