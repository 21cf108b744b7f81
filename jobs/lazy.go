package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/peltonq/pelton/jobs/joblog"
)

// lazyContext is context.WithCancelCause, with a timeout if it is to have one, that is made when somebody first asks whether it
// ended: a short job never asks, and contexts are the dearest part of running it.
type lazyContext struct {
	context.Context //nolint:containedctx // it is one: its parent

	timeout  time.Duration // 0: none
	deadline time.Time

	mu    sync.Mutex
	real  context.Context //nolint:containedctx // what it is once somebody asks
	stop  context.CancelCauseFunc
	over  bool
	cause error // why it is over
}

// limit gives the context a timeout that counts from now. Only before anybody asks.
func (c *lazyContext) limit(now time.Time, timeout time.Duration) {
	c.timeout, c.deadline = timeout, now.Add(timeout)
}

// made returns the real context.
func (c *lazyContext) made() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real == nil {
		ctx, stop := context.WithCancelCause(c.Context)
		c.real, c.stop = ctx, stop
		if c.timeout > 0 {
			limited, free := context.WithDeadlineCause(ctx, c.deadline, timeoutError(c.timeout))
			c.real, c.stop = limited, func(cause error) { stop(cause); free() }
		}
		if c.over {
			c.stop(c.cause)
		}
	}
	return c.real
}

// End ends the context. The first cause counts; nil means context.Canceled.
func (c *lazyContext) End(cause error) {
	c.mu.Lock()
	if !c.over {
		c.over, c.cause = true, cause
	}
	stop := c.stop
	c.mu.Unlock()
	if stop != nil { // without the lock: children look at their parents
		stop(cause)
	}
}

// Deadline implements context.Context.
func (c *lazyContext) Deadline() (time.Time, bool) {
	before, ok := c.Context.Deadline()
	if c.timeout == 0 || ok && before.Before(c.deadline) {
		return before, ok
	}
	return c.deadline, true
}

// Done implements context.Context.
func (c *lazyContext) Done() <-chan struct{} { return c.made().Done() }

// Err implements context.Context.
func (c *lazyContext) Err() error { return c.made().Err() }

// Value implements context.Context. Whatever is not Pelton's own may be package context asking for the real one.
func (c *lazyContext) Value(key any) any {
	if key == (workKey{}) || joblog.IsContextKey(key) {
		return c.Context.Value(key)
	}
	return c.made().Value(key)
}
