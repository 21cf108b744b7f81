package executor

import (
	"context"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	shortPoll = 10 * time.Millisecond // between looks while writers are open, at first
	firstIdle = 100 * time.Millisecond
)

// rest waits until there may be work again. Without a listener it polls, ever less often.
//
// A ticket that commits is missed by neither side. Its writer takes the lock on job_ready, inserts, and then looks for sleepers,
// with a snapshot of its own; this queue commits its place on the sleepers' list, and then reads who holds that lock. Either
// the writer held it already: it is one of those that watch waits for, and whose ticket the look after their end sees. Or it took
// the lock later, so it looks later still, finds the sleeper, and its hint arrives. A claim that puts the rest of a ticket back
// hints at nothing; if it began before the list of writers was read, it is among them; if it began after, the look that
// follows finds the ticket, before or after it was split, or its writer sends a hint.
//
// What is left to the idle poll: a writer with a snapshot from before (REPEATABLE READ), one that the marker had passed before,
// and hints that are not sent because a client does without or the notification queue is filling up.
func (q *queue) rest(ctx context.Context) {
	if q.e.config.PollOnly {
		q.pollAlone(ctx)
		return
	}
	executor, lines := q.e.id.Load(), q.lines()
	if err := q.e.store.Sleep(ctx, executor, lines); err != nil {
		q.await(ctx, q.e.config.PollInterval)
		return
	}
	q.resting.Store(true)
	if !q.watch(ctx) {
		q.await(ctx, 0)
	}
	q.resting.Store(false)
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

// watch looks for work, and goes on as long as writers are open that were when it began. It tells whether there is work, or a
// hint came. When its looks are further apart than those of the idle poll, it leaves the rest to that.
func (q *queue) watch(ctx context.Context) bool {
	work, writers, err := q.e.store.LookAgain(ctx, q.plainHeads(), nil)
	for start := time.Now(); !work && err == nil && len(writers) > 0; {
		pause := watchPause(time.Since(start))
		if pause > q.e.config.PollInterval || ctx.Err() != nil {
			return false
		}
		if q.await(ctx, pause) {
			return true
		}
		work, writers, err = q.e.store.LookAgain(ctx, q.plainHeads(), writers)
	}
	return work && err == nil
}

// watchPause is the time between two looks at writers that have been watched for so long: short, and then a fiftieth of it.
func watchPause(watched time.Duration) time.Duration { return max(shortPoll, watched/50) }

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
