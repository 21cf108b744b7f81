package duty

import (
	"context"
	"time"

	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	sweepPage  = 1000 // unique keys looked at in one statement
	sweepPages = 10   // in one round
	voidBatch  = 1000 // voids looked at in one transaction
	voidPages  = 10   // in one round
)

// Sweeper removes what was left behind: unique keys that their jobs hold no longer, because a process was killed between a
// finish and what follows it; voided runs in lines that nobody claims from; cancels that a retry ran into; voids that hold for nothing.
type Sweeper struct {
	store *store.Store
	every time.Duration
	grace time.Duration // voids younger than this are left to those who claim
	next  []byte        // unique key to go on after
}

func newSweeper(st *store.Store, c Config) *Sweeper {
	return &Sweeper{store: st, every: c.Sweep, grace: c.VoidGrace}
}

// Step makes one round. With nothing to do it is one small statement.
func (s *Sweeper) Step(ctx context.Context) (time.Duration, error) {
	voids, keys, err := s.store.AnythingToSweep(ctx)
	if err != nil {
		return 0, err
	}
	if keys {
		if err := s.sweepKeys(ctx); err != nil {
			return 0, err
		}
	}
	if voids {
		if err := s.sweepVoids(ctx); err != nil {
			return 0, err
		}
	}
	return s.every, nil
}

// sweepKeys goes through a bounded number of keys, and on from there in the next round.
func (s *Sweeper) sweepKeys(ctx context.Context) error {
	for range sweepPages {
		_, last, err := s.store.SweepKeys(ctx, s.next, sweepPage)
		if err != nil {
			return err
		}
		s.next = last
		if last == nil {
			return nil
		}
	}
	return nil
}

func (s *Sweeper) sweepVoids(ctx context.Context) error {
	if _, err := s.store.CancelWaiting(ctx, nil); err != nil {
		return err
	}
	for range voidPages {
		n, err := s.store.HonourInLine(ctx, s.grace, voidBatch)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	_, err := s.store.SweepVoids(ctx, s.grace, voidBatch)
	return err
}
