package jobs

import (
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/notifier"
	"github.com/peltonq/pelton/jobs/internal/duty"
	"github.com/peltonq/pelton/jobs/internal/executor"
	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Client enqueues jobs, operates on them, and, if it has queues, works them. Safe for concurrent use.
type Client struct {
	config *Config
	pool   *pgxpool.Pool
	store  *store.Store
	log    *slog.Logger

	plugins  *plugins
	events   events
	observes bool // the observer is the user's
	logs     *joblog.Writer
	executor *executor.Executor
	notifier *notifier.Notifier
	duties   *duty.Set  // nil: others do them
	watch    *dutyWatch // nil: it does them itself

	dues      dueHints
	flows     hook
	schedules hook
	life      chan struct{} // holds one while starting and stopping
	running   bool
}

// NewClient makes a client on a pool that stays the caller's: it must outlive the client. Nothing is read from the database yet.
func NewClient(pool *pgxpool.Pool, config *Config) (*Client, error) {
	if pool == nil {
		return nil, fmt.Errorf("new client: pool is nil")
	}
	if config == nil {
		config = &Config{}
	}
	c := config.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	plugins, err := newPlugins(c)
	if err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	client := &Client{config: c, pool: pool, store: store.New(pool, c.Schema), log: c.Logger, plugins: plugins}
	client.life = make(chan struct{}, 1)
	_, deaf := c.Observer.(NoObserver)
	client.observes = !deaf
	client.executor = client.newExecutor()
	client.notifier = client.newNotifier()
	if c.DutiesOff {
		client.watch = newDutyWatch(client)
	} else {
		client.duties = client.newDuties()
	}
	return client, nil
}

// ID names this client in attempts and executors.
func (c *Client) ID() string { return c.config.ID }

// Schema is the Postgres schema this client works in.
func (c *Client) Schema() string { return c.config.Schema }
