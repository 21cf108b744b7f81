package tick

import (
	"math"
	"time"
)

// reach is more than two offsets of a zone can be apart, in seconds: what happens further off in time has no say in what a clock shows.
const reach = 48 * 60 * 60

// The ends of what has none.
const (
	minTime = math.MinInt64 / 4
	maxTime = math.MaxInt64 / 4
)

// A zone is a location whose clock can be asked.
type zone struct{ loc *time.Location }

// A span is a stretch of time in which the zone's clock runs evenly. Neighbours may have the same offset.
type span struct {
	start, end int64 // the end is not in it
	offset     int64 // the clock shows an instant plus offset
}

// span returns a stretch that holds an instant.
func (z zone) span(at int64) span {
	t := time.Unix(at, 0).In(z.loc)
	_, offset := t.Zone()
	s := span{start: minTime, end: maxTime, offset: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		s.start = min(start.Unix(), at)
	}
	if !end.IsZero() {
		s.end = end.Unix()
		if s.end <= at {
			// Go takes every year of a zone's rule for one of 365 days, and so ends a leap year's last day before it begins.
			s.end = at - at%day + day
		}
	}
	return s
}

const day = 24 * 60 * 60

// offset returns the clock's offset at an instant.
func (z zone) offset(at int64) int64 {
	_, offset := time.Unix(at, 0).In(z.loc).Zone()
	return int64(offset)
}

// A showing is when the zone's clock shows a time.
type showing struct {
	passes      int
	first, last int64 // the instants of the first and the last pass
	leap        int64 // when the clock first leaps over the time, if it does
}

func (z zone) showing(wall int64) showing {
	shown := showing{leap: maxTime}
	at := wall - reach
	for before := z.offset(at); at < wall+reach; {
		s := z.span(at)
		if shown.leap == maxTime && at+before <= wall && wall < at+s.offset {
			shown.leap = at
		}
		if pass := wall - s.offset; at <= pass && pass < s.end {
			if shown.passes == 0 {
				shown.first = pass
			}
			shown.last = pass
			shown.passes++
		}
		at, before = s.end, s.offset
	}
	return shown
}

// quiet reports whether the clock is changed at an instant, and not again before or after it within reach.
func (z zone) quiet(at int64) bool {
	return z.span(at-1).start <= at-reach && z.span(at).end >= at+reach
}
