package tick

import (
	"iter"
	"math"
	"time"
)

// A Note says what a clock change made of a tick.
type Note string

// The notes.
const (
	NoteMoved  Note = "moved"  // runs after the gap that its time lies in
	NoteGap    Note = "gap"    // dropped: the clock leaves its time out
	NoteRepeat Note = "repeat" // dropped: another pass of its time runs
)

// A Tick is a time that a schedule names, as an instant.
type Tick struct {
	// At is the instant. For a time in a gap it is the first moment after it.
	At time.Time
	// Local is the time on the wall that the expression names, coded as UTC; zero if no expression named it. Of several that are one tick
	// it is the first.
	Local time.Time
	// N tells ticks of one instant apart: 0 for the one that may run, 1, 2, ... for dropped ones.
	N int
	// Note is empty for an ordinary tick.
	Note Note
	// Merged counts the further times that are the same tick, because they are left out like it, or named for the moment it is moved to.
	Merged int
}

// Runs reports whether the tick may run: it is not dropped by a clock change.
func (t Tick) Runs() bool { return t.N == 0 }

// After stands for the last tick at an instant: what follows it has a later At.
func After(at time.Time) Tick { return Tick{At: at, N: math.MaxInt} }

// before reports whether t comes before u.
func (t Tick) before(u Tick) bool {
	if !t.At.Equal(u.At) {
		return t.At.Before(u.At)
	}
	return t.N < u.N
}

// A Source gives the ticks of a schedule. The zero Source gives none.
type Source struct {
	from ticker
}

// A ticker gives all ticks that come after a given one, in order.
type ticker interface {
	ticks(after Tick, yield func(Tick) bool)
}

// All returns the ticks after a given one, dropped ones included, in order. For a schedule without an end it does not end.
func (s Source) All(after Tick) iter.Seq[Tick] {
	return func(yield func(Tick) bool) {
		if s.from != nil {
			s.from.ticks(after, yield)
		}
	}
}

// Next returns the first tick after a given one, dropped ones included.
func (s Source) Next(after Tick) (Tick, bool) {
	for t := range s.All(after) {
		return t, true
	}
	return Tick{}, false
}

// NextRun returns the first tick later than an instant that may run.
func (s Source) NextRun(after time.Time) (Tick, bool) {
	for t := range s.All(After(after)) {
		if t.Runs() {
			return t, true
		}
	}
	return Tick{}, false
}

// Between appends to ticks those after a given one and not later than until, at most limit, dropped ones included. The last of them is what to go
// on after.
func (s Source) Between(ticks []Tick, after Tick, until time.Time, limit int) []Tick {
	if limit <= 0 {
		return ticks
	}
	for t := range s.All(after) {
		if t.At.After(until) {
			break
		}
		ticks = append(ticks, t)
		if limit--; limit == 0 {
			break
		}
	}
	return ticks
}

// firstWindow is how far back LastRun looks at first.
const firstWindow = time.Minute

// LastRun returns the n-th last tick that may run, later than after and not later than until; n is 1 for the last. It looks at windows that
// double, so what it costs depends on n and not on how long ago after is.
func (s Source) LastRun(after, until time.Time, n int) (Tick, bool) {
	if n < 1 {
		return Tick{}, false
	}
	last := make([]Tick, 0, min(n, 1024)) // a ring once it is full
	for window := firstWindow; ; window *= 2 {
		from := until.Add(-window)
		whole := !from.After(after) || window > math.MaxInt64/4
		if whole {
			from = after
		}
		count := 0
		last = last[:0]
		for t := range s.All(After(from)) {
			if t.At.After(until) {
				break
			}
			if !t.Runs() {
				continue
			}
			if len(last) < n {
				last = append(last, t)
			} else {
				last[count%n] = t
			}
			count++
		}
		switch {
		case count >= n:
			return last[count%n], true
		case whole:
			return Tick{}, false
		}
	}
}
