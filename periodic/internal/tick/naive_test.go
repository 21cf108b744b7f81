package tick

import (
	"slices"
	"time"

	"github.com/peltonq/pelton/periodic/internal/expr"
)

// naive looks at the clock of a zone at every instant of [from, until), step seconds apart, and works out the ticks of [from+reach,
// until-reach) from what it has seen.
func naive(e expr.Expr, loc *time.Location, rule Rule, from, until, step int64) []Tick {
	walls := make([]int64, 0, (until-from)/step)
	for at := from; at < until; at += step {
		_, offset := time.Unix(at, 0).In(loc).Zone()
		walls = append(walls, at+int64(offset))
	}
	wallAt := func(at int64) int64 { return walls[(at-from)/step] }
	names := func(wall int64) bool {
		if wall%60 != 0 {
			return false // the expressions are of minutes
		}
		t, ok := e.Next(instant(wall - 1))
		return ok && t.Unix() == wall
	}
	passes := map[int64][]int64{} // of the times that are named, where the clock shows them
	for at := from; at < until; at += step {
		if wall := wallAt(at); names(wall) {
			passes[wall] = append(passes[wall], at)
		}
	}
	left := map[int64][]int64{} // where the clock leaps over times that it never shows
	seen := map[int64]bool{}
	for at := from + step; at < until; at += step {
		for wall := wallAt(at-step) + step; wall < wallAt(at); wall += step {
			if names(wall) && len(passes[wall]) == 0 && !seen[wall] {
				seen[wall] = true
				left[at] = append(left[at], wall)
			}
		}
	}

	var ticks []Tick
	for at := from + reach; at < until-reach; at += step {
		var runs, drops []Tick
		for _, wall := range left[at] {
			t := Tick{At: instant(at), Local: instant(wall)}
			if rule.Gap == GapNext {
				t.Note = NoteMoved
				runs = append(runs, t)
			} else {
				t.Note = NoteGap
				drops = append(drops, t)
			}
		}
		wall := wallAt(at)
		if shown := passes[wall]; slices.Contains(shown, at) {
			t := Tick{At: instant(at), Local: instant(wall)}
			switch {
			case rule.Overlap == OverlapBoth,
				rule.Overlap == OverlapFirst && at == shown[0],
				rule.Overlap == OverlapLast && at == shown[len(shown)-1]:
				runs = append(runs, t)
			default:
				t.Note = NoteRepeat
				drops = append(drops, t)
			}
		}
		if len(runs) > 0 {
			runs[0].Merged = len(runs) - 1
			ticks = append(ticks, runs[0])
		}
		for i, t := range drops {
			t.N = i + 1
			ticks = append(ticks, t)
		}
	}
	return ticks
}
