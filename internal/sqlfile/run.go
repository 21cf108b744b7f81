package sqlfile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DB is what a statement runs on: a pool, a connection or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Rows runs a statement of a set and reads what it answers, each row by a function such as pgx.RowToStructByPos. An error begins with the statement's name.
func Rows[T any](ctx context.Context, s *Set, db DB, row pgx.RowToFunc[T], name string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, s.Get(name), args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	list, err := pgx.CollectRows(rows, row)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// Exec runs a statement of a set and returns how many rows it changed. An error begins with the statement's name.
func Exec(ctx context.Context, s *Set, db DB, name string, args ...any) (int64, error) {
	tag, err := db.Exec(ctx, s.Get(name), args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return tag.RowsAffected(), nil
}

// AtMost is the argument of a LIMIT: at most so many rows; 0: NULL, all of them.
func AtMost(limit int) *int {
	if limit == 0 {
		return nil
	}
	return &limit
}
