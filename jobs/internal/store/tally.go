package store

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// WaitBuckets is how many counts by wait a tally has: below 1 ms, 2 ms, 4 ms, ... 2^24 ms, and longer.
const WaitBuckets = 26

// Tally is how the runs of a queue ended in a minute.
type Tally struct {
	Completed, Failed, Cancelled, Discarded int32
	Waits                                   [WaitBuckets]int32
}

// TallyKey says of which minute and queue.
type TallyKey struct {
	Minute time.Time
	Queue  string
}

// Count counts a run that has ended: what it came to, and, if it had started, how long it had waited for that.
func (t *Tally) Count(outcome state.Outcome, started bool, wait time.Duration) {
	switch outcome {
	case state.Completed:
		t.Completed++
	case state.Errored:
		t.Failed++
	case state.Cancelled:
		t.Cancelled++
	case state.Discarded:
		t.Discarded++
	case state.Lost, state.Snoozed, state.Returned, state.Parked, state.Moved, state.Retried:
	}
	if started {
		t.Waits[waitBucket(wait)]++
	}
}

// Add adds another tally of the same minute and queue.
func (t *Tally) Add(other Tally) {
	t.Completed, t.Failed = t.Completed+other.Completed, t.Failed+other.Failed
	t.Cancelled, t.Discarded = t.Cancelled+other.Cancelled, t.Discarded+other.Discarded
	for i, n := range other.Waits {
		t.Waits[i] += n
	}
}

// waitBucket is the place of a wait: 0 below 1 ms, i below 2^i ms.
func waitBucket(wait time.Duration) int {
	return min(bits.Len64(uint64(max(wait, 0).Milliseconds())), WaitBuckets-1) //nolint:gosec // not negative
}

// AddTallies adds tallies to those that are stored, in one statement.
func (s *Store) AddTallies(ctx context.Context, tallies map[TallyKey]Tally) error {
	var minutes []time.Time
	var queues []string
	var counts [4][]int32
	var waits []int32
	for key, t := range tallies {
		minutes, queues = append(minutes, key.Minute), append(queues, key.Queue)
		for i, n := range []int32{t.Completed, t.Failed, t.Cancelled, t.Discarded} {
			counts[i] = append(counts[i], n)
		}
		waits = append(waits, t.Waits[:]...)
	}
	err := s.Tx(ctx, Limits{Statement: 10 * time.Second}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, s.sql.Get("add_tallies"), minutes, queues, counts[0], counts[1], counts[2], counts[3], waits, int32(WaitBuckets))
		return err
	})
	if err != nil {
		return fmt.Errorf("add tallies of %d minutes: %w", len(tallies), err)
	}
	return nil
}
