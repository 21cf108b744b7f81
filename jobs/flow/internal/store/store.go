package store

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/sqlfile"
)

//go:embed sql/*.sql
var files embed.FS

// ErrNotFound says that there is no such project, version, flow or run.
var ErrNotFound = errors.New("not found")

// DB is what a statement runs on: a pool, a connection or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Store runs the statements of flows in one Postgres schema. Safe for concurrent use.
type Store struct {
	Pool   *pgxpool.Pool
	Schema string
	sql    *sqlfile.Set
}

// New makes a store for the named schema.
func New(pool *pgxpool.Pool, schema string) *Store {
	return &Store{Pool: pool, Schema: schema, sql: sqlfile.Load(files, "sql", schema)}
}

// Tx runs fn in a READ COMMITTED transaction that waits for a lock for at most a while, and commits if it returns nil. A process that is stopped in
// it, or whose host is gone, keeps its locks for ten seconds: then others advance its run.
func (s *Store) Tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '10s'"); err != nil {
			return fmt.Errorf("set limits of a transaction: %w", err)
		}
		return fn(tx)
	})
}

// one reads one row into a struct by position; ErrNotFound if there is none.
func one[T any](ctx context.Context, s *Store, db DB, name string, args ...any) (T, error) {
	rows, err := db.Query(ctx, s.sql.Get(name), args...)
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", name, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[T])
	if errors.Is(err, pgx.ErrNoRows) {
		return v, ErrNotFound
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// all reads rows into structs by position.
func all[T any](ctx context.Context, s *Store, db DB, name string, args ...any) ([]T, error) {
	return sqlfile.Rows(ctx, s.sql, db, pgx.RowToStructByPos[T], name, args...)
}

// column reads rows of one column.
func column[T any](ctx context.Context, s *Store, db DB, name string, args ...any) ([]T, error) {
	return sqlfile.Rows(ctx, s.sql, db, pgx.RowTo[T], name, args...)
}

// exec runs a statement and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, db DB, name string, args ...any) (int64, error) {
	return sqlfile.Exec(ctx, s.sql, db, name, args...)
}
