package store

import (
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs/internal/state"
)

func TestWaitBuckets(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int{
		-time.Second: 0, 0: 0, time.Millisecond - 1: 0, time.Millisecond: 1, 2 * time.Millisecond: 2, 3 * time.Millisecond: 2, 4 * time.Millisecond: 3,
		1 << 24 * time.Millisecond: 25, 1000 * time.Hour: 25, (1<<24 - 1) * time.Millisecond: 24,
	} {
		if got := waitBucket(wait); got != want {
			t.Errorf("%v is in %d, want %d", wait, got, want)
		}
	}
	var one Tally
	one.Count(state.Completed, true, 0)
	one.Count(state.Lost, false, time.Hour)
	one.Add(one)
	if one.Completed != 2 || one.Waits[0] != 2 || one.Failed+one.Cancelled+one.Discarded != 0 {
		t.Errorf("%+v", one)
	}
}
