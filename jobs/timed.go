package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/peltonq/pelton/jobs/joblog"
)

// timedContext is context.WithTimeoutCause that makes its timer and channel when they are first asked for: a short job never
// asks, and a context with a timer is the dearest part of running it.
type timedContext struct {
	context.Context //nolint:containedctx // it is one: its parent

	timeout  time.Duration
	deadline time.Time

	mu     sync.Mutex
	real   context.Context //nolint:containedctx // what it is once somebody asks
	cancel context.CancelFunc
	over   bool
}

func newTimedContext(parent context.Context, timeout time.Duration) *timedContext {
	return &timedContext{Context: parent, timeout: timeout, deadline: time.Now().Add(timeout)}
}

// made returns the real context.
func (c *timedContext) made() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real == nil {
		c.real, c.cancel = context.WithDeadlineCause(c.Context, c.deadline, timeoutError(c.timeout))
		if c.over {
			c.cancel()
		}
	}
	return c.real
}

// stop ends the context.
func (c *timedContext) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.cancel != nil {
		c.cancel()
	}
}

// Deadline implements context.Context.
func (c *timedContext) Deadline() (time.Time, bool) {
	if before, ok := c.Context.Deadline(); ok && before.Before(c.deadline) {
		return before, true
	}
	return c.deadline, true
}

// Done implements context.Context.
func (c *timedContext) Done() <-chan struct{} { return c.made().Done() }

// Err implements context.Context.
func (c *timedContext) Err() error { return c.made().Err() }

// Value implements context.Context. Whatever is not Pelton's own may be package context asking for the real one.
func (c *timedContext) Value(key any) any {
	if key == (workKey{}) || joblog.IsContextKey(key) {
		return c.Context.Value(key)
	}
	return c.made().Value(key)
}
