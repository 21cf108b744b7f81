package executor

import (
	"context"
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
	// Apart is set when the run was completed in a transaction of the worker's that may still be open.
	Apart atomic.Bool // the worker may set it while the executor looks on

	lease  leaseKey
	claim  *claimTime
	cancel atomic.Pointer[context.CancelCauseFunc]
	cause  atomic.Pointer[error] // why it was to end, maybe before it was bound

	voidSeen atomic.Bool // a cancel of this run is written down
}

// claimTime ties the database's clock to ours at the moment of a claim.
type claimTime struct {
	database time.Time
	local    time.Time // with its monotonic reading
}

// Now is the database's time, as far as this process can tell without asking.
func (t *Task) Now() time.Time {
	return t.claim.database.Add(time.Since(t.claim.local))
}

// Runner works tasks. Run must fill the task's Result, whatever the worker does, and must not panic. It calls the task's Bind.
type Runner interface {
	Run(ctx context.Context, t *Task)
}

// Bind lets the executor end the task's context from now on. If it wanted to before, the context ends at once.
func (t *Task) Bind(cancel context.CancelCauseFunc) {
	t.cancel.Store(&cancel)
	if cause := t.cause.Load(); cause != nil {
		cancel(*cause)
	}
}

// end ends the task's context, or will when it is bound. Of Bind and end, each writes its part before it reads the other's.
func (t *Task) end(cause error) {
	t.cause.CompareAndSwap(nil, &cause)
	if cancel := t.cancel.Load(); cancel != nil {
		(*cancel)(cause)
	}
}
