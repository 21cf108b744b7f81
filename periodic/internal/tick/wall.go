package tick

import (
	"math"
	"time"

	"github.com/peltonq/pelton/periodic/internal/expr"
)

// New gives the ticks of an expression in a time zone. An expression of kind Every has no wall-clock times: it gives the ticks of FixedRate
// with the given anchor, which the others do not use.
func New(e expr.Expr, loc *time.Location, rule Rule, anchor time.Time) Source {
	if e.Kind() == expr.Every {
		return FixedRate(e.Period(), anchor)
	}
	return Source{&wall{expr: e, zone: zone{loc}, rule: rule}}
}

// wall gives the ticks of an expression. Times are seconds: instants since the Unix epoch, and times on the wall coded as if they were in UTC.
type wall struct {
	expr expr.Expr
	zone zone
	rule Rule
}

// ticks goes from span to span of the zone's clock: first what the span's beginning leaves out, then what the clock shows in it.
func (w *wall) ticks(after Tick, yield func(Tick) bool) {
	from := after.At.Unix()
	if after.N == math.MaxInt {
		from++
	}
	emit := func(t Tick) bool { return !after.before(t) || yield(t) }
	for {
		s := w.zone.span(from)
		next := from
		if from == s.start {
			if before := w.zone.offset(from - 1); before < s.offset {
				if !w.gap(from, before, s, after, emit) {
					return
				}
				next++
			}
		}
		if !w.shown(next, s, emit) || s.end == maxTime {
			return
		}
		// Nothing happens before reach has the next time that is named. Looking back as far, it cannot be one that is shown again.
		named, ok := w.named(s.end + s.offset - reach)
		if !ok {
			return
		}
		from = max(s.end, named-reach)
	}
}

// shown gives the ticks of a span from an instant on.
func (w *wall) shown(from int64, s span, emit func(Tick) bool) bool {
	for local := from + s.offset; ; local++ {
		var ok bool
		if local, ok = w.named(local); !ok || local >= s.end+s.offset {
			return true
		}
		if !emit(w.tick(local-s.offset, local, s)) {
			return false
		}
	}
}

// tick makes the tick of a time that the clock shows at an instant.
func (w *wall) tick(at, local int64, s span) Tick {
	t := Tick{At: instant(at), Local: instant(local)}
	if at-s.start >= reach && s.end-at > reach || w.rule.Overlap == OverlapBoth {
		return t
	}
	shown := w.zone.showing(local)
	runs := shown.first
	if w.rule.Overlap == OverlapLast {
		runs = shown.last
	}
	if at != runs {
		t.N, t.Note = 1, NoteRepeat
	}
	return t
}

// gap gives the ticks of the instant at which the clock leaps from one offset to that of s: those that it leaves out, and the one of
// the moment after.
func (w *wall) gap(at, before int64, s span, after Tick, emit func(Tick) bool) bool {
	var moment Tick // of the moment after
	named := false
	if local, ok := w.named(at + s.offset); ok && local == at+s.offset {
		moment, named = w.tick(at, local, s), true
	}
	if w.rule.Gap == GapNext {
		left := Tick{At: instant(at), Note: NoteMoved, Merged: -1}
		for local := range w.leftOut(at, at+before, at+s.offset) {
			if left.Merged++; left.Merged == 0 {
				left.Local = instant(local)
			}
		}
		switch {
		case left.Merged < 0:
			return !named || emit(moment)
		case named && moment.Runs():
			left.Merged++
			return emit(left)
		default:
			return emit(left) && (!named || emit(moment))
		}
	}
	if named && moment.Runs() && !emit(moment) {
		return false
	}
	local, n := at+before, 0
	if after.Note == NoteGap && after.At.Unix() == at {
		local, n = after.Local.Unix()+1, after.N // goes on where it stopped
	}
	for local := range w.leftOut(at, local, at+s.offset) {
		n++
		if !emit(Tick{At: instant(at), Local: instant(local), N: n, Note: NoteGap}) {
			return false
		}
	}
	if named && !moment.Runs() {
		moment.N = n + 1
		return emit(moment)
	}
	return true
}

// leftOut gives the times from one to another that are named and that the clock leaves out as it leaps at an instant.
func (w *wall) leftOut(at, from, to int64) func(func(int64) bool) {
	return func(yield func(int64) bool) {
		quiet := w.zone.quiet(at)
		for local := from; ; local++ {
			var ok bool
			if local, ok = w.named(local); !ok || local >= to {
				return
			}
			if !quiet {
				if shown := w.zone.showing(local); shown.passes > 0 || shown.leap != at {
					continue
				}
			}
			if !yield(local) {
				return
			}
		}
	}
}

// named returns the first time on the wall that the expression names, at or after one.
func (w *wall) named(local int64) (int64, bool) {
	t, ok := w.expr.Next(instant(local - 1))
	return t.Unix(), ok
}

func instant(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
