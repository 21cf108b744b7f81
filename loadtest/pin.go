package loadtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// pin is a stranger's transaction that stays open while the engines work.
type pin struct {
	conn *pgx.Conn
	tx   pgx.Tx
}

// openPin opens a repeatable-read transaction with a snapshot: nothing that is deleted from now on can be vacuumed.
func openPin(ctx context.Context, dsn string) (*pin, error) {
	p, err := beginPin(ctx, dsn, pgx.RepeatableRead)
	if err != nil {
		return nil, err
	}
	if _, err := p.tx.Exec(ctx, "SELECT count(*) FROM pg_class"); err != nil {
		return nil, errors.Join(fmt.Errorf("pin: %w", err), p.close(ctx))
	}
	return p, nil
}

// openPinWriter opens a transaction that has enqueued a job in the engine's own way. The job is never committed.
func openPinWriter(ctx context.Context, dsn string, c client) (*pin, error) {
	p, err := beginPin(ctx, dsn, pgx.ReadCommitted)
	if err != nil {
		return nil, err
	}
	if err := c.insertTx(ctx, p.tx, noopArgs{Number: -1, Customer: "pin"}); err != nil {
		return nil, errors.Join(fmt.Errorf("pin: %w", err), p.close(ctx))
	}
	return p, nil
}

func beginPin(ctx context.Context, dsn string, level pgx.TxIsoLevel) (*pin, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("pin: %w", err)
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pin: %w", err), conn.Close(ctx))
	}
	return &pin{conn: conn, tx: tx}, nil
}

// close rolls back, also after ctx has ended. An error means that the transaction had not stayed open.
func (p *pin) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := errors.Join(p.tx.Rollback(ctx), p.conn.Close(ctx))
	if err != nil {
		return fmt.Errorf("pin: %w", err)
	}
	return nil
}
