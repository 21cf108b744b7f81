package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	begin  = "BEGIN ISOLATION LEVEL READ COMMITTED"
	commit = "COMMIT"
)

// rollbackTimeout bounds the clean-up after a failed pipeline.
const rollbackTimeout = 5 * time.Second

// pipeline runs statements as one READ COMMITTED transaction in one round trip. queue adds statements and says by their
// callbacks how results are read. An error may leave it open whether the transaction committed: see Unsure.
func (s *Store) pipeline(ctx context.Context, limits Limits, queue func(b *pgx.Batch)) error {
	ctx, cancel := limits.patience(ctx)
	defer cancel()
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire a connection: %w", err)
	}
	defer conn.Release()
	b := &pgx.Batch{}
	b.Queue(begin)
	b.Queue(setLimits, limits.args()...)
	queue(b)
	b.Queue(commit)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		s.rollBack(ctx, conn.Conn())
		return err
	}
	return nil
}

// exec runs one statement that changes rows. In READ COMMITTED, so that meeting somebody else at a row is a wait, not a failure.
func (s *Store) exec(ctx context.Context, name string, args ...any) error {
	return s.pipeline(ctx, Limits{}, func(b *pgx.Batch) { b.Queue(s.sql.Get(name), args...) })
}

// rollBack leaves the failed transaction, so that the connection can be used again. If it cannot, the pool drops it.
func (s *Store) rollBack(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = conn.Close(ctx) // the pool sees a closed connection and makes another
	}
}

// Unsure tells of an error whether the transaction may have committed all the same: the connection was lost, so the answer is
// unknown. Postgres' own errors mean that it did not.
func Unsure(err error) bool {
	return err != nil && SQLState(err) == "" && !errors.Is(err, pgx.ErrTxClosed)
}
