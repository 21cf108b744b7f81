package duty

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// Set is all duties of one process.
type Set struct {
	store  *store.Store
	config Config
	mover  *Mover
	reaper *Reaper
	moved  atomic.Int64 // jobs moved since the marker last asked

	moving, marking, markingTimes *loop
	loops                         []*loop
	notes                         *notebook
}

// New makes a set. It does nothing before Start.
func New(st *store.Store, config Config) *Set {
	c := config.withDefaults()
	s := &Set{store: st, config: c, reaper: newReaper(st, c), notes: newNotebook(st, c)}
	s.mover = newMover(st, c, s.hasMoved, s.HintBusy)
	s.moving = newLoop("mover", c.Log, s.mover.Step)
	s.moving.hinted = moveHinted
	s.marking = s.markLoop("marker", floor.Ready, nil)
	s.markingTimes = s.markLoop("marker of scheduled jobs", floor.Scheduled, &s.moved)
	s.loops = []*loop{
		s.moving, s.marking, s.markingTimes,
		newLoop("reaper", c.Log, s.reaper.Step),
		newLoop("sweeper", c.Log, newSweeper(st, c).Step),
	}
	if c.Keep != nil {
		s.loops = append(s.loops, newLoop("keeper", c.Log, func(ctx context.Context) (time.Duration, error) {
			return c.KeepEvery, c.Keep(ctx)
		}))
	}
	for _, l := range s.loops {
		l.stepped = s.notes.stepped
	}
	return s
}

// Start starts the duties. It does not block, and may be called again.
func (s *Set) Start(ctx context.Context) {
	for _, l := range s.loops {
		l.Start(ctx)
	}
	s.notes.Start(ctx)
}

// Stop ends the duties and waits for them; each finishes or rolls back what it is at.
func (s *Set) Stop() {
	var stopping sync.WaitGroup
	stopping.Go(s.notes.Stop)
	for _, l := range s.loops {
		stopping.Go(l.Stop)
	}
	stopping.Wait()
}

// HintDue tells that a job is being scheduled, maybe for soon and maybe in a transaction that is still open, so that the
// mover looks at once and often for a while.
func (s *Set) HintDue() {
	s.mover.Expect()
	s.moving.Hint()
}

// LookDue makes the mover look once, because something was enqueued somewhere.
func (s *Set) LookDue() { s.moving.Hint() }

// HintBusy tells that claims find work, so that the marker does not sleep long. Cheap enough for every claim.
func (s *Set) HintBusy() { s.marking.Hint() }

func (s *Set) hasMoved(n int) {
	s.moved.Add(int64(n))
	s.markingTimes.Hint()
}

// markLoop makes the loop of a marker; moved counts what was taken from a table that is ordered by time.
func (s *Set) markLoop(name string, relation floor.Relation, moved *atomic.Int64) *loop {
	marker := floor.NewMarker(s.store.Schema, relation, s.config.Mark)
	l := newLoop(name, s.config.Log, func(ctx context.Context) (time.Duration, error) {
		if moved != nil {
			marker.Moved(int(moved.Swap(0)))
		}
		return marker.Step(ctx, s.store.Pool)
	})
	l.hinted = marker.Pace()
	return l
}
