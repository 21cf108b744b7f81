package plan

import (
	"time"

	"github.com/peltonq/pelton/periodic/internal/tick"
)

// Overlap says what a tick does while the run of an earlier one has not ended.
type Overlap string

// The rules for overlaps.
const (
	Allow  Overlap = "allow"
	Skip   Overlap = "skip"
	Queue  Overlap = "queue"
	Cancel Overlap = "cancel"
)

// Reason says why a tick does not run.
type Reason string

// The reasons that are decided here.
const (
	Missed     Reason = "missed"     // nobody fired it in time, and the rule for missed ticks leaves it out
	Paused     Reason = "paused"     // it fell into a pause, and the rule for the end of pauses leaves it out
	Overlapped Reason = "overlap"    // the run before has not ended
	Superseded Reason = "superseded" // it waited for that, and a newer tick took its place
	Gap        Reason = "gap"        // its wall time was left out by the clock
	Repeat     Reason = "repeat"     // its wall time was shown twice, and the other one runs
)

// Spec is what decides of a schedule.
type Spec struct {
	ID             int64
	Ticks          *tick.Source  // nil: a fixed delay
	Delay          time.Duration // from the end of a run to the next
	End            time.Time     // no tick after this; zero: no end
	Missed         tick.Missed
	AfterPause     tick.Missed
	Grace          time.Duration
	Overlap        Overlap
	Spread, Jitter time.Duration
}

// Run is the newest run of a schedule. The zero value: there is none that counts.
type Run struct {
	Job, Flow int64 // the job's id, or the flow run's
	Since     time.Time
	Ended     bool
	EndedAt   time.Time
}

// Live tells whether the run goes on.
func (r Run) Live() bool { return (r.Job != 0 || r.Flow != 0) && !r.Ended }

// State is where a schedule is.
type State struct {
	Decided  time.Time // every tick up to here has its verdict
	Next     time.Time // the next tick that may run; zero: none, or the end of a run has to come first
	Cut      time.Time // ticks before it are skipped; zero: no cut holds
	CutUntil time.Time // for ticks up to here
	Pause    bool      // the cut comes from the end of a pause
	Waiting  time.Time // a tick that runs when the newest run has ended; zero: none
	Run      Run
}

// Verdict is what becomes of a tick.
type Verdict struct {
	Tick   tick.Tick
	Hand   bool // a tick by hand: none of the schedule's own
	Fire   bool
	Reason Reason // of one that does not run
}

// Step is a decision.
type Step struct {
	Verdicts []Verdict
	Cancel   bool // the newest run is to be cancelled
	State    State
	Wake     time.Time // when to decide again; zero: never
}

// Decide decides all that is due at a time, at most about limit ticks: if more are due, Wake is that time. Where a verdict fires, State.Run is
// still the run before, and the caller puts the new one there; if that could not be started, a zero Run.
func Decide(spec *Spec, state State, now time.Time, limit int) Step {
	d := decision{spec: spec, now: now, live: state.Run.Live(), Step: Step{State: state}}
	d.runEnded()
	if spec.Ticks == nil {
		d.delayed()
	} else {
		d.due(limit)
	}
	d.wake()
	return d.Step
}

// Trigger decides of a tick by hand: it fires, waits or is skipped as the rule for overlaps says.
func Trigger(spec *Spec, state State, at, now time.Time) Step {
	d := decision{spec: spec, now: now, live: state.Run.Live(), Step: Step{State: state}}
	d.runEnded()
	d.admit(tick.Tick{At: at}, true)
	d.wake()
	return d.Step
}

// Renew is the state of a schedule that is new, or has been changed: its ticks are counted from now on, or from first if that is later.
func Renew(spec *Spec, state State, first, now time.Time) Step {
	d := decision{spec: spec, now: now, live: state.Run.Live(), Step: Step{State: state}}
	s := &d.State
	s.Decided, s.Cut, s.CutUntil, s.Pause, s.Next = now, time.Time{}, time.Time{}, false, time.Time{}
	if first.After(now) {
		s.Decided = first.Add(-time.Microsecond)
	}
	switch {
	case spec.Ticks != nil:
		s.Next = d.next()
	case state.Run.Live():
	case state.Run.Ended:
		s.Next = d.bounded(later(state.Run.EndedAt.Add(spec.Delay), now))
	default:
		s.Next = d.bounded(later(first, now))
	}
	d.wake()
	return d.Step
}

// Resume is the state of a schedule whose pause ends now: the rule for that decides of the ticks in between.
func Resume(spec *Spec, state State, now time.Time) Step {
	d := decision{spec: spec, now: now, live: state.Run.Live(), Step: Step{State: state}}
	s := &d.State
	switch {
	case spec.Ticks != nil:
		s.Cut, s.CutUntil, s.Pause = tick.Cut(spec.AfterPause, *spec.Ticks, s.Decided, now, none), now, true
		s.Next = d.next()
	case !d.live:
		if s.Next.IsZero() && s.Run.Ended { // in the pause
			s.Next = s.Run.EndedAt.Add(spec.Delay)
		}
		if s.Next.Before(now) && spec.AfterPause.Skips() {
			s.Next = now.Add(spec.Delay)
		}
		s.Next = d.bounded(later(s.Next, now))
	}
	d.wake()
	return d.Step
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
