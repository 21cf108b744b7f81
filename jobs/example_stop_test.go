package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type CrunchArgs struct{}

func (CrunchArgs) Kind() string { return "crunch" }

// Stop waits for running jobs as long as it is given; StopAndCancel then ends their contexts. What was interrupted is handed
// back and does not count as an attempt.
func ExampleClient_Stop() {
	ctx, pool, done := exampleDatabase()
	defer done()
	began := make(chan struct{})
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[CrunchArgs]) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}))
	client, err := jobs.NewClient(pool, inOneSlot(workers))
	check(err)
	check(client.Start(ctx))
	inserted, err := client.Insert(ctx, CrunchArgs{}, nil)
	check(err)
	<-began

	soft, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := client.Stop(soft); errors.Is(err, context.DeadlineExceeded) {
		fmt.Println("a job still runs")
		check(client.StopAndCancel(ctx))
	}
	job, err := client.JobGet(ctx, inserted.Job.ID)
	check(err)
	fmt.Println(job.State, "after", job.Attempt, "attempts")

	// Output:
	// a job still runs
	// available after 0 attempts
}
