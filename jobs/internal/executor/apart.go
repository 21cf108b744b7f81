package executor

import (
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// apartPause lies between looks at what is recorded apart.
const apartPause = 50 * time.Millisecond

// addVoided takes a task that must not start.
func (f *finisher) addVoided(t *Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.voided = append(f.voided, t)
}

func (f *finisher) setApart(t *Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apart = append(f.apart, t)
}

// flushApart records what may have to wait for somebody: runs completed in a worker's own transaction, each alone, and runs
// that must not start. Nothing else waits for them.
func (f *finisher) flushApart() {
	for {
		f.mu.Lock()
		apart, voided := f.apart, f.voided
		f.apart, f.voided = nil, nil
		f.flying += len(apart) + len(voided)
		f.mu.Unlock()
		f.recordApart(apart)
		if len(voided) > 0 {
			f.honour(voided)
		}
		f.landed(len(apart) + len(voided))
		if f.done() || !service.Sleep(f.ctx, apartPause) {
			return
		}
	}
}

// apartBacklog is how many results wait apart before their workers are held up.
const apartBacklog = 1000

// recordApart records the runs whose transactions have committed together, by one look, and the others each alone.
func (f *finisher) recordApart(tasks []*Task) {
	if len(tasks) == 0 {
		return
	}
	start := time.Now()
	for executor, group := range byExecutor(tasks) {
		results := make([]*store.Result, len(group))
		for i, t := range group {
			results[i] = &t.Result
		}
		own, err := f.e.store.Recorded(f.ctx, executor, results)
		if err != nil {
			f.e.log.WarnContext(f.ctx, "look for runs completed in transactions; trying again", "error", err)
		}
		var done []*Task
		for _, t := range group {
			if own[&t.Result] {
				done = append(done, t)
			} else {
				f.recordAlone(t)
			}
		}
		if len(done) > 0 {
			f.after(done, nil, time.Since(start))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room.Broadcast()
}

func (f *finisher) recordAlone(t *Task) {
	err := f.try([]*Task{t})
	if err == nil {
		return
	}
	code := store.SQLState(err)
	if code != store.LockNotAvailable {
		f.e.log.WarnContext(f.ctx, "record a run completed in a transaction; trying again", "error", err)
	}
	if store.RowFault(err) {
		f.replace(t, err)
	}
	f.setApart(t)
}

// honour ends runs that must not start.
func (f *finisher) honour(tasks []*Task) {
	byKey := map[store.RunKey]*Task{}
	runs := make([]store.VoidedRun, len(tasks))
	for i, t := range tasks {
		runs[i] = store.VoidedRun{JobID: t.ID, Run: t.Run, Attempts: t.Attempts}
		byKey[store.RunKey{JobID: t.ID, Run: t.Run}] = t
	}
	done, held, err := f.e.store.HonourVoids(f.ctx, runs)
	if err != nil {
		f.e.log.WarnContext(f.ctx, "end runs that must not start; trying again", "error", err)
	}
	var ended []*Task
	for _, h := range done {
		key := store.RunKey{JobID: h.JobID, Run: h.Run}
		t := byKey[key]
		delete(byKey, key)
		if h.Outcome == store.VoidNone { // no void holds any more: back into the line
			t.Result = returned(t)
			f.add(t)
			continue
		}
		ended = append(ended, t)
	}
	f.e.tasks.remove(ended)
	f.e.leases.ended(ended)
	if err == nil && len(held) == 0 {
		return
	}
	for _, t := range byKey { // held by an open transaction, or the database was away
		f.addVoided(t)
	}
}

// returned is the uncounted result of a run that was not started.
func returned(t *Task) store.Result {
	return store.Result{
		JobID: t.ID, Run: t.Run, Attempt: t.Attempts, Outcome: state.Returned, EndedAt: t.Now(),
		Line: t.Line, Priority: t.Job.Priority,
	}
}
