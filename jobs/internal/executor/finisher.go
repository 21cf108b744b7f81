package executor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	finishBatch    = 500                    // results recorded in one transaction
	finishBytes    = 8 << 20                // or so many bytes of them
	finishBacklog  = 20 * finishBatch       // results waiting before workers are held up
	finishLinger   = 2 * time.Millisecond   // a batch that is not full waits so long for more
	finishFlushers = 2                      // transactions at once
	leaseSweep     = 250 * time.Millisecond // used-up leases are deleted so often
	leaseBatch     = 64                     // or when there are so many
)

// finisher records results in batches. A batch that cannot be recorded is split; one result that cannot be stored is replaced
// by a readable error; one that is held by an open transaction of its worker waits apart.
type finisher struct {
	e *Executor

	mu      sync.Mutex
	ready   *sync.Cond // there is something, or the end has come
	room    *sync.Cond // the backlog has shrunk
	pending []*Task
	apart   []*Task
	voided  []*Task
	flying  int // tasks in flushes under way
	ending  bool

	flushers sync.WaitGroup
	ctx      context.Context //nolint:containedctx // the life of the flushers, from start to stop
	cancel   context.CancelFunc
}

func newFinisher(e *Executor) *finisher {
	f := &finisher{e: e}
	f.ready, f.room = sync.NewCond(&f.mu), sync.NewCond(&f.mu)
	return f
}

func (f *finisher) start(ctx context.Context) {
	f.mu.Lock()
	f.ending = false
	f.mu.Unlock()
	f.ctx, f.cancel = context.WithCancel(ctx)
	for range finishFlushers {
		f.flushers.Go(f.flush)
	}
	f.flushers.Go(f.flushApart)
	f.flushers.Go(f.sweepLeases)
}

// stop records everything that was added and returns. What the database does not take within the time of stopPatience is left to
// the reaper.
func (f *finisher) stop() {
	f.mu.Lock()
	f.ending = true
	f.ready.Broadcast()
	f.mu.Unlock()
	patience := time.AfterFunc(stopPatience, f.cancel)
	f.flushers.Wait()
	patience.Stop()
	f.cancel()
	f.deleteLeases(context.WithoutCancel(f.ctx), 1)
}

const stopPatience = 15 * time.Second

// add takes a task's result. It blocks while too many results wait.
func (f *finisher) add(t *Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.Completed.Load() != nil {
		for len(f.apart) >= apartBacklog && !f.ending {
			f.room.Wait()
		}
		f.apart = append(f.apart, t)
		return
	}
	for len(f.pending) >= finishBacklog && !f.ending {
		f.room.Wait()
	}
	f.pending = append(f.pending, t)
	if len(f.pending) == 1 || len(f.pending) == finishBatch {
		f.ready.Signal()
	}
}

// next waits for a batch; nil: the end.
func (f *finisher) next() []*Task {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.pending) == 0 {
		if f.ending && f.flying == 0 && len(f.apart) == 0 && len(f.voided) == 0 {
			return nil
		}
		f.ready.Wait()
	}
	if len(f.pending) < finishBatch && !f.ending {
		f.mu.Unlock()
		service.Sleep(f.ctx, finishLinger)
		f.mu.Lock()
	}
	n := f.batchSize()
	batch := append(make([]*Task, 0, n), f.pending[:n]...)
	f.pending = append(f.pending[:0], f.pending[n:]...)
	f.flying += n
	if len(f.pending) > 0 {
		f.ready.Signal()
	}
	f.room.Broadcast()
	return batch
}

// batchSize is how many of the pending results go into one transaction: by number, and by what they weigh. The lock is held.
func (f *finisher) batchSize() int {
	bytes := 0
	for n, t := range f.pending {
		r := &t.Result
		bytes += len(r.Output) + len(r.Metadata) + len(r.Carried) + len(r.Error) + len(r.Trace)
		if n == finishBatch || n > 0 && bytes > finishBytes {
			return n
		}
	}
	return len(f.pending)
}

func (f *finisher) landed(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying -= n
	if f.ending {
		f.ready.Broadcast()
	}
}

func (f *finisher) flush() {
	for batch := f.next(); batch != nil; batch = f.next() {
		if len(batch) > 0 {
			f.record(batch)
			f.landed(len(batch))
		}
	}
}

// record records a batch, whatever it takes, or until the finisher is given up.
func (f *finisher) record(batch []*Task) {
	for failures := 1; f.ctx.Err() == nil; failures++ {
		err := f.try(batch)
		if err == nil {
			return
		}
		switch code := store.SQLState(err); {
		case code == store.LockNotAvailable && len(batch) == 1:
			f.setApart(batch[0])
			return
		case len(batch) > 1 && (splittable(err) || failures >= stubborn && !transient(code)):
			f.record(batch[:len(batch)/2])
			f.record(batch[len(batch)/2:])
			return
		case code != "" && (splittable(err) || failures >= stubborn && !transient(code)):
			f.replace(batch[0], err)
		}
		f.e.log.WarnContext(f.ctx, "record results; trying again", "runs", len(batch), "error", err)
		service.Sleep(f.ctx, backoff(failures))
	}
	f.e.log.ErrorContext(f.ctx, "results given up; the reaper will put these runs back", "runs", len(batch))
}

