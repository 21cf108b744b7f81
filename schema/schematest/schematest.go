package schematest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema"
)

// DSN returns the address of a new database with Pelton's schema under its default name. It is dropped when the test ends.
func DSN(t testing.TB) string {
	t.Helper()
	return pgtest.FromTemplate(t, "pelton", func(ctx context.Context, dsn string) error {
		if err := schema.Up(ctx, dsn, schema.DefaultName); err != nil {
			return err
		}
		// A copy may be made long after the migrations ran, and nobody is to do duties there: none is late.
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return fmt.Errorf("connect to the template: %w", err)
		}
		_, err = conn.Exec(ctx, `UPDATE pelton.duty SET due_at = clock_timestamp() + interval '1 day'`)
		return errors.Join(err, conn.Close(ctx))
	})
}

// Pool returns a pool on a new migrated database; it is closed when the test ends. The options change its configuration.
func Pool(t testing.TB, options ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, DSN(t), options...)
}
