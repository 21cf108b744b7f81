package jobs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type FetchArgs struct{}

func (FetchArgs) Kind() string { return "fetch" }

// A snooze puts a job off and does not count as an attempt.
func Example_snooze() {
	ctx, pool, done := exampleDatabase()
	defer done()
	ready := false
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[FetchArgs]) error {
		if !ready {
			ready = true
			return river.JobSnooze(10 * time.Millisecond)
		}
		return nil
	}))
	client, err := jobs.NewClient(pool, inOneSlot(workers))
	check(err)
	events, cancel := client.Subscribe(river.EventKindJobSnoozed, river.EventKindJobCompleted)
	defer cancel()
	check(client.Start(ctx))

	_, err = client.Insert(ctx, FetchArgs{}, &river.InsertOpts{MaxAttempts: 1})
	check(err)
	fmt.Println(ended(events))
	fmt.Println(ended(events))
	check(client.Stop(ctx))

	// Output:
	// scheduled, attempt 0 of 1
	// completed, attempt 1 of 1
}
