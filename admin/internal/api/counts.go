package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/peltonq/pelton/jobs"
)

const (
	// countsExact is how many jobs are counted for each request, however long it takes, and countsBriefly is how long counting more may take for that.
	countsExact   = 20_000
	countsBriefly = 20 * time.Millisecond
	// countsRest is how many times as long as it took a count serves at least, and countsStale how long it serves while a new one is made.
	countsRest  = 50
	countsStale = time.Minute
	// countsTimeout is how long counting in the background may take.
	countsTimeout = 30 * time.Second
)

// counts counts what waits and runs in the queues: for each request, or, of a line that is too long for that, in the background.
type counts struct {
	count  func(context.Context) ([]jobs.QueueCounts, error)
	ending context.Context //nolint:containedctx // its end is that of counting in the background
	log    *slog.Logger

	mu       sync.Mutex
	last     []jobs.QueueCounts
	at       time.Time
	took     time.Duration
	long     bool // the last count is to serve further requests
	counting bool // in the background
	running  sync.WaitGroup
}

// get is what was counted, and when.
func (c *counts) get(ctx context.Context) ([]jobs.QueueCounts, time.Time, error) {
	c.mu.Lock()
	last, at, age := c.last, c.at, time.Since(c.at)
	serves := c.long && age < countsStale
	if serves && !c.counting && c.ending.Err() == nil && age > countsRest*c.took {
		c.counting = true
		c.running.Go(c.inBackground)
	}
	c.mu.Unlock()
	if serves {
		return last, at, nil
	}
	return c.now(ctx)
}

func (c *counts) inBackground() {
	ctx, cancel := context.WithTimeout(c.ending, countsTimeout)
	defer cancel()
	_, _, err := c.now(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counting = false
	if err != nil && c.ending.Err() == nil {
		c.log.WarnContext(ctx, "api: what waits in the queues could not be counted", "error", err)
	}
}

func (c *counts) now(ctx context.Context) ([]jobs.QueueCounts, time.Time, error) {
	began := time.Now()
	counted, err := c.count(ctx)
	if err != nil {
		return nil, began, err
	}
	var all int64
	for _, queue := range counted {
		for _, n := range queue.States {
			all += n
		}
	}
	took := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	if began.After(c.at) {
		c.last, c.at, c.took, c.long = counted, began, took, all > countsExact && took > countsBriefly
	}
	return counted, began, nil
}
