package jobs

import (
	"time"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// Observer is told what a client does, in batches, on the goroutine that does it: it must be quick and must not block.
type Observer interface {
	// Enqueued is called after jobs were inserted (in a caller's transaction: maybe not yet committed).
	Enqueued(queue, kind string, n int)
	// Claimed is called after each claim, also an empty one.
	Claimed(queue string, n int, took time.Duration)
	// Finished is called after a batch of results was recorded; runs is only valid during the call.
	Finished(runs []RunStats, took time.Duration)
	// Reaped is called after runs of dead processes were ended: lost ones run again, discarded ones do not.
	Reaped(lost, discarded int)
	// BelowMark is called when rows were found below a low-water mark, which must never happen.
	BelowMark(relation string, n int)
}

// RunStats is one ended run.
type RunStats struct {
	Queue, Kind string
	Outcome     string        // completed, errored, cancelled, discarded, snoozed, returned, parked, moved; refused: lost to the reaper
	Wait        time.Duration // from entering the line to the start
	Run         time.Duration // from the start to the end of the work
}

// OutcomeRefused is the outcome of a run whose result was refused because the reaper had ended it.
const OutcomeRefused state.Outcome = "refused"

type noObserver struct{}

func (noObserver) Enqueued(string, string, int)       {}
func (noObserver) Claimed(string, int, time.Duration) {}
func (noObserver) Finished([]RunStats, time.Duration) {}
func (noObserver) Reaped(int, int)                    {}
func (noObserver) BelowMark(string, int)              {}
