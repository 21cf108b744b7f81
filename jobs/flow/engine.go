package flow

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

const (
	lookLive     = 5 * time.Second  // between two looks while runs are live and no hint comes
	lookIdle     = time.Minute      // while none is
	lookMissed   = 5 * time.Second  // between two searches for jobs that ended without a report
	sweepEvery   = 10 * time.Minute // between two sweeps of old runs, versions and contents
	sweepBatch   = 100
	waitingBatch = 200
	reportBatch  = 5000
	cachedNodes  = 300_000 // of runs kept in memory
)

// engine advances runs: it applies what reports say, run by run, under the run's lock. Any number of engines may work at once. One
// goroutine owns it.
type engine struct {
	c    *Client
	loop *service.Service
	hint chan struct{}

	runs     map[int64]*loaded    // kept in memory; each is checked against its row's step before it is used
	failures map[int64]*postponed // runs that could not be advanced
	missed   time.Time            // the last search
	swept    time.Time
}

// postponed is a run that could not be advanced.
type postponed struct {
	times int
	until time.Time
}

func newEngine(c *Client) *engine {
	e := &engine{c: c, hint: make(chan struct{}, 1), runs: map[int64]*loaded{}, failures: map[int64]*postponed{}}
	e.loop = service.New(e.run)
	return e
}

// Start begins to advance runs, unless SchedulerOff. It does not block.
func (c *Client) Start(ctx context.Context) {
	if c.config.SchedulerOff {
		return
	}
	c.jobs.OnFlowReport(c.engine.nudge)
	c.engine.loop.Start(ctx)
}

// Stop ends that and waits for the step under way.
func (c *Client) Stop() {
	if c.config.SchedulerOff {
		return
	}
	c.jobs.OnFlowReport(nil)
	c.engine.loop.Stop()
}

// nudge ends the engine's rest.
func (e *engine) nudge() {
	select {
	case e.hint <- struct{}{}:
	default:
	}
}

func (e *engine) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait, err := e.look(ctx)
		if err != nil && ctx.Err() == nil {
			e.c.log.WarnContext(ctx, "advance flows; trying again", "error", err)
			wait = time.Second
		}
		timer := time.NewTimer(service.Jitter(wait))
		select {
		case <-ctx.Done():
		case <-e.hint:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// look does all that there is to do and returns when to look again. While nothing is to do it is one statement.
func (e *engine) look(ctx context.Context) (time.Duration, error) {
	seen, err := e.c.store.Look(ctx)
	if err != nil {
		return 0, err
	}
	for again := seen.Waiting || seen.Next == 0; again && ctx.Err() == nil; again = seen.Next == 0 {
		if seen.Next == 0 {
			if _, err := e.c.store.FireTimers(ctx, waitingBatch); err != nil {
				return 0, err
			}
		}
		if err := e.advanceAll(ctx); err != nil {
			return 0, err
		}
		if seen, err = e.c.store.Look(ctx); err != nil {
			return 0, err
		}
	}
	if seen.Live && time.Since(e.missed) > lookMissed {
		if err := e.findMissed(ctx); err != nil {
			return 0, err
		}
	}
	if time.Since(e.swept) > sweepEvery {
		if err := e.sweep(ctx); err != nil {
			return 0, err
		}
	}
	return e.rest(seen), nil
}

// rest is how long to wait for a hint.
func (e *engine) rest(seen store.Seen) time.Duration {
	wait := lookIdle
	if seen.Live {
		wait = lookLive
	}
	if seen.Next >= 0 {
		wait = min(wait, time.Duration(seen.Next*float64(time.Second)))
	}
	for id, p := range e.failures {
		if left := time.Until(p.until); left > 0 {
			wait = min(wait, left)
		} else { // somebody else has advanced it, or it would have been tried
			delete(e.failures, id)
		}
	}
	return wait
}

// advanceAll advances every run that something waits for, until nothing does.
func (e *engine) advanceAll(ctx context.Context) error {
	after, again := int64(math.MinInt64), false
	for ctx.Err() == nil {
		ids, err := e.c.store.Waiting(ctx, after, waitingBatch)
		if err != nil {
			return err
		}
		for _, id := range ids {
			after = id
			if p := e.failures[id]; p != nil && time.Now().Before(p.until) {
				continue
			}
			moved, err := e.advance(ctx, id)
			if err != nil {
				e.postpone(ctx, id, err)
				continue
			}
			delete(e.failures, id)
			again = again || moved
		}
		if len(ids) < waitingBatch {
			if !again {
				break
			}
			after, again = math.MinInt64, false
		}
	}
	e.forget()
	return nil
}

// postpone puts a run off that could not be advanced, so that it holds up no other.
func (e *engine) postpone(ctx context.Context, id int64, err error) {
	if ctx.Err() != nil {
		return
	}
	p := e.failures[id]
	if p == nil {
		p = &postponed{}
		e.failures[id] = p
	}
	p.times++
	p.until = time.Now().Add(min(time.Minute, 100*time.Millisecond<<min(p.times, 10)))
	e.c.log.WarnContext(ctx, "a run cannot be advanced; trying again", "run", id, "times", p.times, "error", err)
}

// forget drops from memory the runs that were not used for longest when there are too many nodes, and all that have ended.
func (e *engine) forget() {
	total := 0
	for id, l := range e.runs {
		if l.ended {
			delete(e.runs, id)
			continue
		}
		total += len(l.rows)
	}
	for total > cachedNodes {
		var oldest int64
		for id, l := range e.runs {
			if o := e.runs[oldest]; o == nil || l.used.Before(o.used) {
				oldest = id
			}
		}
		total -= len(e.runs[oldest].rows)
		delete(e.runs, oldest)
	}
}

// findMissed reports jobs that ended without a report, and cancels once more those that are to be killed.
func (e *engine) findMissed(ctx context.Context) error {
	e.missed = time.Now()
	ids, err := e.c.store.Killing(ctx)
	if err != nil {
		return err
	}
	e.cancel(ctx, ids)
	n, err := e.c.store.ReportMissed(ctx)
	if err != nil || n == 0 {
		return err
	}
	return e.advanceAll(ctx)
}

// cancel cancels jobs; what fails here is repeated by findMissed.
func (e *engine) cancel(ctx context.Context, ids []int64) {
	for _, id := range ids {
		if _, err := e.c.jobs.JobCancel(ctx, id); err != nil && !errors.Is(err, ErrNotFound) && ctx.Err() == nil {
			e.c.log.WarnContext(ctx, "cancel the job of a node; trying again", "job_id", id, "error", err)
		}
	}
}

func (e *engine) sweep(ctx context.Context) error {
	e.swept = time.Now()
	for {
		runs, versions, contents, err := e.c.store.Sweep(ctx, e.c.config.Retention, e.c.config.KeepVersions, sweepBatch)
		if err != nil || runs < sweepBatch && versions < sweepBatch && contents < sweepBatch {
			return err
		}
	}
}

// firstLook and lastLook are the shortest and the longest time between two looks at a run that somebody waits for.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = 500 * time.Millisecond
)
