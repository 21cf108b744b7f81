package page

import (
	"context"
	"errors"
	"sync"
	"time"
)

// cache keeps what was read, by its key, for some time, and longer if the reading took long ([restAfter]). Of those who ask for the same, one reads and
// the others wait for it; who asks for something else does not.
type cache[V any] struct {
	keep time.Duration // at least

	mu      sync.Mutex
	entries map[string]*cached[V]
}

// cached is something that was read, or is being read.
type cached[V any] struct {
	done  chan struct{} // closed when the rest is set
	value V
	err   error
	until time.Time
}

// get returns what is kept, or else what read returns. A failure is not kept, but told to all who waited. The reading goes on when ctx ends, since others
// may wait for it: read must limit itself.
func (c *cache[V]) get(ctx context.Context, key string, read func(context.Context) (V, error)) (V, error) {
	e, mine := c.entry(key)
	if mine {
		defer close(e.done)
		began := time.Now()
		e.err = errors.New("the reading broke off") // if it panics
		e.value, e.err = read(context.WithoutCancel(ctx))
		e.until = time.Now().Add(max(c.keep, restAfter(time.Since(began))))
		return e.value, e.err
	}
	select {
	case <-e.done:
		return e.value, e.err
	case <-ctx.Done():
		var none V
		return none, context.Cause(ctx)
	}
}

// entry is what is there for a key; mine: it is new, and the caller's to fill.
func (c *cache[V]) entry(key string) (e *cached[V], mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[key]; e != nil && !e.over() {
		return e, false
	}
	if c.entries == nil {
		c.entries = map[string]*cached[V]{}
	}
	e = &cached[V]{done: make(chan struct{})}
	c.entries[key] = e
	return e, true
}

// over tells whether it is to be read anew.
func (e *cached[V]) over() bool {
	select {
	case <-e.done:
		return e.err != nil || time.Now().After(e.until)
	default:
		return false
	}
}
