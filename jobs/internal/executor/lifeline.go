package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// lifelinePatience bounds connecting and closing.
const lifelinePatience = 5 * time.Second

// lifeline is the heartbeat's own connection beside the caller's pool: workers that hold all connections of the pool must not
// make this process look dead. It connects as the pool does, when it is first needed and after a failure. If Postgres or a
// pooler has no room for one connection more, the heartbeat goes through the pool. For one goroutine at a time.
type lifeline struct {
	pool *pgxpool.Pool
	conn *pgx.Conn
}

// open returns the connection, or the pool if the server refuses one more connection.
func (l *lifeline) open(ctx context.Context) (store.Session, error) {
	if l.conn != nil && !l.conn.IsClosed() {
		return l.conn, nil
	}
	conn, err := l.connect(ctx)
	switch {
	case err == nil:
		l.conn = conn
		return conn, nil
	case ctx.Err() == nil && store.SQLState(err) != "":
		return l.pool, nil
	}
	return nil, err
}

func (l *lifeline) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, lifelinePatience)
	defer cancel()
	config := l.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, fmt.Errorf("prepare to connect: %w", err)
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if config.AfterConnect != nil {
		if err := config.AfterConnect(ctx, conn); err != nil {
			_ = conn.Close(ctx)
			return nil, fmt.Errorf("set up a connection: %w", err)
		}
	}
	return conn, nil
}

// close closes the connection, also when ctx has ended. The next open makes another.
func (l *lifeline) close(ctx context.Context) {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lifelinePatience)
	defer cancel()
	_ = l.conn.Close(ctx) // it may be broken; nothing depends on it
	l.conn = nil
}