// stubborn is how many tries with any lasting error show that it is the batch, not the moment.
const stubborn = 4

// transient tells whether an error will pass by itself: a conflict, a server that starts, stops or follows, too many connections.
func transient(code string) bool {
	return len(code) == 5 && (code[:2] == "40" || code[:2] == "08" || code[:3] == "57P" || code == "53300" || code == "25006")
}

// splittable tells whether an error is one result's, not the whole batch's: what it holds, or a lock that somebody has on its run.
func splittable(err error) bool {
	return store.SQLState(err) == store.LockNotAvailable || store.RowFault(err)
}

// replace turns a result that cannot be stored into a readable error.
func (f *finisher) replace(t *Task, cause error) {
	r := &t.Result
	f.e.log.ErrorContext(f.ctx, "result cannot be stored", "job_id", r.JobID, "run", r.Run, "error", cause)
	r.Output, r.Metadata, r.Carried, r.Trace = nil, nil, nil, ""
	r.Error = "the result of this run could not be stored: " + store.SQLMessage(cause)
	if r.Outcome == state.Completed {
		r.Outcome = state.Errored
		r.Due = f.e.config.RetryAt(t)
		if r.Attempt >= t.Job.MaxAttempts {
			r.Outcome, r.Due = state.Discarded, nil
		}
	}
}

// try records a batch once, by incarnation, and does what comes after.
func (f *finisher) try(batch []*Task) error {
	start := time.Now()
	refused := map[*Task]bool{}
	for executor, tasks := range byExecutor(batch) {
		results := make([]*store.Result, len(tasks))
		owner := make(map[*store.Result]*Task)
		for i, t := range tasks {
			results[i] = &t.Result
		}
		no, err := f.e.store.Finish(f.ctx, executor, results)
		if err != nil {
			return err
		}
		if len(no) > 0 {
			for _, t := range tasks {
				owner[&t.Result] = t
			}
			for _, r := range no {
				refused[owner[r]] = true
			}
		}
	}
	f.after(batch, refused, time.Since(start))
	return nil
}

func byExecutor(batch []*Task) map[int64][]*Task {
	first := batch[0].Executor
	groups := map[int64][]*Task{first: batch}
	for _, t := range batch {
		if t.Executor != first {
			clear(groups)
			break
		}
	}
	if len(groups) == 1 {
		return groups
	}
	for _, t := range batch {
		groups[t.Executor] = append(groups[t.Executor], t)
	}
	return groups
}

// after does what follows once results are recorded, each in a statement of its own; what fails here is swept up later.
func (f *finisher) after(batch []*Task, refused map[*Task]bool, took time.Duration) {
	f.e.tasks.remove(batch)
	f.e.leases.ended(batch)
	f.deleteLeases(f.ctx, leaseBatch)
	var c aftermath
	for _, t := range batch {
		if r := t.Completed.Load(); r != nil && t.Result.Stored == r.Outcome { // it committed: what the worker returned does not count
			t.Result = *r
		}
		if refused[t] {
			f.e.log.WarnContext(f.ctx, "result refused: the run had been taken away",
				slog.Int64("job_id", t.Result.JobID), slog.Int("run", int(t.Result.Run)))
			t.end(ErrTaken)
			continue
		}
		c.take(t)
	}
	if err := c.settle(f.ctx, f.e); err != nil {
		f.e.log.WarnContext(f.ctx, "clean up after results; the sweeper will", "error", err)
	}
	f.e.tally.count(batch, refused)
	f.e.config.OnFinish(batch, refused, took)
}

func (f *finisher) done() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ending && len(f.pending) == 0 && len(f.apart) == 0 && len(f.voided) == 0 && f.flying == 0
}

func (f *finisher) sweepLeases() {
	for !f.done() && service.Sleep(f.ctx, leaseSweep) {
		f.deleteLeases(f.ctx, 1)
	}
}

// deleteLeases deletes used-up leases if there are at least so many.
func (f *finisher) deleteLeases(ctx context.Context, least int) {
	for executor, numbers := range f.e.leases.takeUsedUp(least) {
		if err := f.e.store.DeleteLeases(ctx, executor, numbers); err != nil {
			f.e.leases.giveBack(executor, numbers)
			if !errors.Is(err, context.Canceled) {
				f.e.log.WarnContext(ctx, "used-up leases stay for now", "error", err)
			}
		}
	}
}
