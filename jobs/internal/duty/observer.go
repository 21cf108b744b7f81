package duty

import (
	"time"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// Observer judges who is dead by what it saw itself: a heartbeat counter that stood still for the lease time, on the own
// monotonic clock, over an unbroken series of looks. No timestamp of the database's is believed. Pure, and not safe for
// concurrent use.
type Observer struct {
	lease  time.Duration
	maxGap time.Duration // between two looks of one series
	last   time.Time     // end of the last look; zero: none
	seen   map[int64]sighting
}

// sighting is the first look at which a counter had its present value.
type sighting struct {
	count int64
	since time.Time
}

// NewObserver makes an observer. Looks that are more than maxGap apart do not belong together: this process was stopped
// itself, and maybe those it watches with it.
func NewObserver(lease, maxGap time.Duration) *Observer {
	return &Observer{lease: lease, maxGap: maxGap, seen: map[int64]sighting{}}
}

// Forget starts the observation anew. To be called after every look that failed.
func (o *Observer) Forget() {
	o.last = time.Time{}
	clear(o.seen)
}

// Look takes in what a look that began and ended at these times saw, and returns those that are dead by now.
func (o *Observer) Look(began, ended time.Time, beats []store.Beat) []store.Beat {
	if !o.last.IsZero() && ended.Sub(o.last) > o.maxGap {
		o.Forget()
	}
	o.last = ended
	seen := make(map[int64]sighting, len(beats))
	var dead []store.Beat
	for _, b := range beats {
		if !b.Alive {
			continue
		}
		s, known := o.seen[b.Executor]
		if !known || s.count != b.Count {
			s = sighting{count: b.Count, since: ended}
		}
		seen[b.Executor] = s
		if began.Sub(s.since) >= o.lease {
			dead = append(dead, b)
		}
	}
	o.seen = seen
	return dead
}
