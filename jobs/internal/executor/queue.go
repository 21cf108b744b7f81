package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// kindLine separates queue and kind in the line of jobs whose kind some executors do not know.
const kindLine = "/kind="

// queueOf is the queue that a line belongs to.
func queueOf(line string) string {
	queue, _, _ := strings.Cut(line, kindLine)
	return queue
}

// queue claims from one queue's lines.
type queue struct {
	e     *Executor
	name  string
	slots *slots
	hint  chan struct{}

	paused    atomic.Bool
	resting   atomic.Bool
	kindLines atomic.Pointer[[]string] // lines of single kinds known to hold something

	claims    int     // so far, for the turns of lower priorities
	perTicket float64 // jobs per ticket, as the last claims found
}

// maxClaim is the most jobs of one claim.
const maxClaim = 1000

// firstTickets is how many tickets a claim locks while nothing is known of their size.
const firstTickets = 10

func newQueue(e *Executor, name string, size int) *queue {
	q := &queue{e: e, name: name, hint: make(chan struct{}, 1)}
	q.slots = newSlots(size, q.run)
	return q
}

// nudge ends the queue's rest.
func (q *queue) nudge() {
	select {
	case q.hint <- struct{}{}:
	default:
	}
}

// loop claims until ctx ends; then it hands back what no goroutine has begun.
func (q *queue) loop(ctx, working context.Context) {
	failures := 0
	for {
		n := min(maxClaim, q.slots.wait(ctx))
		if ctx.Err() != nil {
			break
		}
		if q.paused.Load() {
			q.await(ctx, q.e.config.PollInterval)
			continue
		}
		got, err := q.claim(ctx, working, n)
		switch {
		case err != nil && ctx.Err() == nil:
			failures++
			q.e.log.WarnContext(ctx, "claim", "queue", q.name, "error", err)
			service.Sleep(ctx, backoff(failures))
		case got == 0 && err == nil:
			failures = 0
			q.rest(ctx)
		default:
			failures = 0
		}
	}
	q.handBack(q.slots.unstarted())
}

// backoff grows from 50 ms to 5 s.
func backoff(failures int) time.Duration {
	return min(5*time.Second, 50*time.Millisecond<<min(failures-1, 10))
}

// close waits for the running tasks.
func (q *queue) close() { q.slots.close() }

// claim takes up to n jobs and starts them. It returns how many it took, also those that were not started.
func (q *queue) claim(ctx, working context.Context, n int) (int, error) {
	start := time.Now()
	tickets := q.tickets(n)
	executor := q.e.id.Load()
	first := q.e.leases.ask(executor, tickets)
	claimed, err := q.e.store.Claim(context.WithoutCancel(ctx), store.ClaimParams{
		Executor: executor, FirstLease: first, Heads: q.heads(), Tickets: tickets, Jobs: n,
	})
	taken, jobs := map[int64]int{}, 0
	for i := range claimed {
		taken[claimed[i].Lease] = len(claimed[i].JobIDs)
		jobs += len(claimed[i].JobIDs)
	}
	q.e.leases.settle(executor, first, tickets, taken)
	if err != nil {
		return 0, err
	}
	q.e.claims.Add(int64(jobs))
	q.e.config.OnClaim(q.name, jobs, time.Since(start))
	if jobs == 0 {
		return 0, nil
	}
	q.learn(len(claimed), jobs)
	tasks, err := q.read(working, executor, claimed, jobs)
	if err != nil {
		return jobs, err
	}
	q.e.tasks.add(tasks)
	// Taken for dead meanwhile: the reaper puts these runs back, or finds them handed back. The key decides which.
	if stopping(ctx) || q.e.id.Load() != executor {
		q.handBack(tasks)
	} else {
		q.slots.start(working, tasks)
	}
	return jobs, nil
}

func stopping(ctx context.Context) bool { return ctx.Err() != nil }

// tickets is how many tickets probably hold n jobs.
func (q *queue) tickets(n int) int {
	if q.perTicket == 0 {
		return min(n, firstTickets)
	}
	return min(n, int(float64(n)/q.perTicket)+2)
}

func (q *queue) learn(tickets, jobs int) {
	now := float64(jobs) / float64(tickets)
	if q.perTicket == 0 {
		q.perTicket = now
	}
	q.perTicket = 0.7*q.perTicket + 0.3*now
}

// heads lists where to claim, first to last. Every eighth claim lets one of the lower priorities go first, in turn, with those
// of its tickets that have waited long.
func (q *queue) heads() []store.Head {
	q.claims++
	order := []int16{1, 2, 3, 4}
	age := 0.0
	if q.claims%8 == 0 {
		first := int16(2 + q.claims/8%3)
		order = slices.Insert(slices.DeleteFunc(order, func(p int16) bool { return p == first }), 0, first)
		age = q.e.config.AgeAfter.Seconds()
	}
	lines := q.lines()
	heads := make([]store.Head, 0, len(order)*len(lines))
	for i, priority := range order {
		for _, line := range lines {
			h := store.Head{Line: line, Priority: priority, Mark: q.e.config.Marks.Mark(line, priority)}
			if i == 0 {
				h.Age = age
			}
			heads = append(heads, h)
		}
	}
	return heads
}

// lines are the queue's own line and those of kinds that it knows.
func (q *queue) lines() []string {
	return append([]string{q.name}, q.knownKindLines()...)
}

// run has a task worked and passes the result on.
func (q *queue) run(ctx context.Context, t *Task) {
	defer q.e.finish.add(t)
	q.e.config.Runner.Run(ctx, t)
}

// handBack ends unstarted tasks uncounted; they go back into their lines at once.
func (q *queue) handBack(tasks []*Task) {
	for _, t := range tasks {
		t.Result = returned(t)
		q.e.finish.add(t)
	}
}

func missingJob(t *Task) string {
	return fmt.Sprintf("job %d has no row in job: its partition was dropped or the row deleted while run %d waited", t.ID, t.Run)
}
