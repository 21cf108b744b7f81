package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/sqlfile"
)

//go:embed sql/*.sql
var files embed.FS

// DB is what a statement runs on: a pool, a connection or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Store runs the statements of schedules in one Postgres schema. Safe for concurrent use.
type Store struct {
	Pool   *pgxpool.Pool
	Schema string
	sql    *sqlfile.Set
}

// New makes a store for the named schema.
func New(pool *pgxpool.Pool, schema string) *Store {
	return &Store{Pool: pool, Schema: schema, sql: sqlfile.Load(files, "sql", schema)}
}

// Limits of one transaction.
type Limits struct {
	Lock time.Duration // longest wait for one lock
	Head bool          // it reads the head of schedule_due, whose statistics say nothing, and a few rows by their keys: no other plan will do
}

// Tx runs fn in a READ COMMITTED transaction and commits if it returns nil.
func (s *Store) Tx(ctx context.Context, limits Limits, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		scan := "on"
		if limits.Head {
			scan = "off"
		}
		lock := strconv.FormatInt(limits.Lock.Milliseconds(), 10)
		if _, err := tx.Exec(ctx, setLimits, lock, scan); err != nil {
			return fmt.Errorf("set limits of a transaction: %w", err)
		}
		return fn(tx)
	})
}

// A process that is stopped in its transaction, or whose host is gone, keeps its locks for ten seconds: then others fire what it held.
const setLimits = "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', '60s', true)," +
	" set_config('idle_in_transaction_session_timeout', '10s', true)," +
	" set_config('enable_seqscan', $2, true), set_config('enable_bitmapscan', $2, true)," +
	" set_config('enable_hashjoin', $2, true), set_config('enable_mergejoin', $2, true)"

// all reads rows into structs by position.
func all[T any](ctx context.Context, s *Store, db DB, name string, args ...any) ([]T, error) {
	return sqlfile.Rows(ctx, s.sql, db, pgx.RowToStructByPos[T], name, args...)
}

// exec runs a statement.
func (s *Store) exec(ctx context.Context, db DB, name string, args ...any) error {
	_, err := sqlfile.Exec(ctx, s.sql, db, name, args...)
	return err
}

// SQLState is the SQLSTATE of a Postgres error, or "".
func SQLState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// RowFault tells whether an error is of what was to be stored and would come again: a value (class 22), a constraint (23), a limit (54), or a
// trigger's refusal (P0).
func RowFault(err error) bool {
	code := SQLState(err)
	return len(code) == 5 && slices.Contains([]string{"22", "23", "54", "P0"}, code[:2])
}

// LockNotAvailable is the SQLSTATE of a lock that was waited for too long.
const LockNotAvailable = "55P03"
