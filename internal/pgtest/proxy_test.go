package pgtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
)

// through returns a proxy, a session through it, and a pool past it, on a database with an empty table "thing".
func through(t *testing.T) (*pgtest.Proxy, *pgx.Conn, *pgxpool.Pool) {
	t.Helper()
	dsn := pgtest.Database(t)
	direct := pgtest.Pool(t, dsn)
	if _, err := direct.Exec(t.Context(), "CREATE TABLE thing (id int)"); err != nil {
		t.Fatal(err)
	}
	proxy := pgtest.NewProxy(t, dsn)
	return proxy, connect(t, proxy), direct
}

func connect(t *testing.T, proxy *pgtest.Proxy) *pgx.Conn {
	t.Helper()
	session, err := pgx.Connect(t.Context(), proxy.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(context.Background()) })
	return session
}

func things(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	return value[int](t, pool, "SELECT count(*)::int FROM thing")
}

// insert adds a row in a transaction and returns the error of the commit.
func insert(t *testing.T, session *pgx.Conn) error {
	t.Helper()
	tx, err := session.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "INSERT INTO thing VALUES ($1)", 1); err != nil {
		t.Fatal(err)
	}
	return tx.Commit(t.Context())
}

func await(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(time.Minute):
		t.Fatal("the trap was not sprung")
	}
}

func TestProxyPassesEverythingOn(t *testing.T) {
	t.Parallel()
	_, session, direct := through(t)
	if err := insert(t, session); err != nil {
		t.Fatal(err)
	}
	rows := make([][]any, 20_000)
	for i := range rows {
		rows[i] = []any{i}
	}
	if _, err := session.CopyFrom(t.Context(), pgx.Identifier{"thing"}, []string{"id"}, pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}
	var batch pgx.Batch
	for range 100 {
		batch.Queue("INSERT INTO thing SELECT $1 WHERE length($2) > 0", 2, strings.Repeat("text", 25_000))
	}
	if err := session.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	if n := things(t, direct); n != 1+20_000+100 {
		t.Errorf("%d rows", n)
	}
}

func TestAnswerToCommitLost(t *testing.T) {
	t.Parallel()
	proxy, session, direct := through(t)
	cut := proxy.CutAfterSend(pgtest.SQL("commit"))
	if err := insert(t, session); err == nil {
		t.Fatal("the commit was answered")
	}
	await(t, cut)
	if n := things(t, direct); n != 1 {
		t.Errorf("%d rows: the server did not commit before the cut", n)
	}
	if err := insert(t, connect(t, proxy)); err != nil {
		t.Errorf("the next connection: %v", err)
	}
}

func TestNothingOfALostAnswerArrives(t *testing.T) {
	t.Parallel()
	proxy, session, direct := through(t)
	cut := proxy.CutAfterSend(pgtest.SQL("returning"))
	results := session.PgConn().Exec(t.Context(), "INSERT INTO thing SELECT generate_series(1, 20000) RETURNING id")
	for results.NextResult() {
		if results.ResultReader().NextRow() {
			t.Error("a row arrived")
		}
	}
	if err := results.Close(); err == nil {
		t.Error("the statement was answered")
	}
	await(t, cut)
	if n := things(t, direct); n != 20_000 {
		t.Errorf("%d rows: the server did not carry it out before the cut", n)
	}
}

func TestCommitLost(t *testing.T) {
	t.Parallel()
	proxy, session, direct := through(t)
	cut := proxy.CutBeforeSend(pgtest.SQL("commit"))
	if err := insert(t, session); err == nil {
		t.Fatal("the commit was answered")
	}
	await(t, cut)
	if n := things(t, direct); n != 0 {
		t.Errorf("%d rows: the commit arrived", n)
	}
}

func TestAnswerToPipelineLost(t *testing.T) {
	t.Parallel()
	proxy, session, direct := through(t)
	cut := proxy.CutAfterSend(pgtest.SQL("insert into thing"))
	var batch pgx.Batch
	batch.Queue("SELECT 1")
	batch.Queue("INSERT INTO thing VALUES ($1)", 1)
	batch.Queue("INSERT INTO thing SELECT $1::int + 1", 1)
	if err := session.SendBatch(t.Context(), &batch).Close(); err == nil {
		t.Fatal("the batch was answered")
	}
	await(t, cut)
	// The first of pgx's round trips prepares, and that is the one whose answer is lost: nothing may have run.
	if n := things(t, direct); n != 0 {
		t.Errorf("%d rows", n)
	}
	session = connect(t, proxy)
	cut = proxy.CutAfterSend(pgtest.Any("E"))
	if _, err := session.Exec(t.Context(), "INSERT INTO thing VALUES ($1)", 1); err == nil {
		t.Fatal("the statement was answered")
	}
	await(t, cut)
	if n := things(t, direct); n != 1 {
		t.Errorf("%d rows: the server did not carry it out before the cut", n)
	}
}

func TestAnswerToCopyLost(t *testing.T) {
	t.Parallel()
	proxy, session, direct := through(t)
	cut := proxy.CutAfterSend(pgtest.Any("c"))
	rows := pgx.CopyFromRows([][]any{{1}, {2}, {3}})
	if _, err := session.CopyFrom(t.Context(), pgx.Identifier{"thing"}, []string{"id"}, rows); err == nil {
		t.Fatal("the copy was answered")
	}
	await(t, cut)
	if n := things(t, direct); n != 3 {
		t.Errorf("%d rows: the server did not carry it out before the cut", n)
	}
}

func TestCutBreaksAndServesAgain(t *testing.T) {
	t.Parallel()
	proxy, session, _ := through(t)
	proxy.Cut()
	if err := session.Ping(t.Context()); err == nil {
		t.Error("the connection survived")
	}
	pgtest.Eventually(t, time.Minute, func() bool { return proxy.Connections() == 0 }, "no connection")
	if err := connect(t, proxy).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDownRefuses(t *testing.T) {
	t.Parallel()
	proxy, _, _ := through(t)
	proxy.Down()
	if session, err := pgx.Connect(t.Context(), proxy.DSN()); err == nil {
		_ = session.Close(t.Context())
		t.Error("connected while down")
	}
	proxy.Up()
	connect(t, proxy)
}

func TestPauseHoldsTraffic(t *testing.T) {
	t.Parallel()
	proxy, session, _ := through(t)
	proxy.Pause()
	answered := make(chan error, 1)
	go func() { answered <- session.Ping(t.Context()) }()
	select {
	case err := <-answered:
		t.Fatalf("answered while paused: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	proxy.Resume()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestProxyTellsHowTheServerEndedASession(t *testing.T) {
	t.Parallel()
	_, session, direct := through(t)
	if _, err := direct.Exec(t.Context(), "SELECT pg_terminate_backend($1)", session.PgConn().PID()); err != nil {
		t.Fatal(err)
	}
	var ended *pgconn.PgError
	if err := session.Ping(t.Context()); !errors.As(err, &ended) || ended.Code != "57P01" {
		t.Errorf("got %v, not the server's word", err)
	}
}
