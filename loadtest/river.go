package loadtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverEngine is River at its best settings for this load.
type riverEngine struct{}

func (riverEngine) name() string { return EngineRiver }

func (riverEngine) prepare(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return fmt.Errorf("river's migrator: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate river: %w", err)
	}
	return nil
}

func (riverEngine) open(pool *pgxpool.Pool, options clientOptions) (client, error) {
	config := &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            options.log,
	}
	if options.workers > 0 {
		config.Queues = map[string]river.QueueConfig{queueName: {MaxWorkers: options.workers}}
		config.Workers = river.NewWorkers()
		river.AddWorker(config.Workers, options.worker)
	}
	made, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return nil, fmt.Errorf("river client: %w", err)
	}
	return &riverClient{made}, nil
}

func (riverEngine) completedSQL() string {
	return "SELECT count(*) FROM river_job WHERE state = 'completed'"
}

func (riverEngine) booksSQL() string {
	return `SELECT count(*) AS jobs, count(*) FILTER (WHERE state = 'completed') AS completed,
		coalesce(sum(attempt), 0)::bigint AS runs,
		count(*) FILTER (WHERE state NOT IN ('completed', 'cancelled', 'discarded')) AS waiting
		FROM river_job`
}

func (riverEngine) heartbeat(statement string) bool {
	return strings.Contains(statement, "river_leader") || strings.Contains(statement, "river_queue")
}

type riverClient struct{ *river.Client[pgx.Tx] }

func (c *riverClient) insert(ctx context.Context, args noopArgs) error {
	_, err := c.Insert(ctx, args, nil)
	return err
}

func (c *riverClient) insertTx(ctx context.Context, tx pgx.Tx, args noopArgs) error {
	_, err := c.InsertTx(ctx, tx, args, nil)
	return err
}

func (c *riverClient) insertBulk(ctx context.Context, params []river.InsertManyParams) (int, error) {
	return c.InsertManyFast(ctx, params)
}

func (c *riverClient) start(ctx context.Context) error { return c.Start(ctx) }

func (c *riverClient) stop(ctx context.Context) error {
	err := c.Stop(ctx)
	if ctx.Err() != nil {
		return errors.Join(err, c.StopAndCancel(context.WithoutCancel(ctx)))
	}
	return err
}

func (c *riverClient) fault() error { return nil }
