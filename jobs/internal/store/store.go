package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
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

// Session is what statements and transactions run on: a pool or a connection.
type Session interface {
	DB
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Store runs the queue's statements in one Postgres schema. Safe for concurrent use.
type Store struct {
	Pool   *pgxpool.Pool
	Schema string
	sql    *sqlfile.Set
	reads  atomic.Bool // this role may read jobs
}

// New makes a store for the named schema.
func New(pool *pgxpool.Pool, schema string) *Store {
	return &Store{Pool: pool, Schema: schema, sql: sqlfile.Load(files, "sql", schema)}
}

// Limits are the settings of one transaction. Zero values mean the defaults given.
type Limits struct {
	Lock      time.Duration // longest wait for one lock; defaults to 1 s
	Statement time.Duration // longest statement; defaults to 30 s
	NoSeqScan bool          // for reads of the moving tables' heads, whose statistics say nothing
}

// Tx runs fn in a READ COMMITTED transaction with the given limits and commits if it returns nil.
//
// A server that does not answer is given up a while after it should have timed out itself.
func (s *Store) Tx(ctx context.Context, limits Limits, fn func(tx pgx.Tx) error) error {
	return txOn(ctx, s.Pool, limits, fn)
}

func txOn(ctx context.Context, on Session, limits Limits, fn func(tx pgx.Tx) error) error {
	ctx, cancel := limits.patience(ctx)
	defer cancel()
	return pgx.BeginTxFunc(ctx, on, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if err := limits.apply(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// patience bounds the time that a step of one transaction waits for the server's answer, so that a connection whose other end
// is gone holds nobody up for as long as TCP does.
func (l Limits) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	statement := l.Statement
	if statement == 0 {
		statement = defaultStatement
	}
	return context.WithTimeoutCause(ctx, 2*statement+10*time.Second, errNoAnswer)
}

var errNoAnswer = errors.New("the server did not answer in time")

// defaultStatement is the longest statement where Limits do not say.
const defaultStatement = 30 * time.Second

// ReadCommitted runs fn in a READ COMMITTED transaction without limits but the session's, and commits if it returns nil.
func (s *Store) ReadCommitted(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, fn)
}

func (l Limits) apply(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, setLimits, l.args()...); err != nil {
		return fmt.Errorf("set limits of a transaction: %w", err)
	}
	return nil
}

// The last limit is of the time between two statements: a process that is stopped, or whose host is gone, keeps its locks no longer.
const setLimits = "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)," +
	" set_config('idle_in_transaction_session_timeout', '10s', true)," +
	" set_config('enable_seqscan', $3, true), set_config('enable_bitmapscan', $3, true)"

func (l Limits) args() []any {
	if l.Lock == 0 {
		l.Lock = time.Second
	}
	if l.Statement == 0 {
		l.Statement = defaultStatement
	}
	scan := "on"
	if l.NoSeqScan {
		scan = "off"
	}
	return []any{milliseconds(l.Lock), milliseconds(l.Statement), scan}
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}

// SQLState returns the SQLSTATE of a Postgres error, or "".
func SQLState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// RowFault tells whether an error is one row's, not the whole batch's: a value that cannot be stored (class 22), a constraint (23), a
// limit (54), or a trigger's refusal (P0).
func RowFault(err error) bool {
	code := SQLState(err)
	return len(code) == 5 && slices.Contains([]string{"22", "23", "54", "P0"}, code[:2])
}

// IDTaken tells of the error of an insert of jobs whether an id that was drawn is another job's. Unique keys are no such error.
func (s *Store) IDTaken(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == UniqueViolation && e.SchemaName == s.Schema
}

// SQLMessage is the message of a Postgres error without its code, or the error's own text.
func SQLMessage(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Message
	}
	return err.Error()
}

// SQLSTATEs that callers branch on.
const (
	UniqueViolation      = "23505"
	LockNotAvailable     = "55P03"
	SerializationFailure = "40001"
	DeadlockDetected     = "40P01"
)
