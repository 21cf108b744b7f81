package notifier_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/notifier"
	"github.com/peltonq/pelton/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

const channel = "some Channel"

// listener is a started notifier whose calls a test waits for.
type listener struct {
	hints     chan string
	connected chan struct{}
	broken    chan struct{}
}

func listen(t *testing.T, pool *pgxpool.Pool, config notifier.Config) *listener {
	t.Helper()
	l := &listener{hints: make(chan string, 100), connected: make(chan struct{}, 100), broken: make(chan struct{}, 100)}
	config.Channel = channel
	config.Hint = func(payload string) { l.hints <- payload }
	config.Connected = func() { l.connected <- struct{}{} }
	config.Broken = func() { l.broken <- struct{}{} }
	n := notifier.New(pool, config)
	n.Start(t.Context())
	t.Cleanup(n.Stop)
	await(t, l.connected)
	return l
}

func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("waited for 20 s")
		panic("unreachable")
	}
}

func send(t *testing.T, pool *pgxpool.Pool, payload string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `SELECT pg_notify($1, $2)`, channel, payload); err != nil {
		t.Fatal(err)
	}
}

func TestHintsArriveInOrder(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Database(t))
	l := listen(t, pool, notifier.Config{Quiet: 5 * time.Millisecond})
	for _, want := range []string{"one", "", "three"} {
		send(t, pool, want)
		if got := await(t, l.hints); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if len(l.connected) > 0 || len(l.broken) > 0 {
		t.Fatal("silence broke the connection")
	}
	var open int
	err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND pid <> pg_backend_pid() AND (xact_start IS NOT NULL AND state <> 'active' OR backend_xmin IS NOT NULL)`).Scan(&open)
	if err != nil || open > 0 {
		t.Fatalf("%d connections hold a snapshot while they listen (%v)", open, err)
	}
}

func TestListensAgainAfterACut(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	direct, proxy := pgtest.Pool(t, dsn), pgtest.NewProxy(t, dsn)
	l := listen(t, pgtest.Pool(t, proxy.DSN()), notifier.Config{})
	proxy.Cut()
	await(t, l.broken)
	await(t, l.connected)
	send(t, direct, "after")
	if got := await(t, l.hints); got != "after" {
		t.Fatalf("got %q", got)
	}
}

// A half-open connection: nothing comes, and nothing says that it is gone.
func TestNoticesAHalfOpenConnection(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	direct, proxy := pgtest.Pool(t, dsn), pgtest.NewProxy(t, dsn)
	l := listen(t, pgtest.Pool(t, proxy.DSN()), notifier.Config{Quiet: 10 * time.Millisecond, Patience: 200 * time.Millisecond})
	before := proxy.Served() // on a busy machine the first try may have been given up
	proxy.Pause()
	pgtest.Eventually(t, time.Minute, func() bool { return proxy.Served() > before }, "another connection to be tried")
	proxy.Resume()
	await(t, l.connected)
	send(t, direct, "after")
	if got := await(t, l.hints); got != "after" {
		t.Fatalf("got %q", got)
	}
}

func TestStopWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	proxy := pgtest.NewProxy(t, pgtest.Database(t))
	proxy.Down()
	n := notifier.New(pgtest.Pool(t, proxy.DSN()), notifier.Config{Channel: channel})
	for range 5 {
		n.Start(t.Context())
		n.Start(t.Context())
		n.Stop()
		n.Stop()
	}
}
