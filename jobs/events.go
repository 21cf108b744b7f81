package jobs

import (
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/executor"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// eventBuffer is how many events wait for a slow subscriber before further ones are dropped.
const eventBuffer = 1000

// events hands events to subscribers. A subscriber that does not keep up misses events; nothing waits for it.
type events struct {
	mu   sync.RWMutex
	next int
	subs map[int]subscriber
}

type subscriber struct {
	kinds map[river.EventKind]bool
	out   chan *river.Event
}

// Subscribe returns events of the given kinds for jobs that this client works, until cancel is called. Up to 1,000 events
// wait; what does not fit is dropped.
func (c *Client) Subscribe(kinds ...river.EventKind) (out <-chan *river.Event, cancel func()) {
	return c.events.subscribe(kinds)
}

func (e *events) subscribe(kinds []river.EventKind) (<-chan *river.Event, func()) {
	s := subscriber{kinds: map[river.EventKind]bool{}, out: make(chan *river.Event, eventBuffer)}
	for _, k := range kinds {
		s.kinds[k] = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.subs == nil {
		e.subs = map[int]subscriber{}
	}
	e.next++
	id := e.next
	e.subs[id] = s
	return s.out, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if _, ok := e.subs[id]; ok {
			delete(e.subs, id)
			close(s.out)
		}
	}
}

func (e *events) wanted() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return len(e.subs) > 0
}

func (e *events) send(event *river.Event) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, s := range e.subs {
		if s.kinds[event.Kind] {
			select {
			case s.out <- event:
			default:
			}
		}
	}
}

// onFinish turns recorded results into events and statistics.
func (c *Client) onFinish(tasks []*executor.Task, refused map[*executor.Task]bool, took time.Duration) {
	if c.observes {
		stats := make([]RunStats, 0, len(tasks))
		for _, t := range tasks {
			stats = append(stats, runStats(t, refused[t]))
		}
		c.config.Observer.Finished(stats, took)
	}
	if !c.events.wanted() {
		return
	}
	for _, t := range tasks {
		if w, ok := t.Note.(*work); ok && !refused[t] {
			c.events.send(w.event(took))
		}
	}
}

func runStats(t *executor.Task, refused bool) RunStats {
	s := RunStats{
		Queue: t.Job.Queue, Kind: t.Job.Kind, Outcome: string(t.Result.Outcome), Number: t.Run, Metadata: t.Job.Metadata,
	}
	if refused {
		s.Outcome = string(OutcomeRefused)
	}
	if t.Result.StartedAt != nil {
		s.Started, s.Wait, s.Run = t.StartedAt, t.StartedAt.Sub(t.EnteredAt), t.Result.EndedAt.Sub(t.StartedAt)
	}
	return s
}

// eventKinds are the events of outcomes; all others are failures.
var eventKinds = map[state.Outcome]river.EventKind{
	state.Completed: river.EventKindJobCompleted,
	state.Cancelled: river.EventKindJobCancelled,
	state.Snoozed:   river.EventKindJobSnoozed,
	state.Returned:  river.EventKindJobInterrupted,
}

// event is what subscribers see of an ended run.
func (w *work) event(took time.Duration) *river.Event {
	r, row := &w.task.Result, *w.row
	row.State, row.ScheduledAt = r.Outcome.State(), w.row.ScheduledAt
	kind, special := eventKinds[r.Outcome]
	if !special {
		kind = river.EventKindJobFailed
	}
	switch {
	case r.Outcome.Final():
		row.FinalizedAt = &r.EndedAt
	case r.Due == nil:
		row.State = rivertype.JobStateAvailable
	case r.Outcome == state.Snoozed:
		row.State, row.ScheduledAt = rivertype.JobStateScheduled, *r.Due
	default:
		row.State, row.ScheduledAt = rivertype.JobStateRetryable, *r.Due
	}
	row.Attempt = int(r.Attempt)
	if r.Error != "" {
		row.Errors = append(slices.Clip(row.Errors),
			rivertype.AttemptError{At: r.EndedAt, Attempt: int(r.Attempt), Error: r.Error, Trace: r.Trace})
	}
	if r.Metadata != nil || r.Output != nil {
		row.Metadata = mergedMetadata(w.task.Job, append(slices.Clip(w.task.Earlier), store.Attempt{Output: r.Output, Metadata: r.Metadata}))
	}
	s := runStats(w.task, false)
	return &river.Event{Kind: kind, Job: &row, JobStats: &river.JobStatistics{
		CompleteDuration: took, QueueWaitDuration: s.Wait, RunDuration: s.Run,
	}}
}

// onPause tells subscribers that a queue was paused or resumed.
func (c *Client) onPause(queue string, paused bool) {
	kind := river.EventKindQueueResumed
	q := &rivertype.Queue{Name: queue}
	if paused {
		kind = river.EventKindQueuePaused
		now := time.Now()
		q.PausedAt = &now
	}
	c.events.send(&river.Event{Kind: kind, Queue: q})
}
