package once

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/sqlfile"
)

//go:embed sql/*.sql
var files embed.FS

// Errors of Do.
var (
	ErrInUse  = errors.New("the first request with this key is still under way")
	ErrReused = errors.New("the key was used for another request")

	// errLost says that the row of a key has gone while it was looked at.
	errLost = errors.New("the answer under this key was just deleted: try again")
)

// Store keeps the answers.
type Store struct {
	pool *pgxpool.Pool
	sql  *sqlfile.Set
}

// New makes a store of a database schema.
func New(pool *pgxpool.Pool, schema string) *Store {
	return &Store{pool: pool, sql: sqlfile.Load(files, "sql", schema)}
}

// Do runs fn in a transaction; with a key once. To a further request of the actor's with that key that asks the same, the answer is that of the first,
// replayed. request is what is asked: the name of the operation, and all that says what is to be done; it must encode to JSON. An empty key does nothing
// once. ErrReused if the key was used to ask for something else; ErrInUse if the first request has not ended after five seconds.
func Do[T any](
	ctx context.Context, s *Store, actor, key string, request []any, fn func(ctx context.Context, tx pgx.Tx) (T, error),
) (answer T, replayed bool, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) (err error) {
		if key == "" {
			answer, err = fn(ctx, tx)
			return err
		}
		hash := hashOf(request)
		taken, err := sqlfile.Exec(ctx, s.sql, tx, "take_key", actor, key, hash)
		if Locked(err) {
			return ErrInUse
		}
		if err != nil {
			return err
		}
		if replayed = taken == 0; replayed {
			return s.stored(ctx, tx, actor, key, hash, &answer)
		}
		if answer, err = fn(ctx, tx); err != nil {
			return err
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		_, err = sqlfile.Exec(ctx, s.sql, tx, "keep_answer", actor, key, string(text))
		return err
	})
	if err != nil {
		var none T
		return none, false, err
	}
	return answer, replayed, nil
}

// stored reads the answer under a key, if it is to the same request.
func (s *Store) stored(ctx context.Context, tx pgx.Tx, actor, key string, hash []byte, into any) error {
	type row struct {
		Hash   []byte
		Answer string
	}
	rows, err := sqlfile.Rows(ctx, s.sql, tx, pgx.RowToStructByPos[row], "read_answer", actor, key)
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return errLost
	case !bytes.Equal(rows[0].Hash, hash):
		return ErrReused
	}
	return json.Unmarshal([]byte(rows[0].Answer), into)
}

func hashOf(request []any) []byte {
	text, err := json.Marshal(request)
	if err != nil {
		panic(err) // it was read from JSON, or from a form
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// tx runs fn in a transaction that waits for a lock for at most a while.
func (s *Store) tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '60s'"); err != nil {
			return fmt.Errorf("set limits of a transaction: %w", err)
		}
		return fn(tx)
	})
}

// Locked tells whether a lock was waited for too long.
func Locked(err error) bool {
	said, is := errors.AsType[*pgconn.PgError](err)
	return is && said.Code == "55P03"
}
