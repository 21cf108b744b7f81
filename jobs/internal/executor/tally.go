package executor

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	// tallyAfter is how long after the end of a minute its counts are stored, at least, and at most twice that: executors take turns.
	tallyAfter = 2 * time.Second
	// tallyKeep is how long counts wait for a database that does not answer.
	tallyKeep = 15 * time.Minute
)

// tally counts the runs that ended here, by minute and queue, until they are stored.
type tally struct {
	mu     sync.Mutex
	counts map[store.TallyKey]*store.Tally
}

// count counts a batch of runs whose results were recorded.
func (t *tally) count(batch []*Task, refused map[*Task]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var key store.TallyKey
	var of *store.Tally // of key
	for _, task := range batch {
		if refused[task] {
			continue
		}
		r := &task.Result
		if minute := r.EndedAt.Truncate(time.Minute); of == nil || key.Queue != task.Job.Queue || !key.Minute.Equal(minute) {
			key = store.TallyKey{Minute: minute.UTC(), Queue: task.Job.Queue}
			of = t.of(key)
		}
		of.Count(r.Outcome, r.StartedAt != nil, task.StartedAt.Sub(task.EnteredAt))
	}
}

func (t *tally) of(key store.TallyKey) *store.Tally {
	if t.counts == nil {
		t.counts = map[store.TallyKey]*store.Tally{}
	}
	of, ok := t.counts[key]
	if !ok {
		of = &store.Tally{}
		t.counts[key] = of
	}
	return of
}

// take takes all that was counted.
func (t *tally) take() map[store.TallyKey]store.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := make(map[store.TallyKey]store.Tally, len(t.counts))
	for key, of := range t.counts {
		taken[key] = *of
	}
	t.counts = nil
	return taken
}

// giveBack counts again what could not be stored, but for what is too old.
func (t *tally) giveBack(taken map[store.TallyKey]store.Tally, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, of := range taken {
		if now.Sub(key.Minute) < tallyKeep {
			t.of(key).Add(of)
		}
	}
}

// storeTallies stores what was counted, soon after the end of each minute.
func (e *Executor) storeTallies(ctx context.Context) {
	for {
		wait := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)) + tallyAfter + rand.N(tallyAfter)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		e.storeTally(ctx)
	}
}

func (e *Executor) storeTally(ctx context.Context) {
	taken := e.tally.take()
	if len(taken) == 0 {
		return
	}
	if err := e.store.AddTallies(ctx, taken); err != nil {
		e.tally.giveBack(taken, time.Now())
		e.log.WarnContext(ctx, "the counts of the last minute wait", "error", err)
	}
}
