package api

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
)

// A long line is counted once, and then in the background; a short one for each request.
func TestCountsInBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var waiting, counted int64
		took := 200 * time.Millisecond
		c := &counts{ending: t.Context(), log: slog.New(slog.DiscardHandler), count: func(context.Context) ([]jobs.QueueCounts, error) {
			counted++
			n := waiting
			<-time.After(took)
			return []jobs.QueueCounts{{Queue: "q", States: map[rivertype.JobState]int64{rivertype.JobStateAvailable: n}}}, nil
		}}
		// expect asks once, and expects so many jobs after so long.
		expect := func(want int64, after time.Duration) {
			t.Helper()
			began := time.Now()
			got, at, err := c.get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := got[0].States[rivertype.JobStateAvailable]; n != want || time.Since(began) != after || at.After(began) {
				t.Errorf("%d jobs after %v, counted at %v; want %d after %v", n, time.Since(began), at, want, after)
			}
		}
		waiting = 100
		expect(100, took)
		waiting = countsExact + 1
		expect(countsExact+1, took)
		waiting = 1_000_000
		expect(countsExact+1, 0) // from the count before
		if synctest.Wait(); counted != 2 {
			t.Errorf("counted %d times, want 2", counted)
		}
		<-time.After(countsRest * took)
		expect(countsExact+1, 0) // and counts in the background
		<-time.After(took)
		synctest.Wait() // it ends in the same moment
		expect(1_000_000, 0)
		if counted != 3 {
			t.Errorf("counted %d times, want 3", counted)
		}
		<-time.After(countsStale)
		waiting = 0
		expect(0, took) // what is there is too old to be shown
		waiting, took = 1_000_000, countsBriefly
		expect(1_000_000, took)
		waiting = 1_000_001
		expect(1_000_001, took) // counting is quick
	})
}
