package schematest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema"
)

// DSN returns the address of a new database with Pelton's schema under its default name. It is dropped when the test ends.
func DSN(t testing.TB) string {
	t.Helper()
	return pgtest.FromTemplate(t, "pelton", func(ctx context.Context, dsn string) error {
		return schema.Up(ctx, dsn, schema.DefaultName)
	})
}

// Pool returns a pool on a new migrated database; it is closed when the test ends. The options change its configuration.
func Pool(t testing.TB, options ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, DSN(t), options...)
}
