package tick

import (
	"time"
)

// FixedRate gives ticks at anchor + k * period for every whole k, past ones too: the anchor is a phase and no beginning. Both are taken to the
// microsecond. A period below a microsecond gives no ticks.
func FixedRate(period time.Duration, anchor time.Time) Source {
	if period < time.Microsecond {
		return Source{}
	}
	return Source{rate{period: period.Microseconds(), anchor: anchor.UnixMicro()}}
}

type rate struct{ period, anchor int64 }

func (r rate) ticks(after Tick, yield func(Tick) bool) {
	for at := after.At; ; {
		// The distance to the tick at or before it, whatever side of the anchor it is on.
		us := at.UnixMicro()
		past := (us - r.anchor) % r.period
		if past < 0 {
			past += r.period
		}
		at = time.UnixMicro(us - past + r.period).UTC()
		if !yield(Tick{At: at}) {
			return
		}
	}
}

// Once gives a single tick.
func Once(at time.Time) Source { return Source{once(at)} }

type once time.Time

func (o once) ticks(after Tick, yield func(Tick) bool) {
	if at := time.Time(o); at.After(after.At) {
		yield(Tick{At: at.UTC()})
	}
}

// Func gives the ticks of a function that returns the first time later than a given one, as River's PeriodicSchedule does. Times are rounded
// up to the microsecond. It ends where the function returns none that is later.
func Func(next func(time.Time) time.Time) Source { return Source{function(next)} }

type function func(time.Time) time.Time

func (f function) ticks(after Tick, yield func(Tick) bool) {
	for at := after.At; ; {
		next := f(at)
		if rounded := next.Truncate(time.Microsecond); rounded.Before(next) {
			next = rounded.Add(time.Microsecond)
		}
		if !next.After(at) {
			return
		}
		at = next.UTC()
		if !yield(Tick{At: at}) {
			return
		}
	}
}
