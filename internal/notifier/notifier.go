package notifier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/service"
)

// Config says how to listen. Zero fields mean the defaults.
type Config struct {
	Channel string // required
	Log     *slog.Logger

	// Hint is called with each payload, Connected after each connection, Broken when one is lost (not when the notifier stops), all on
	// the notifier's goroutine: they must be quick.
	Hint      func(payload string)
	Connected func()
	Broken    func()

	// Quiet is how long nothing may arrive before the connection is pinged. Defaults to 20 s.
	Quiet time.Duration

	// Patience is how long connecting, LISTEN and a ping may take. Defaults to 10 s.
	Patience time.Duration
}

// Bounds of the pause between two tries to connect.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// Notifier listens while it is started.
type Notifier struct {
	*service.Service
	pool   *pgxpool.Pool
	config Config
}

// New makes a notifier that connects as the pool does, without taking a connection from it.
func New(pool *pgxpool.Pool, config Config) *Notifier {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Quiet == 0 {
		config.Quiet = 20 * time.Second
	}
	if config.Patience == 0 {
		config.Patience = 10 * time.Second
	}
	n := &Notifier{pool: pool, config: config}
	n.Service = service.New(n.run)
	return n
}

func (n *Notifier) run(ctx context.Context) {
	pause, failing := firstPause, false
	for {
		connected := false
		err := n.listen(ctx, func() {
			connected = true
			if failing {
				n.config.Log.InfoContext(ctx, "hints arrive again", "channel", n.config.Channel)
			}
			pause, failing = firstPause, false
		})
		if ctx.Err() != nil {
			return
		}
		if connected && n.config.Broken != nil {
			n.config.Broken()
		}
		if !failing {
			n.config.Log.WarnContext(ctx, "no hints arrive, polling goes on; connecting again", "channel", n.config.Channel, "error", err)
			failing = true
		}
		if !service.Sleep(ctx, pause) {
			return
		}
		pause = min(maxPause, 2*pause)
	}
}

// listen connects and passes hints on until the connection breaks or ctx ends.
func (n *Notifier) listen(ctx context.Context, connected func()) error {
	conn, err := n.connect(ctx)
	if err != nil {
		return err
	}
	defer n.close(ctx, conn)
	connected()
	if n.config.Connected != nil {
		n.config.Connected()
	}
	for {
		payload, err := n.wait(ctx, conn)
		switch {
		case errors.Is(err, errQuiet):
			if err := n.ping(ctx, conn); err != nil {
				return fmt.Errorf("ping after %v of silence: %w", n.config.Quiet, err)
			}
		case err != nil:
			return fmt.Errorf("wait for hints: %w", err)
		case n.config.Hint != nil:
			n.config.Hint(payload)
		}
	}
}

// connect makes a connection that listens.
func (n *Notifier) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, n.config.Patience)
	defer cancel()
	config := n.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, fmt.Errorf("prepare to connect: %w", err)
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{n.config.Channel}.Sanitize()); err != nil {
		n.close(ctx, conn)
		return nil, fmt.Errorf("listen on %q: %w", n.config.Channel, err)
	}
	return conn, nil
}

// errQuiet says that nothing has arrived for a while.
var errQuiet = errors.New("quiet")

// wait waits for a hint, or returns errQuiet after a time of silence.
func (n *Notifier) wait(ctx context.Context, conn *pgx.Conn) (string, error) {
	quiet, cancel := context.WithTimeout(ctx, n.config.Quiet)
	defer cancel()
	got, err := conn.WaitForNotification(quiet)
	if err == nil {
		return got.Payload, nil
	}
	if ctx.Err() == nil && quiet.Err() != nil && !conn.IsClosed() {
		return "", errQuiet
	}
	return "", err
}

func (n *Notifier) ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Patience)
	defer cancel()
	return conn.Ping(ctx)
}

// close closes the connection, also when ctx has ended.
func (n *Notifier) close(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it may be broken; nothing depends on it
}
