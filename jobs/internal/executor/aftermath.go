package executor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// aftermath is what is left to do once results are recorded: nearly always nothing.
type aftermath struct {
	keyed    []int64 // jobs with unique keys that ended
	outcomes []state.Outcome
	again    []int64          // jobs that run again: a cancel may have missed them
	voided   []store.Honoured // runs whose cancel is honoured
	lines    []string         // lines of kinds that jobs were parked into
	back     []string         // lines that runs went back into at once
	flows    bool             // flows are told of a job's end
	due      *time.Time       // when the first of the further runs is due
}

func (a *aftermath) take(t *Task) {
	r := &t.Result
	switch {
	case r.Outcome.Final():
		a.flows = a.flows || r.FlowRun != 0
		if t.Job.UniqueKey != nil {
			a.keyed = append(a.keyed, r.JobID)
			a.outcomes = append(a.outcomes, r.Outcome)
		}
		if r.Outcome == state.Cancelled || t.voidSeen.Load() {
			run := store.VoidedRun{JobID: r.JobID, Run: r.Run, Attempts: t.Attempts}
			a.voided = append(a.voided, store.Honoured{VoidedRun: run, Outcome: r.Outcome})
		}
	case r.Outcome == state.Parked && !slices.Contains(a.lines, r.Line):
		a.lines = append(a.lines, r.Line)
		a.again = append(a.again, r.JobID)
	default:
		a.again = append(a.again, r.JobID)
		if r.Due == nil && !slices.Contains(a.back, r.Line) {
			a.back = append(a.back, r.Line)
		}
		if r.Due != nil && (a.due == nil || r.Due.Before(*a.due)) {
			a.due = r.Due
		}
	}
}

func (a *aftermath) settle(ctx context.Context, e *Executor) error {
	var errs []error
	if len(a.keyed) > 0 {
		errs = append(errs, e.store.FreeKeys(ctx, a.keyed, a.outcomes))
	}
	if len(a.voided) > 0 {
		errs = append(errs, e.store.DropVoids(ctx, a.voided))
	}
	if len(a.again) > 0 {
		_, err := e.store.CancelWaiting(ctx, a.again)
		errs = append(errs, err)
	}
	if len(a.lines) > 0 {
		errs = append(errs, e.store.Hint(ctx, a.lines))
	}
	if a.due != nil && e.config.TellDue(*a.due) {
		errs = append(errs, e.store.HintDue(ctx, e.store.Pool))
	}
	if a.flows {
		errs = append(errs, e.config.OnFlow(ctx))
	}
	errs = append(errs, e.wakeSleepers(ctx, e.store.Pool, a.back))
	return errors.Join(errs...)
}
