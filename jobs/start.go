package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/jobs/internal/executor"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/grant"
)

// ErrNoQueues is returned by Start of a client without queues and without duties: there is nothing to start.
var ErrNoQueues = errors.New("nothing to start: no queues, and duties are off")

// Start starts working the queues and the duties, and returns once the client is registered. It refuses a schema of another
// version, and a database role that lacks rights. ctx's values reach the workers; its end stops nothing: call Stop. Starting twice does no harm.
func (c *Client) Start(ctx context.Context) error {
	if err := c.enter(ctx); err != nil {
		return fmt.Errorf("start client: %w", err)
	}
	defer c.leave()
	if c.running {
		return nil
	}
	if len(c.config.Queues) == 0 && c.config.DutiesOff {
		return ErrNoQueues
	}
	if err := schema.Check(ctx, c.pool, c.config.Schema); err != nil {
		return fmt.Errorf("start client: %w", err)
	}
	if err := c.checkRights(ctx); err != nil {
		return fmt.Errorf("start client: %w", err)
	}
	if len(c.config.Queues) > 0 {
		c.logs = joblog.NewWriter(c.pool, c.config.Schema, joblog.Config{Logger: c.log, Counted: c.config.Observer.Logged})
		c.logs.Start(ctx)
		if err := c.executor.Start(ctx); err != nil {
			c.logs.Stop()
			return fmt.Errorf("start client: %w", err)
		}
	}
	if c.duties != nil {
		c.duties.Start(ctx)
		c.dues.moves.Store(true)
	}
	if c.watch != nil {
		c.watch.Start(ctx)
	}
	if !c.config.PollOnly {
		c.notifier.Start(ctx)
	}
	c.running = true
	return nil
}

// checkRights refuses a role that could not do what a started client does: its duties would fail, and its jobs' results be lost.
func (c *Client) checkRights(ctx context.Context) error {
	var roles []grant.Role
	if len(c.config.Queues) > 0 {
		roles = append(roles, grant.Worker)
	}
	if !c.config.DutiesOff {
		roles = append(roles, grant.Scheduler)
	}
	return grant.Check(ctx, c.pool, c.config.Schema, c.pool.Config().ConnConfig.User, roles)
}

// Stop stops claiming, hands back what has not begun, at once and uncounted, and waits for running jobs until ctx ends; then it
// returns ctx's error, and the jobs still run: call Stop again to go on waiting, or StopAndCancel to end them.
func (c *Client) Stop(ctx context.Context) error { return c.stop(ctx, false) }

// StopAndCancel is Stop, and ends the contexts of running jobs, at once, also while another Stop waits. A job that returns an
// error then is handed back uncounted.
func (c *Client) StopAndCancel(ctx context.Context) error {
	c.executor.EndTasks()
	return c.stop(ctx, true)
}

// enter begins a start or a stop: one at a time. leave ends it.
func (c *Client) enter(ctx context.Context) error {
	select {
	case c.life <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) leave() { <-c.life }

func (c *Client) stop(ctx context.Context, hard bool) error {
	if err := c.enter(ctx); err != nil {
		return fmt.Errorf("stop client: another start or stop is under way: %w", err)
	}
	if !c.running {
		c.leave()
		return nil
	}
	if err := c.executor.Stop(ctx, hard); err != nil {
		c.leave()
		return fmt.Errorf("stop client: jobs still run: %w", err)
	}
	stopped := make(chan struct{})
	go func() { // whoever stops or starts next waits for it
		defer close(stopped)
		defer c.leave()
		c.stopRest()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop client: no job runs any more: %w", ctx.Err())
	}
}

// stopRest stops what goes on when the executor has stopped.
func (c *Client) stopRest() {
	c.notifier.Stop()
	if c.duties != nil {
		c.dues.moves.Store(false)
		c.duties.Stop()
	}
	if c.watch != nil {
		c.watch.Stop()
	}
	if c.logs != nil {
		c.logs.Stop()
	}
	c.running = false
}

// newExecutor makes the part that claims.
func (c *Client) newExecutor() *executor.Executor {
	slots := map[string]int{}
	for name, q := range c.config.Queues {
		slots[name] = q.MaxWorkers
	}
	var kinds []string
	if c.config.Workers != nil {
		kinds = c.config.Workers.Kinds()
	}
	return executor.New(c.store, executor.Config{
		Name:         c.config.ID,
		Queues:       slots,
		Kinds:        kinds,
		Heartbeat:    c.config.Heartbeat,
		PollInterval: c.config.PollInterval,
		AgeAfter:     c.config.AgeAfter,
		PollOnly:     c.config.PollOnly,
		NotifyOff:    c.config.NotifyOff,
		Runner:       newRunner(c),
		Marks:        floor.NewTracker(c.config.Schema, floor.Ready, func(n int) { c.belowMark(string(floor.Ready), n) }),
		Log:          c.log,
		OnClaim:      c.claimed,
		OnFinish: func(tasks []*executor.Task, refused map[*executor.Task]bool, took time.Duration) {
			c.hintRetries(tasks)
			c.onFinish(tasks, refused, took)
		},
		OnCancel: func() error { return rivertype.ErrJobCancelledRemotely },
		OnPause:  c.onPause,
		OnFlow:   c.HintFlows,
		TellDue:  c.tellDue,
		RetryAt: func(t *executor.Task) *time.Time {
			if w, ok := t.Note.(*work); ok {
				return w.retryAt()
			}
			return nil
		},
	})
}
