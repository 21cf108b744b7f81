package store

import (
	"time"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// Result is how a run ended and what follows.
type Result struct {
	JobID     int64
	Run       int32
	Attempt   int16 // counted so far, this run included if it counts
	Outcome   state.Outcome
	StartedAt *time.Time // nil: never started
	EndedAt   time.Time
	Due       *time.Time // when it runs again; nil: at once, or never if the outcome is final
	Error     string
	Trace     string
	Output    []byte
	Metadata  []byte
	Carried   []byte // what the runs before left in the metadata; nil: not noted with this run
	Line      string // where it runs again if Due is nil
	Priority  int16
	FlowRun   int64 // the flow's run that is told of the job's end; 0: none
	FlowNode  int32
	Stored    state.Outcome // how the run is recorded, if not by this result: by the worker's CompleteTx
}

// plain tells whether finish_copy can record it.
func (r *Result) plain() bool {
	return r.Outcome == state.Completed && r.Error == "" && r.Output == nil && r.Metadata == nil && r.Carried == nil && r.FlowRun == 0
}

// RunKey names a run.
type RunKey struct {
	JobID int64
	Run   int32
}

// Key is the run's name.
func (r *Result) Key() RunKey { return RunKey{r.JobID, r.Run} }
