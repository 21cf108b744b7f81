package duty

import "github.com/peltonq/pelton/jobs/internal/store"

// NewMover makes a mover alone.
func NewMover(st *store.Store, c Config) *Mover {
	return newMover(st, c.withDefaults(), func(int) {}, func() {})
}

// NewReaper makes a reaper alone.
func NewReaper(st *store.Store, c Config) *Reaper { return newReaper(st, c.withDefaults()) }

// NewSweeper makes a sweeper alone.
func NewSweeper(st *store.Store, c Config) *Sweeper { return newSweeper(st, c.withDefaults()) }
