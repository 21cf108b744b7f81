package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/sqlfile"
)

// Keyed is the key of requests that are to be done once.
type Keyed struct {
	Key string `header:"Idempotency-Key" maxLength:"200" pattern:"^[!-~]+$" doc:"done once: for 24 hours, a request of yours with the same key does nothing and gets the same answer"`
}

// once is the output of what is done once.
type once[T any] struct {
	Replayed string `header:"Idempotent-Replayed" doc:"true: nothing was done, this is the answer to the first request with this key"`
	Body     T
}

// errLost says that the row of a key has gone while it was looked at.
var errLost = errors.New("the answer under this key was just deleted: try again")

// doOnce runs fn in a transaction. Under a key it does so once: its answer is stored in the same transaction, and is the answer to every
// further request with that key that asks the same, also to one that comes meanwhile. request is what is asked: the operation's id, and all
// of the input that says what is to be done.
func doOnce[T any](ctx context.Context, s *server, key string, request []any, fn func(ctx context.Context, tx pgx.Tx) (T, error)) (*once[T], error) {
	out := &once[T]{}
	err := s.tx(ctx, func(tx pgx.Tx) (err error) {
		if key == "" {
			out.Body, err = fn(ctx, tx)
			return err
		}
		actor, _ := access.FromContext(ctx)
		hash := hashOf(request)
		taken, err := sqlfile.Exec(ctx, s.sql, tx, "take_key", actor.Name, key, hash)
		if locked(err) {
			p := newProblem("key-in-use", "the first request with the key %q is still under way: ask again", key)
			p.header("Retry-After", "1")
			return p
		}
		if err != nil {
			return err
		}
		if taken == 0 {
			out.Replayed = "true"
			return s.stored(ctx, tx, actor.Name, key, hash, &out.Body)
		}
		if out.Body, err = fn(ctx, tx); err != nil {
			return err
		}
		text, err := json.Marshal(out.Body)
		if err != nil {
			return err
		}
		_, err = sqlfile.Exec(ctx, s.sql, tx, "keep_answer", actor.Name, key, string(text))
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// stored reads the answer under a key, if it is to the same request.
func (s *server) stored(ctx context.Context, tx pgx.Tx, actor, key string, hash []byte, into any) error {
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
		return newProblem("key-reused", "the Idempotency-Key %q was used for another request: take a new one", key)
	}
	return json.Unmarshal([]byte(rows[0].Answer), into)
}

func hashOf(request []any) []byte {
	text, err := json.Marshal(request)
	if err != nil {
		panic(err) // it was read from JSON
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// tx runs fn in a transaction that waits for a lock for at most a while.
func (s *server) tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '60s'"); err != nil {
			return fmt.Errorf("set limits of a transaction: %w", err)
		}
		return fn(tx)
	})
}

// locked tells whether a lock was waited for too long.
func locked(err error) bool {
	said, is := errors.AsType[*pgconn.PgError](err)
	return is && said.Code == "55P03"
}
