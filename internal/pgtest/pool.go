package pgtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool returns a connection pool that is closed when the test ends. The options change its configuration, for example
//
//	pool := pgtest.Pool(t, dsn, func(c *pgxpool.Config) { c.MaxConns = 20 })
//
// It fails the test when a connection is still taken a minute after the end.
func Pool(t testing.TB, dsn string, options ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatalf("pgtest: pool: %v", err)
	}
	for _, option := range options {
		option(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("pgtest: pool: %v", err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			pool.Close()
		}()
		patience := time.NewTimer(time.Minute)
		defer patience.Stop()
		select {
		case <-closed:
		case <-patience.C:
			t.Errorf("pgtest: %d connections of the pool are still taken at the end of the test", pool.Stat().AcquiredConns())
		}
	})
	return pool
}
