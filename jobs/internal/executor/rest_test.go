package executor

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

// writer is an open transaction that has put a ticket into a line.
func writer(t *testing.T, pool *pgxpool.Pool, line string) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(t.Context(), `INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, $1, '{1}')`, line); err != nil {
		t.Fatal(err)
	}
	return tx
}

// Whoever goes to sleep watches those who were writing before, and finds what they commit. Later writers see the sleeper.
func TestWatchEndsWithTheWritersItBeganWith(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"elsewhere", "default"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dsn := schematest.DSN(t)
			direct := pgtest.Pool(t, dsn)
			pool := pgtest.Pool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = "watcher" })
			e := New(store.New(pool, schema.DefaultName), Config{
				Queues: map[string]int{"default": 1}, PollInterval: time.Hour, Log: slog.New(slog.DiscardHandler),
				Marks: floor.NewTracker(schema.DefaultName, floor.Ready, func(int) {}),
			})
			before := writer(t, direct, line)
			found := make(chan bool, 1)
			go func() { found <- e.queues["default"].watch(t.Context()) }()
			pgtest.Eventually(t, time.Minute, func() bool {
				var looked bool
				err := direct.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
					WHERE datname = current_database() AND application_name = 'watcher' AND query LIKE '%p.mark%' AND state = 'idle')`).Scan(&looked)
				return err == nil && looked
			}, "the first look to be over")
			writer(t, direct, "default")
			if err := before.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			select {
			case got := <-found:
				if got != (line == "default") {
					t.Errorf("found %v", got)
				}
			case <-time.After(time.Minute):
				t.Fatal("it watches a later writer")
			}
		})
	}
}
