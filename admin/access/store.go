package access

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

//go:embed sql/*.sql
var files embed.FS

// What a Store refuses.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")

	// ErrLastAdmin keeps somebody who may change users.
	ErrLastAdmin = errors.New("this is the last admin of everything who is not disabled, and nobody could change users any more; make another first (user role NAME admin)")
)

// InputError is about a value that was given: a name, a role, a password.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }
func (e *InputError) Unwrap() error { return e.err }

func invalidf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// Config says for how long things hold. Zero values mean the defaults.
type Config struct {
	// Schema is the Postgres schema. Defaults to "pelton".
	Schema string

	// Idle is how long a session lives unused. Defaults to 12 hours.
	Idle time.Duration

	// Absolute is how long a session lives at most. Defaults to 7 days.
	Absolute time.Duration

	// LastAdmin lets the last admin of everything be disabled or lose the role, which is refused otherwise.
	LastAdmin bool
}

// Store keeps users, roles, tokens and sessions in one Postgres schema. Safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	config Config
	sql    *sqlfile.Set
	hasher *hasher
}

// NewStore makes a store on a pool, which stays the caller's.
func NewStore(pool *pgxpool.Pool, config Config) (*Store, error) {
	if config.Schema == "" {
		config.Schema = schema.DefaultName
	}
	if config.Idle == 0 {
		config.Idle = 12 * time.Hour
	}
	if config.Absolute == 0 {
		config.Absolute = 7 * 24 * time.Hour
	}
	if err := schema.CheckName(config.Schema); err != nil {
		return nil, err
	}
	return &Store{pool: pool, config: config, sql: sqlfile.Load(files, "sql", config.Schema), hasher: newHasher(usualCost)}, nil
}

// Known says who there is. Those who are disabled are somebody, but no admins.
type Known struct {
	Anyone      bool
	Admin       bool // of everything, with a password
	AdminByOIDC bool // of everything, by a provider only
}

// Known tells who there is.
func (s *Store) Known(ctx context.Context) (Known, error) {
	return one[Known](ctx, s, s.pool, "any_user")
}

// tx runs fn in a READ COMMITTED transaction that waits for a lock for at most a while, and commits if it returns nil.
func (s *Store) tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '10s'"); err != nil {
			return fmt.Errorf("set limits of a transaction: %w", err)
		}
		return fn(tx)
	})
}

// one reads one row into a struct by position; ErrNotFound if there is none.
func one[T any](ctx context.Context, s *Store, db sqlfile.DB, name string, args ...any) (T, error) {
	list, err := all[T](ctx, s, db, name, args...)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		var none T
		return none, err
	}
	return list[0], nil
}

// all reads rows into structs by position.
func all[T any](ctx context.Context, s *Store, db sqlfile.DB, name string, args ...any) ([]T, error) {
	return sqlfile.Rows(ctx, s.sql, db, pgx.RowToStructByPos[T], name, args...)
}

// exec runs a statement and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, db sqlfile.DB, name string, args ...any) (int64, error) {
	return sqlfile.Exec(ctx, s.sql, db, name, args...)
}

// audit records who changed what; by "": nobody knows who.
func (s *Store) audit(ctx context.Context, db sqlfile.DB, by, action, target string, before, after any) error {
	var actor *string
	if by != "" {
		actor = new(jobs.Audited(ctx, by))
	}
	_, err := s.exec(ctx, db, "audit", actor, action, target, encode(before), encode(after))
	return err
}

// encode makes JSON of what this package puts together itself.
func encode(v any) *string {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return new(string(b))
}

// fields are what an audit entry says of before or after.
type fields map[string]any
