package periodic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic/internal/store"
	"github.com/peltonq/pelton/schema/grant"
)

// Config of a client. The zero value is a client with all defaults.
type Config struct {
	// Logger defaults to slog.Default().
	Logger *slog.Logger

	// SchedulerOff has Start fire no schedules: others do.
	SchedulerOff bool

	// Owner names the service whose code declares schedules. Required for that.
	Owner string

	// Observer is told of ticks and of the firer, for metrics. May be nil.
	Observer Observer

	// Schedules are those that the service's code declares. Start keeps the database in step with them.
	Schedules []*Declared

	look   time.Duration // the longest time between two looks; 0: fireLook
	putOff time.Duration // what could not be fired is put off by, doubled with every failure in a row; 0: putOffBy
}

// Client stores schedules and operates on them, and while started fires them. Safe for concurrent use.
type Client struct {
	config Config
	jobs   *jobs.Client
	flows  *flow.Client // nil: flows are refused
	store  *store.Store
	log    *slog.Logger
	coded  map[string]*coded // what this process's code declares, by owner/name
	known  *cache
	firer  *firer

	backfiller *backfiller
}

// NewClient makes a client on a jobs client, one of flows, and their pool. flows may be nil: ticks that would run a flow fail then.
func NewClient(pool *pgxpool.Pool, queue *jobs.Client, flows *flow.Client, config *Config) (*Client, error) {
	if pool == nil || queue == nil {
		return nil, errors.New("new client of schedules: pool or jobs client is nil")
	}
	c := &Client{jobs: queue, flows: flows, store: store.New(pool, queue.Schema()), known: newCache(), coded: map[string]*coded{}}
	if config != nil {
		c.config = *config
	}
	if c.config.Logger == nil {
		c.config.Logger = slog.Default()
	}
	if c.config.Observer == nil {
		c.config.Observer = noObserver{}
	}
	c.config.look, c.config.putOff = cmp.Or(c.config.look, fireLook), cmp.Or(c.config.putOff, putOffBy)
	c.log = c.config.Logger
	if err := c.declare(); err != nil {
		return nil, fmt.Errorf("new client of schedules: %w", err)
	}
	c.firer, c.backfiller = newFirer(c), newBackfiller(c)
	return c, nil
}

// Start begins to fire schedules, unless SchedulerOff. ctx's values are kept; its end stops nothing: call Stop. Starting twice does no harm.
func (c *Client) Start(ctx context.Context) error {
	if err := c.checkRights(ctx); err != nil {
		return fmt.Errorf("start client of schedules: %w", err)
	}
	if err := c.sync(ctx); err != nil {
		return err
	}
	if c.config.SchedulerOff {
		return nil
	}
	c.jobs.OnScheduleHint(func() {
		c.firer.nudge()
		c.backfiller.nudge()
	})
	c.firer.start(ctx)
	c.backfiller.loop.Start(ctx)
	return nil
}

// checkRights refuses a role that could not fire schedules.
func (c *Client) checkRights(ctx context.Context) error {
	if c.config.SchedulerOff {
		return nil
	}
	return grant.Check(ctx, c.store.Pool, c.store.Schema, c.store.Pool.Config().ConnConfig.User, []grant.Role{grant.Scheduler}, grant.Schedules)
}

// Stop ends that and waits for the transaction under way.
func (c *Client) Stop() {
	if c.config.SchedulerOff {
		return
	}
	c.jobs.OnScheduleHint(nil)
	c.backfiller.loop.Stop()
	c.firer.stop()
}

// hint tells firers, after a commit, that a schedule is due sooner than before.
func (c *Client) hint(ctx context.Context) {
	if err := c.jobs.HintSchedules(ctx); err != nil {
		c.log.DebugContext(ctx, "no hint for schedules; schedulers look by themselves", "error", err)
	}
}
