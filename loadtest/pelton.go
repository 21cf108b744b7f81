package loadtest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

// peltonEngine is Pelton with its defaults.
type peltonEngine struct{}

func (peltonEngine) name() string { return EnginePelton }

// prepare makes the partitions ahead too, as they are in a database that lives.
func (peltonEngine) prepare(ctx context.Context, dsn string) error {
	if err := schema.Up(ctx, dsn, schema.DefaultName); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer pool.Close()
	keeper, err := schema.NewKeeper(pool, schema.DefaultName, schema.KeeperConfig{})
	if err != nil {
		return err
	}
	if _, err := keeper.Maintain(ctx); err != nil {
		return fmt.Errorf("make partitions: %w", err)
	}
	return nil
}

func (peltonEngine) open(pool *pgxpool.Pool, options clientOptions) (client, error) {
	watch := &peltonWatch{}
	config := &jobs.Config{Logger: options.log, Observer: watch, DutiesOff: options.dutiesOff}
	if options.workers > 0 {
		config.Queues = map[string]jobs.QueueConfig{queueName: {MaxWorkers: options.workers}}
		config.Workers = jobs.NewWorkers()
		jobs.AddWorker(config.Workers, options.worker)
	}
	made, err := jobs.NewClient(pool, config)
	if err != nil {
		return nil, fmt.Errorf("pelton client: %w", err)
	}
	return &peltonClient{made, watch}, nil
}

func (peltonEngine) completedSQL() string {
	return "SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'completed'"
}

func (peltonEngine) booksSQL() string {
	return `SELECT (SELECT count(*) FROM pelton.job) AS jobs,
		(SELECT count(DISTINCT job_id) FROM pelton.job_attempt WHERE outcome = 'completed') AS completed,
		(SELECT count(*) FROM pelton.job_attempt) AS runs,
		(SELECT coalesce(sum(cardinality(job_ids)), 0) FROM pelton.job_ready)::bigint
			+ (SELECT count(*) FROM pelton.job_scheduled) + (SELECT count(*) FROM pelton.job_parked)
			+ (SELECT count(*) FROM pelton.job_lease) AS waiting`
}

func (peltonEngine) heartbeat(statement string) bool {
	return strings.Contains(statement, "executor SET beat")
}

type peltonClient struct {
	*jobs.Client

	watch *peltonWatch
}

func (c *peltonClient) insert(ctx context.Context, args noopArgs) error {
	_, err := c.Insert(ctx, args, nil)
	return err
}

func (c *peltonClient) insertTx(ctx context.Context, tx pgx.Tx, args noopArgs) error {
	_, err := c.InsertTx(ctx, tx, args, nil)
	return err
}

func (c *peltonClient) insertBulk(ctx context.Context, params []river.InsertManyParams) (int, error) {
	return c.InsertManyFast(ctx, params)
}

func (c *peltonClient) start(ctx context.Context) error { return c.Start(ctx) }
func (c *peltonClient) stop(ctx context.Context) error  { return c.Stop(ctx) }
func (c *peltonClient) fault() error                    { return c.watch.fault() }

// peltonWatch notices what must not happen.
type peltonWatch struct {
	jobs.NoObserver

	belowMark, other atomic.Int64
}

var _ jobs.Observer = (*peltonWatch)(nil)

// Finished implements jobs.Observer.
func (w *peltonWatch) Finished(runs []jobs.RunStats, _ time.Duration) {
	for i := range runs {
		if runs[i].Outcome != "completed" {
			w.other.Add(1)
		}
	}
}

// BelowMark implements jobs.Observer.
func (w *peltonWatch) BelowMark(_ string, n int) { w.belowMark.Add(int64(n)) }

func (w *peltonWatch) fault() error {
	if below, other := w.belowMark.Load(), w.other.Load(); below > 0 || other > 0 {
		return fmt.Errorf("%s: %d rows found below a mark, %d runs with another outcome than completed", EnginePelton, below, other)
	}
	return nil
}
