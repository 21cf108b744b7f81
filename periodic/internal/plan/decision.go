package plan

import (
	"time"

	"github.com/peltonq/pelton/periodic/internal/tick"
)

// decision is one in the making.
type decision struct {
	spec *Spec
	now  time.Time
	live bool // a run goes on: the newest one, or one that this decision has started
	Step
}

// runEnded looks whether the newest run has ended, and starts what waited for it.
func (d *decision) runEnded() {
	s := &d.State
	if d.live {
		d.Cancel = d.spec.Overlap == Cancel && !s.Waiting.IsZero() // once more: a cancel may be lost
		return
	}
	if d.spec.Ticks == nil && s.Run.Ended && s.Next.IsZero() {
		s.Next = d.bounded(s.Run.EndedAt.Add(d.spec.Delay))
	}
	s.Run = Run{}
	if !s.Waiting.IsZero() {
		d.fire(d.tickAt(s.Waiting))
		s.Waiting = time.Time{}
	}
}

// tickAt is the tick that may run at a time, and whether it is one by hand: none of the source's.
func (d *decision) tickAt(at time.Time) (t tick.Tick, hand bool) {
	if d.spec.Ticks != nil {
		if t, ok := d.spec.Ticks.NextRun(at.Add(-time.Nanosecond)); ok && t.At.Equal(at) {
			return t, false
		}
	}
	return tick.Tick{At: at}, true
}

// delayed starts a schedule with a fixed delay when its time has come.
func (d *decision) delayed() {
	s := &d.State
	if d.live {
		return
	}
	if s.Next.IsZero() { // the run before could not be started
		s.Next = d.bounded(later(s.Decided, d.now).Add(d.spec.Delay))
		return
	}
	if s.Next.After(d.now) {
		return
	}
	d.fire(tick.Tick{At: s.Next}, false)
	s.Decided, s.Next = s.Next, time.Time{}
}

// due decides the ticks that are due; those that share a time are not torn apart.
func (d *decision) due(limit int) {
	s := &d.State
	at := s.Decided
	for t := range d.spec.Ticks.All(tick.After(s.Decided)) {
		if !t.At.Equal(at) {
			if len(d.Verdicts) >= limit || d.dueAt(t.At).After(d.now) || d.ended(t.At) {
				break
			}
			at, s.Decided = t.At, t.At
		}
		if t.Runs() { // a dropped one has no time at which somebody should have been there
			d.look(t.At)
		}
		d.judge(t)
	}
	s.Next = d.next()
	if s.Next.IsZero() || s.Next.After(s.CutUntil) {
		s.Cut, s.CutUntil, s.Pause = time.Time{}, time.Time{}, false
	}
}

// none is the grace of a cut that holds for all ticks up to a time: none of them is on time.
const none = -time.Microsecond

// look makes the cut when the first of the due ticks is later than the grace: then nobody was there, and all that came due meanwhile is the
// rule's, whether it is late by much or by little.
func (d *decision) look(at time.Time) {
	s := &d.State
	if !at.After(s.CutUntil) {
		return
	}
	s.Cut, s.CutUntil, s.Pause = time.Time{}, time.Time{}, false
	upto := d.now.Add(-tick.Spread(d.spec.ID, d.spec.Spread) - d.spec.Jitter) // all these are due
	if at.Before(upto.Add(-d.spec.Grace)) {
		s.Cut, s.CutUntil = tick.Cut(d.spec.Missed, *d.spec.Ticks, at, upto, none), upto
	}
}

func (d *decision) judge(t tick.Tick) {
	s := &d.State
	switch {
	case t.Note == tick.NoteGap:
		d.skip(t, false, Gap)
	case t.Note == tick.NoteRepeat:
		d.skip(t, false, Repeat)
	case !t.At.Before(s.Cut) || t.At.After(s.CutUntil):
		d.admit(t, false)
	case s.Pause:
		d.skip(t, false, Paused)
	default:
		d.skip(t, false, Missed)
	}
}

// admit starts a tick, unless the rule for overlaps has it wait or skips it.
func (d *decision) admit(t tick.Tick, hand bool) {
	s := &d.State
	switch {
	case !d.live || d.spec.Overlap == Allow || d.spec.Overlap == "":
		d.fire(t, hand)
	case d.spec.Overlap == Skip, d.spec.Overlap == Queue && !s.Waiting.IsZero():
		d.skip(t, hand, Overlapped)
	case d.spec.Overlap == Queue:
		s.Waiting = t.At
	case d.withdraw(): // Cancel, and what goes on was started just now
		d.fire(t, hand)
	default:
		d.Cancel = true
		if !s.Waiting.IsZero() {
			waiting, hand := d.tickAt(s.Waiting)
			d.skip(waiting, hand, Superseded)
		}
		s.Waiting = t.At
	}
}

// withdraw takes back a start of this same decision: a newer tick takes its place.
func (d *decision) withdraw() bool {
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; v.Fire {
			v.Fire, v.Reason = false, Superseded
			return true
		}
	}
	return false
}

func (d *decision) fire(t tick.Tick, hand bool) {
	d.Verdicts = append(d.Verdicts, Verdict{Tick: t, Hand: hand, Fire: true})
	d.live = true
	if d.spec.Ticks == nil { // the next one is counted from the end of this run
		d.State.Next = time.Time{}
	}
}

func (d *decision) skip(t tick.Tick, hand bool, why Reason) {
	d.Verdicts = append(d.Verdicts, Verdict{Tick: t, Hand: hand, Reason: why})
}

// next is the next tick that may run.
func (d *decision) next() time.Time {
	t, ok := d.spec.Ticks.NextRun(d.State.Decided)
	if !ok {
		return time.Time{}
	}
	return d.bounded(t.At)
}

func (d *decision) bounded(at time.Time) time.Time {
	if d.ended(at) {
		return time.Time{}
	}
	return at
}

func (d *decision) ended(at time.Time) bool { return !d.spec.End.IsZero() && at.After(d.spec.End) }

// dueAt is when a tick is to be fired.
func (d *decision) dueAt(at time.Time) time.Time {
	return at.Add(tick.Spread(d.spec.ID, d.spec.Spread) + tick.Jitter(d.spec.ID, at, d.spec.Jitter))
}

// Looks at a run that something waits for: after a fiftieth of the time that it has run, but within these bounds.
const (
	firstWatch = 250 * time.Millisecond
	lastWatch  = 5 * time.Second
)

// wake says when to decide again.
func (d *decision) wake() {
	s := &d.State
	d.Wake = time.Time{}
	if !s.Next.IsZero() {
		d.Wake = d.dueAt(s.Next)
	}
	if d.live && (!s.Waiting.IsZero() || d.spec.Ticks == nil) || !d.live && !s.Waiting.IsZero() {
		look := d.now.Add(min(lastWatch, max(firstWatch, d.now.Sub(s.Run.Since)/50)))
		if s.Run == (Run{}) {
			look = d.now.Add(firstWatch)
		}
		if d.Wake.IsZero() || look.Before(d.Wake) {
			d.Wake = look
		}
	}
}
