package flow

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

const (
	lookLive     = 5 * time.Second       // between two looks while runs are live and no hint comes
	lookIdle     = time.Minute           // while none is
	lookMissed   = 5 * time.Second       // between two searches for jobs that ended without a report
	lookFired    = 25 * time.Millisecond // while somebody else turns timers that are due into reports
	firedBatch   = 200
	waitingBatch = 2000 // reports in a page of those that wait
	reportBatch  = 5000
	stepNodes    = 5000 // that a step changes, before it gives way to other runs
	mostAtOnce   = 4    // runs that an engine advances at a time
)

// engine advances runs: it applies what reports say, run by run, under the run's lock. Any number of engines may work at once. One
// goroutine looks for runs that have something to do, and hands each to one of a few others.
type engine struct {
	c      *Client
	loop   *service.Service
	hint   chan struct{}
	memory *memory
	hands  *hands
	head   *head
	sweeps *service.Service

	stepNodes int

	live   bool      // a run was, at the last thorough look
	looked time.Time // thoroughly
	missed time.Time // the last search
}

func newEngine(c *Client) *engine {
	e := &engine{c: c, hint: make(chan struct{}, 1), memory: newMemory(memoryBytes), stepNodes: stepNodes}
	e.hands = newHands(atOnce(c.pool.Config().MaxConns))
	e.head = newHead(c)
	e.loop, e.sweeps = service.New(e.run), service.New(newSweeper(c).run)
	return e
}

// atOnce is how many runs are advanced at a time. Each takes a connection, and half of the pool is left to others.
func atOnce(connections int32) int { return max(1, min(mostAtOnce, int(connections)/2)) }

// Start begins to advance runs, unless SchedulerOff. It does not block.
func (c *Client) Start(ctx context.Context) {
	if c.config.SchedulerOff {
		return
	}
	c.jobs.OnFlowReport(c.engine.nudge)
	c.engine.head.marking.Start(ctx)
	c.engine.sweeps.Start(ctx)
	c.engine.loop.Start(ctx)
}

// Stop ends that and waits for the step under way.
func (c *Client) Stop() {
	if c.config.SchedulerOff {
		return
	}
	c.jobs.OnFlowReport(nil)
	c.engine.loop.Stop()
	c.engine.sweeps.Stop()
	c.engine.head.marking.Stop()
}

// nudge ends the engine's rest.
func (e *engine) nudge() {
	select {
	case e.hint <- struct{}{}:
	default:
	}
}

func (e *engine) run(ctx context.Context) {
	defer e.hands.wait()
	for ctx.Err() == nil {
		wait, err := e.look(ctx)
		if ctx.Err() == nil {
			e.c.config.StepObserver.DutyStepped(dutyAdvance, wait, err)
		}
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

// look hands out what there is to do and returns when to look again. While nothing is to do it is one statement.
func (e *engine) look(ctx context.Context) (time.Duration, error) {
	thorough := !e.live || time.Since(e.looked) > lookLive
	seen, err := e.c.store.Look(ctx, e.head.Floor(), thorough)
	if err != nil {
		return 0, err
	}
	if thorough {
		e.live, e.looked = seen.Live, time.Now()
	}
	if err := e.head.keep(ctx, seen.Newest); err != nil {
		return 0, err
	}
	fired := int64(0)
	if seen.Next == 0 {
		if fired, err = e.c.store.FireTimers(ctx, firedBatch); err != nil {
			return 0, err
		}
	}
	if seen.Waiting || fired > 0 {
		if err := e.handOut(ctx); err != nil {
			return 0, err
		}
	}
	if seen.Live && time.Since(e.missed) > lookMissed {
		if err := e.findMissed(ctx); err != nil {
			return 0, err
		}
	}
	if seen.Next == 0 && fired == 0 {
		return lookFired, nil
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
	if left, some := e.hands.next(); some {
		wait = min(wait, left)
	}
	return wait
}

// handOut has every run advanced that something waits for, but for those that are being advanced: whoever is at one looks again when it
// is through. It waits while as many runs are being advanced as may be.
func (e *engine) handOut(ctx context.Context) error {
	for from := e.head.Floor(); ; {
		runs, next, err := e.c.store.Waiting(ctx, from, waitingBatch)
		if err != nil {
			return err
		}
		for _, id := range runs {
			if !e.hands.do(ctx, id, func() { e.work(ctx, id) }) {
				return nil
			}
		}
		if next == 0 {
			return nil
		}
		from = next
	}
}

// work advances a run by a step, and has the engine look again if there may be more to do.
func (e *engine) work(ctx context.Context, id int64) {
	moved, err := e.advanceOne(ctx, id)
	switch {
	case err == nil:
		e.hands.succeeded(id)
	case ctx.Err() != nil:
		e.hands.release(id)
	default:
		times := e.hands.failed(id)
		e.c.log.WarnContext(ctx, "a run cannot be advanced; trying again", "run", id, "times", times, "error", err)
	}
	if moved || err != nil {
		e.nudge()
	}
}

// advanceOne is advance for a run that must not stop the others, whatever is wrong with it: a panic is an error.
func (e *engine) advanceOne(ctx context.Context, id int64) (moved bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.memory.forget(id)
			moved, err = false, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return e.advance(ctx, id)
}

// findMissed reports jobs that ended without a report, and cancels once more those that are to be killed.
func (e *engine) findMissed(ctx context.Context) error {
	e.missed = time.Now()
	ids, err := e.c.store.Killing(ctx)
	if err != nil {
		return err
	}
	e.cancel(ctx, ids)
	n, err := e.c.store.ReportMissed(ctx, e.head.Floor())
	if n > 0 {
		e.nudge()
	}
	return err
}

// cancel cancels jobs; what fails here is repeated by findMissed.
func (e *engine) cancel(ctx context.Context, ids []int64) {
	if err := e.c.jobs.JobCancelMany(ctx, ids); err != nil && ctx.Err() == nil {
		e.c.log.WarnContext(ctx, "cancel the jobs of nodes; trying again", "jobs", len(ids), "error", err)
	}
}

// firstLook and lastLook are the shortest and the longest time between two looks at a run that somebody waits for.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = 500 * time.Millisecond
)
