package executor

import (
	"context"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	shortPoll    = 10 * time.Millisecond // between looks while writers are open
	shortPolling = 2 * time.Second       // at most for so long
	firstIdle    = 100 * time.Millisecond
)

// rest waits until there may be work again. Without a listener it polls, ever less often.
func (q *queue) rest(ctx context.Context) {
	if q.e.config.PollOnly {
		q.pollAlone(ctx)
		return
	}
	if q.pollWhileWriting(ctx) {
		return
	}
	executor, lines := q.e.id.Load(), q.lines()
	if err := q.e.store.Sleep(ctx, executor, lines); err != nil {
		q.await(ctx, q.e.config.PollInterval)
		return
	}
	// Once more: whoever committed before this queue was on the list sent no hint.
	if !q.pollWhileWriting(ctx) {
		q.resting.Store(true)
		q.await(ctx, 0)
		q.resting.Store(false)
	}
	q.awake(ctx, executor, lines)
}

// awake takes the queue off the sleepers' list, also when the executor is being stopped.
func (q *queue) awake(ctx context.Context, executor int64, lines []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := q.e.store.Awake(ctx, executor, lines); err != nil {
		q.e.log.DebugContext(ctx, "sleeper stays on the list until it is swept", "queue", q.name, "error", err)
	}
}

// pollWhileWriting looks, and goes on looking for a while as long as transactions are open that may commit a ticket: they may
// have looked for sleepers before this queue was on the list. It tells whether there is work.
func (q *queue) pollWhileWriting(ctx context.Context) bool {
	for start := time.Now(); ; {
		work, writers, err := q.e.store.LookAgain(ctx, q.plainHeads())
		if err != nil || ctx.Err() != nil {
			return false
		}
		if work {
			return true
		}
		if !writers || time.Since(start) > shortPolling {
			return false
		}
		if q.await(ctx, shortPoll) {
			return true
		}
	}
}

// await waits for a hint, for d if it is not 0, or for ctx's end. It tells whether a hint came.
func (q *queue) await(ctx context.Context, d time.Duration) bool {
	var late <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(service.Jitter(d))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-q.hint:
		return true
	case <-late:
	case <-ctx.Done():
	}
	return false
}

// pollAlone looks at growing intervals until there is work.
func (q *queue) pollAlone(ctx context.Context) {
	for pause := firstIdle; ctx.Err() == nil; pause = min(2*pause, q.e.config.PollInterval) {
		if q.await(ctx, pause) {
			return
		}
		if found, err := q.e.lookLines(ctx, q.plainHeads); err == nil && len(found) > 0 {
			return
		}
	}
}

// plainHeads are all heads of the queue in plain order.
func (q *queue) plainHeads() []store.Head {
	var heads []store.Head
	for _, line := range q.lines() {
		for priority := int16(1); priority <= 4; priority++ {
			heads = append(heads, store.Head{Line: line, Priority: priority, Mark: q.e.config.Marks.Mark(line, priority)})
		}
	}
	return heads
}

const (
	busyRefresh = 300 * time.Millisecond // between looks at the marks while claims find work
	netInterval = time.Minute            // between looks below the marks
)

// poll looks for all resting queues together, keeps the marks, and looks below them now and then.
func (e *Executor) poll(ctx context.Context) {
	var polled, below time.Time
	claimed := e.claims.Load()
	for service.Sleep(ctx, min(busyRefresh, e.config.PollInterval)) {
		now := time.Now()
		busy := e.claims.Load() != claimed
		claimed = e.claims.Load()
		idle := now.Sub(polled) >= e.config.PollInterval
		if !busy && !idle {
			continue
		}
		if busy {
			if err := e.config.Marks.Refresh(ctx, e.store.Pool); err != nil {
				e.log.DebugContext(ctx, "marks stay where they are", "error", err)
				continue
			}
		}
		if idle {
			polled = now
			e.pollResting(ctx)
		}
		if now.Sub(below) >= netInterval {
			below = now
			if _, err := e.config.Marks.CheckBelow(ctx, e.store.Pool); err != nil {
				e.log.DebugContext(ctx, "look below the marks", "error", err)
			}
		}
	}
}

func (e *Executor) pollResting(ctx context.Context) {
	lines, err := e.lookLines(ctx, func() []store.Head {
		var heads []store.Head
		for _, q := range e.queues {
			if q.resting.Load() && !q.paused.Load() {
				heads = append(heads, q.plainHeads()...)
			}
		}
		return heads
	})
	if err != nil {
		e.log.DebugContext(ctx, "poll", "error", err)
		e.WakeAll() // the claim loops back off and report
		return
	}
	for _, line := range lines {
		e.Wake(line)
	}
}

// lookLines looks which of the heads' lines hold a ticket, and once more if the marks were out of date. One statement, when they
// were not.
func (e *Executor) lookLines(ctx context.Context, heads func() []store.Head) ([]string, error) {
	asked := heads()
	if len(asked) == 0 {
		return nil, nil
	}
	lines, newest, err := e.store.LookLines(ctx, asked)
	if err != nil || newest == e.config.Marks.Newest() {
		return lines, err
	}
	if err := e.config.Marks.Refresh(ctx, e.store.Pool); err != nil {
		return nil, err
	}
	lines, _, err = e.store.LookLines(ctx, heads())
	return lines, err
}
