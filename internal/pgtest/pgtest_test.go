package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/internal/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

func value[T any](t *testing.T, pool *pgxpool.Pool, sql string) T {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestDatabaseIsEmptyAndOnesOwn(t *testing.T) {
	t.Parallel()
	first, second := pgtest.Pool(t, pgtest.Database(t)), pgtest.Pool(t, pgtest.Database(t))
	if _, err := first.Exec(t.Context(), "CREATE TABLE thing (id int)"); err != nil {
		t.Fatal(err)
	}
	if n := value[int](t, second, "SELECT count(*)::int FROM pg_class WHERE relname = 'thing'"); n != 0 {
		t.Error("a table made in one database is seen in another")
	}
}

//nolint:tparallel // what comes after the subtest looks at what it left
func TestDatabaseGoesWithItsTest(t *testing.T) {
	t.Parallel()
	count := pgtest.Pool(t, pgtest.Database(t))
	var name string
	t.Run("user", func(t *testing.T) {
		dsn := pgtest.Database(t)
		pool := pgtest.Pool(t, dsn)
		name = value[string](t, pool, "SELECT current_database()")
		// A prepared transaction and a session that nobody closes must not keep the database.
		for _, sql := range []string{"CREATE TABLE thing (id int)", "BEGIN; INSERT INTO thing VALUES (1); PREPARE TRANSACTION 'left'"} {
			if _, err := pool.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		left, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = left.Close(context.Background()) })
	})
	if n := value[int](t, count, "SELECT count(*)::int FROM pg_database WHERE datname = '"+name+"'"); n != 0 {
		t.Errorf("database %s is still there", name)
	}
}

func TestFromTemplatePreparesOnce(t *testing.T) {
	t.Parallel()
	var prepared atomic.Int32
	prepare := func(ctx context.Context, dsn string) error {
		prepared.Add(1)
		session, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer func() { _ = session.Close(ctx) }()
		_, err = session.Exec(ctx, "CREATE TABLE thing AS SELECT 7 AS id")
		return err
	}
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			pool := pgtest.Pool(t, pgtest.FromTemplate(t, "thing", prepare))
			if id := value[int](t, pool, "UPDATE thing SET id = id + 1 RETURNING id"); id != 8 {
				t.Errorf("a copy holds %d", id)
			}
		})
	}
	users.Wait()
	if n := prepared.Load(); n != 1 {
		t.Errorf("prepared %d times", n)
	}
}

func TestFromTemplateTellsItsFailureToEveryTest(t *testing.T) {
	t.Parallel()
	for range 2 {
		tb := &recorder{TB: t}
		tb.run(func() {
			pgtest.FromTemplate(tb, "broken", func(context.Context, string) error { return errors.New("no such luck") })
		})
		if !strings.Contains(tb.said, "no such luck") {
			t.Errorf("said %q", tb.said)
		}
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Database(t))
	if got := value[string](t, pool, "SHOW max_prepared_transactions"); got != "20" {
		t.Errorf("max_prepared_transactions = %s", got)
	}
	if wanted := os.Getenv("PELTON_TEST_PG_OPTIONS"); wanted == "default_transaction_isolation='repeatable read'" {
		if got := value[string](t, pool, "SHOW transaction_isolation"); got != "repeatable read" {
			t.Errorf("isolation is %s", got)
		}
	}
}

func TestEventuallyWaits(t *testing.T) {
	t.Parallel()
	var tries int
	pgtest.Eventually(t, time.Minute, func() bool { tries++; return tries == 3 }, "the third try")
	tb := &recorder{TB: t}
	tb.run(func() { pgtest.Eventually(tb, 30*time.Millisecond, func() bool { return false }, "day %d", 8) })
	if !strings.Contains(tb.said, "day 8") {
		t.Errorf("said %q", tb.said)
	}
}

func TestRetryReportsTheLastError(t *testing.T) {
	t.Parallel()
	tb := &recorder{TB: t}
	var tries int
	tb.run(func() {
		pgtest.Retry(tb, 30*time.Millisecond, func(context.Context) error { tries++; return fmt.Errorf("try %d", tries) })
	})
	if tries < 2 || !strings.Contains(tb.said, "try ") {
		t.Errorf("after %d tries said %q", tries, tb.said)
	}
}

// recorder is a test that notes its failure instead of failing.
type recorder struct {
	testing.TB
	said string
}

// run calls f in a goroutine, because Fatalf must not return.
func (r *recorder) run(f func()) {
	var work sync.WaitGroup
	work.Go(f)
	work.Wait()
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestNewClusterIsOnesOwn(t *testing.T) {
	t.Parallel()
	cluster := pgtest.NewCluster(t, postgres.Config{NoSync: true, Settings: map[string]string{"work_mem": "3MB"}})
	if cluster.PID() == pgtest.Cluster(t).PID() {
		t.Fatal("it is the shared one")
	}
	pool := pgtest.Pool(t, cluster.DSN("postgres"))
	if got := value[string](t, pool, "SHOW work_mem"); got != "3MB" {
		t.Errorf("work_mem = %s", got)
	}
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := pool.Ping(t.Context()); err == nil {
		t.Error("it answers")
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Retry(t, 30*time.Second, pool.Ping)
}
