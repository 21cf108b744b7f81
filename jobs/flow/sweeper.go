package flow

import (
	"context"
	"time"

	"github.com/peltonq/pelton/internal/service"
)

const (
	sweepEvery = 10 * time.Minute // between two sweeps of old runs, versions and contents
	sweepAgain = 10 * time.Second // after one that failed
	sweepBatch = 100              // of each in a transaction
	sweepNodes = 2000             // nodes of runs that are gone, likewise
)

// sweeper deletes what is kept no longer, in small transactions and with rests, so that others have the better part of the disk. Any number
// of them may be at it.
type sweeper struct{ c *Client }

func newSweeper(c *Client) *sweeper { return &sweeper{c} }

func (s *sweeper) run(ctx context.Context) {
	for {
		wait := sweepEvery
		err := s.sweep(ctx)
		if ctx.Err() != nil {
			return
		}
		s.c.config.StepObserver.DutyStepped(dutySweep, wait, err)
		if err != nil {
			s.c.log.WarnContext(ctx, "sweep old runs of flows; trying again", "error", err)
			wait = sweepAgain
		}
		if !service.Sleep(ctx, wait) {
			return
		}
	}
}

func (s *sweeper) sweep(ctx context.Context) error {
	db := s.c.store
	for _, do := range []func() (more bool, err error){
		func() (bool, error) {
			runs, err := db.SweepRuns(ctx, s.c.config.Retention, sweepBatch)
			return runs == sweepBatch, err
		},
		func() (bool, error) { return db.SweepNodes(ctx, sweepNodes) },
		func() (bool, error) {
			versions, contents, err := db.SweepVersions(ctx, s.c.config.Retention, s.c.config.KeepVersions, sweepBatch)
			return versions == sweepBatch || contents == sweepBatch, err
		},
	} {
		if err := s.all(ctx, do); err != nil {
			return err
		}
	}
	return nil
}

// all does something until there is no more of it. It rests for as long as it worked.
func (s *sweeper) all(ctx context.Context, do func() (more bool, err error)) error {
	for {
		start := time.Now()
		more, err := do()
		if err != nil || !more {
			return err
		}
		if !service.Sleep(ctx, time.Since(start)) {
			return ctx.Err()
		}
	}
}
