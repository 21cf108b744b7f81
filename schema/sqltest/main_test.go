package sqltest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/peltonq/pelton/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

// queryer is a pool, a connection or a transaction.
type queryer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// value returns the one value a query gives.
func value[T any](t *testing.T, db queryer, sql string, args ...any) T {
	t.Helper()
	all := values[T](t, db, sql, args...)
	if len(all) != 1 {
		t.Fatalf("%d rows, want 1, from: %s", len(all), sql)
	}
	return all[0]
}

// values returns the first column of a query.
func values[T any](t *testing.T, db queryer, sql string, args ...any) []T {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%v, from: %s", err, sql)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v T, err error) {
		targets := make([]any, len(row.FieldDescriptions()))
		targets[0] = &v
		return v, row.Scan(targets...)
	})
	if err != nil {
		t.Fatalf("%v, from: %s", err, sql)
	}
	return all
}

func exec(t *testing.T, db queryer, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%v, from: %s", err, sql)
	}
}

// refusal returns the error that Postgres gave, and fails if it gave none.
func refusal(t *testing.T, err error) *pgconn.PgError {
	t.Helper()
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		t.Fatalf("error is %v, want one of Postgres", err)
	}
	return refused
}
