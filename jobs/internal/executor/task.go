package executor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// Task is one claimed run of a job, from the claim to the recorded result.
type Task struct {
	ID        int64 // of the job
	Job       *store.Job
	Earlier   []store.Attempt // the runs before, in order
	Run       int32
	Attempts  int16 // counted before this run
	Executor  int64 // the incarnation that claimed it
	Line      string
	EnteredAt time.Time // by the database's clock
	StartedAt time.Time // by the database's clock

	// Result is filled by the Runner.
	Result store.Result
	// Note is the Runner's own, for OnFinish.
	Note any
	// Completed is what the worker's CompleteTx recorded, in a transaction that may still be open or be rolled back; nil: it called
	// none. The worker may set it while the executor looks on.
	Completed atomic.Pointer[store.Result]

	lease leaseKey
	claim *claimTime

	mu    sync.Mutex
	bound Ender
	cause error // why it was to end, maybe before it was bound

	voidSeen atomic.Bool // a cancel of this run is written down
}

// claimTime ties the database's clock to ours at the moment of a claim.
type claimTime struct {
	database time.Time
	local    time.Time // with its monotonic reading
}

// Now is the database's time, as far as this process can tell without asking.
func (t *Task) Now() time.Time { return t.At(time.Now()) }

// At puts a moment of this process on the database's clock.
func (t *Task) At(local time.Time) time.Time {
	return t.claim.database.Add(local.Sub(t.claim.local))
}

// Runner works tasks. Run must fill the task's Result, whatever the worker does, and must not panic. It calls the task's Bind.
type Runner interface {
	Run(ctx context.Context, t *Task)
}

// Ender is what can be told to end, and why: a task's context. Of several calls the first one counts.
type Ender interface {
	End(cause error)
}

// Bind lets the executor end the task's context from now on. If it wanted to before, the context ends at once.
func (t *Task) Bind(e Ender) {
	t.mu.Lock()
	t.bound = e
	cause := t.cause
	t.mu.Unlock()
	if cause != nil {
		e.End(cause)
	}
}

// end ends the task's context, or will when it is bound.
func (t *Task) end(cause error) {
	t.mu.Lock()
	if t.cause == nil {
		t.cause = cause
	}
	bound := t.bound
	t.mu.Unlock()
	if bound != nil {
		bound.End(cause)
	}
}
