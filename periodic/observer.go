package periodic

import (
	"time"

	"github.com/peltonq/pelton/periodic/internal/plan"
	"github.com/peltonq/pelton/periodic/internal/store"
)

// Observer is told what a client does to schedules, on the goroutine that does it: it must be quick and must not block.
type Observer interface {
	// Decided is called with what became of ticks, after the transaction that decided it was committed. What is decided in a caller's
	// transaction is not told.
	Decided(ticks []Verdict)
	// Fired is called after each transaction that fired schedules that were due.
	Fired(schedules int, took time.Duration)
	// DutyStepped is called after each look for schedules that are due: it comes again after a time, or has failed.
	DutyStepped(duty string, again time.Duration, err error)
}

// dutyFire is the duty of a firer, as observers are told of it.
const dutyFire = "schedules"

// Verdict is what became of a tick.
type Verdict struct {
	Source  Source
	Outcome Outcome
	Reason  string        // of one that did not run
	Late    time.Duration // from the tick's time to the decision
}

type noObserver struct{}

func (noObserver) Decided([]Verdict)                        {}
func (noObserver) Fired(int, time.Duration)                 {}
func (noObserver) DutyStepped(string, time.Duration, error) {}

// ReasonRefused is the reason of a tick that failed: what it starts cannot be started. Its note says why.
const ReasonRefused = "refused"

// Reasons are those that ticks may have that did not run.
func Reasons() []string {
	return []string{
		string(plan.Missed), string(plan.Paused), string(plan.Overlapped), string(plan.Superseded), string(plan.Gap), string(plan.Repeat),
		reasonDuplicate, reasonNone, reasonDeleted, ReasonRefused,
	}
}

// add notes a tick that is decided at a time.
func (a *aftermath) add(t *store.Tick, now time.Time) {
	a.ticks = append(a.ticks, Verdict{Source(t.Source), Outcome(t.Outcome), t.Reason, now.Sub(t.At)})
}
