package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/schema/schematest"
)

// seldom retries after an hour, which no test lasts.
type seldom struct{}

func (seldom) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(time.Hour) }

// What executors count is in queue_tally when they have stopped, added up over them, by outcome and by wait.
func TestTally(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	work := func(_ context.Context, job *river.Job[taskArgs]) error {
		switch job.Args.N {
		case 1:
			return errors.New("fails")
		case 2:
			return river.JobCancel(errors.New("cancels itself"))
		case 3:
			return river.JobSnooze(time.Hour)
		}
		return nil
	}
	inserter := newClient(t, pool, config(work))
	for _, wait := range []string{"0", "3 s"} { // two processes, one after the other
		last := insert(t, inserter, 1, &river.InsertOpts{MaxAttempts: 1})
		var ids []int64
		for _, n := range []int{0, 0, 0, 1, 2, 3} {
			ids = append(ids, insert(t, inserter, n, nil))
		}
		exec(t, pool, `UPDATE pelton.job_ready SET entered_at = entered_at - $1::interval`, wait)
		c := config(work)
		c.RetryPolicy = seldom{}
		client := newClient(t, pool, c)
		if err := client.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		waitState(t, inserter, last, rivertype.JobStateDiscarded)
		for i, state := range []rivertype.JobState{
			rivertype.JobStateCompleted, rivertype.JobStateCompleted, rivertype.JobStateCompleted,
			rivertype.JobStateRetryable, rivertype.JobStateCancelled, rivertype.JobStateScheduled,
		} {
			waitState(t, inserter, ids[i], state)
		}
		if err := client.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var queues, short, long, columns int
	var counts [4]int
	if err := pool.QueryRow(t.Context(), `SELECT count(DISTINCT queue), sum(completed), sum(failed), sum(cancelled), sum(discarded),
			sum((SELECT sum(n) FROM unnest(waits[:12]) n)), sum((SELECT sum(n) FROM unnest(waits[13:]) n)), max(cardinality(waits)) FROM pelton.queue_tally
			WHERE minute = date_trunc('minute', minute) AND minute BETWEEN now() - interval '5 min' AND now()`).
		Scan(&queues, &counts[0], &counts[1], &counts[2], &counts[3], &short, &long, &columns); err != nil {
		t.Fatal(err)
	}
	// 12 buckets end at 2048 ms.
	if counts != [4]int{6, 2, 2, 2} || queues != 1 || columns != 26 {
		t.Errorf("%v of %d queues, %d buckets; want 6 completed, 2 failed, 2 cancelled, 2 discarded", counts, queues, columns)
	}
	if short+long != 14 || long < 7 { // a busy machine has more of them wait long
		t.Errorf("waits: %d short, %d long; want 7 and 7", short, long)
	}
}
