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
	// Logged is called with the bytes of jobs' logs that were stored, deleted again because they were too much, and dropped, since
	// the last call.
	Logged(stored, trimmed, dropped int64)
	// Hinted is called when a notification has come: of a line, or cancel, queue, flow, schedule or due.
	Hinted(what string)
	// Listening is called when the connection that notifications come by has been made, and when it is lost: some may be lost then.
	Listening(on bool)
	// DutyStepped is called after each step of a duty: it comes again after a time, or has failed.
	DutyStepped(duty string, again time.Duration, err error)
}

// NoObserver observes nothing. Who observes only some things embeds it.
type NoObserver struct{}

var _ Observer = NoObserver{}

// RunStats is one ended run.
type RunStats struct {
	Queue, Kind string
	Outcome     string        // completed, errored, cancelled, discarded, snoozed, returned, parked, moved; refused: lost to the reaper
	Wait        time.Duration // from entering the line to the start
	Run         time.Duration // from the start to the end of the work
	Number      int32         // of the run, from 1
	Started     time.Time     // by the database's clock; zero: it never started
	Metadata    []byte        // the job's, as JSON; nobody may change it
}

// OutcomeRefused is the outcome of a run whose result was refused because the reaper had ended it.
const OutcomeRefused state.Outcome = "refused"

// Enqueued does nothing, as do all others.
func (NoObserver) Enqueued(string, string, int) {}

// Claimed does nothing.
func (NoObserver) Claimed(string, int, time.Duration) {}

// Finished does nothing.
func (NoObserver) Finished([]RunStats, time.Duration) {}

// Reaped does nothing.
func (NoObserver) Reaped(int, int) {}

// BelowMark does nothing.
func (NoObserver) BelowMark(string, int) {}

// Logged does nothing.
func (NoObserver) Logged(int64, int64, int64) {}

// Hinted does nothing.
func (NoObserver) Hinted(string) {}

// Listening does nothing.
func (NoObserver) Listening(bool) {}

// DutyStepped does nothing.
func (NoObserver) DutyStepped(string, time.Duration, error) {}
