package expr

import (
	"math/bits"
	"time"
)

const (
	// lastYear is the last one that times are written with.
	lastYear = 9999
	// cycle is the number of years after which the calendar repeats: what has not come by then never comes.
	cycle = 400
)

// Next returns the first wall-clock time after the given one that the expression names, in UTC. There is none if it is false: the expression's
// years are over, it names none before the year 10000, or it is of kind Every.
func (e Expr) Next(after time.Time) (time.Time, bool) {
	if e.kind == Every || e.kind == 0 {
		return time.Time{}, false
	}
	t := after.UTC().Truncate(time.Second).Add(time.Second)
	year, month, day := t.Date()
	hour, minute, second, ok := e.clock(t.Clock())
	if !ok {
		day++ // perhaps past the month's end, where no day is named
	}
	y, m, d, ok := e.date(year, month, day)
	if !ok {
		return time.Time{}, false
	}
	if y != year || m != month || d != day {
		hour, minute, second = bits.TrailingZeros64(e.hour), bits.TrailingZeros64(e.minute), bits.TrailingZeros64(e.second)
	}
	return time.Date(y, m, d, hour, minute, second, 0, time.UTC), true
}

// clock returns the first time of day that is named, at or after the given one. If there is none it is false, with the day's first.
func (e Expr) clock(hour, minute, second int) (h, m, s int, ok bool) {
	h, m, s = next(e.hour, hour), next(e.minute, minute), next(e.second, second)
	if s == 64 {
		m = next(e.minute, minute+1)
	}
	if m == 64 || h != hour {
		if h == hour {
			h = next(e.hour, hour+1)
		}
		m = bits.TrailingZeros64(e.minute)
	}
	if h == 64 {
		h = bits.TrailingZeros64(e.hour)
		return h, bits.TrailingZeros64(e.minute), bits.TrailingZeros64(e.second), false
	}
	if h != hour || m != minute {
		s = bits.TrailingZeros64(e.second)
	}
	return h, m, s, true
}

// date returns the first day that is named, at or after the given one.
func (e Expr) date(year int, month time.Month, day int) (y int, m time.Month, d int, ok bool) {
	for y = year; y <= min(year+cycle, lastYear); y++ {
		if !e.anyYear {
			if y < minYear {
				y, year = minYear, minYear
				month, day = time.January, 1
			}
			if !e.years.has(y - minYear) {
				month, day = time.January, 1
				continue
			}
		}
		for m = time.Month(next(e.month, int(month))); m <= time.December; m = time.Month(next(e.month, int(m)+1)) {
			if m != month {
				day = 1
			}
			if d = next(e.days.in(y, m), day); d < 64 {
				return y, m, d, true
			}
		}
		month, day = time.January, 1
	}
	return 0, 0, 0, false
}

// next returns the first bit that is set, at or above i; 64 if there is none.
func next(set uint64, i int) int {
	return bits.TrailingZeros64(set >> i << i)
}
