package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/internal/postgres"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

// Forty workers, 500 with PELTON_SCENARIOS=full, and two schedulers wait for work, as they are by default: each asks the database
// a handful of times a minute and holds a handful of connections, and no table grows.
func TestIdleWorkers(t *testing.T) {
	t.Parallel()
	workers, window := 40, 6*time.Second
	if pgtest.FullSize() {
		workers, window = 500, 5*time.Minute
	}
	cluster := pgtest.NewCluster(t, postgres.Config{NoSync: true, Settings: map[string]string{
		"max_connections": "4000", "shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track_utility": "on",
	}})
	asks := pgtest.Pool(t, cluster.DSN("postgres")) // in another database, so that what it asks is not counted
	for _, sql := range []string{"CREATE EXTENSION pg_stat_statements", "CREATE DATABASE idle"} {
		exec(t, asks, sql)
	}
	dsn := cluster.DSN("idle")
	if err := schema.Up(t.Context(), dsn, schema.DefaultName); err != nil {
		t.Fatal(err)
	}
	inside := pgtest.Pool(t, dsn)
	keeper, err := schema.NewKeeper(inside, schema.DefaultName, schema.KeeperConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Maintain(t.Context()); err != nil { // or the schedulers make their partitions now
		t.Fatal(err)
	}
	idle := func(n int, workers *jobs.Workers, queues map[string]jobs.QueueConfig) {
		for range n {
			start(t, pgtest.Pool(t, dsn, func(c *pgxpool.Config) { c.MaxConns = 8 }), &jobs.Config{
				Queues: queues, Workers: workers, DutiesOff: queues != nil, Logger: slog.New(slog.DiscardHandler),
			})
		}
	}
	idle(2, nil, nil)
	some := config(func(context.Context, *river.Job[taskArgs]) error { return nil })
	idle(workers, some.Workers, some.Queues)
	const asleep = `SELECT count(*) FROM pelton.job_sleeper`
	pgtest.Eventually(t, patience+time.Duration(workers)*100*time.Millisecond, func() bool {
		return one[int](t, inside, asleep) == workers
	}, "all workers to go to sleep")
	rows := countRows(t, inside)
	rows["pelton.job_sleeper"] = workers // one of them may have been awake, for a look, when they were counted
	inside.Close()

	exec(t, asks, "SELECT pg_stat_statements_reset()")
	begun := time.Now()
	<-time.After(window)
	const count = `SELECT coalesce(sum(s.calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid AND d.datname = 'idle'
		WHERE (s.query LIKE '%executor SET beat%') = $1`
	beats, others := one[int](t, asks, count, true), one[int](t, asks, count, false)
	minutes := time.Since(begun).Minutes()
	connections := one[int](t, asks, `SELECT count(*) FROM pg_stat_activity WHERE datname = 'idle'`)
	each := func(n int) float64 { return float64(n) / float64(workers) }
	figures := fmt.Sprintf("a worker has %.1f statements a minute, %.1f heartbeats, %.1f connections",
		each(others)/minutes, each(beats)/minutes, each(connections))
	t.Log(figures)
	if beats == 0 || each(others)/minutes > 30 || each(beats)/minutes > 20 || each(connections) > 6 {
		t.Errorf("%s", figures)
		t.Log(strings.Join(statements(t, asks), "\n"))
	}
	after := countRows(t, pgtest.Pool(t, dsn))
	for table, n := range after {
		if n > rows[table] {
			t.Errorf("table %s has grown from %d to %d rows", table, rows[table], n)
		}
	}
}

// countRows counts the rows of each table of the schema.
func countRows(t *testing.T, pool *pgxpool.Pool) map[string]int {
	t.Helper()
	tables := one[[]string](t, pool, `SELECT array_agg(c.oid::regclass::text) FROM pg_class c
		WHERE c.relnamespace = 'pelton'::regnamespace AND c.relkind = 'r'`)
	counts := map[string]int{}
	for _, table := range tables {
		counts[table] = one[int](t, pool, "SELECT count(*) FROM "+table)
	}
	return counts
}

// statements are the most frequent of those that were counted, with their numbers.
func statements(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	return one[[]string](t, pool, `SELECT array_agg(calls || '  ' || query ORDER BY calls DESC) FROM (
		SELECT left(regexp_replace(s.query, '--[^\n]*|\s+', ' ', 'g'), 150) AS query, sum(s.calls) AS calls
		FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid AND d.datname = 'idle' GROUP BY 1 ORDER BY 2 DESC LIMIT 20) q`)
}
