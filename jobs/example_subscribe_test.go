package jobs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type FlipArgs struct {
	Heads bool `json:"heads"`
}

func (FlipArgs) Kind() string { return "flip" }

// Subscribe tells how jobs that this client works end.
func ExampleClient_Subscribe() {
	ctx, pool, done := exampleDatabase()
	defer done()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[FlipArgs]) error {
		if !job.Args.Heads {
			return errors.New("tails")
		}
		return nil
	}))
	client, err := jobs.NewClient(pool, inOneSlot(workers))
	check(err)
	completed, cancelCompleted := client.Subscribe(river.EventKindJobCompleted)
	defer cancelCompleted()
	failed, cancelFailed := client.Subscribe(river.EventKindJobFailed)
	defer cancelFailed()
	check(client.Start(ctx))

	for _, heads := range []bool{true, false} {
		_, err := client.Insert(ctx, FlipArgs{Heads: heads}, nil)
		check(err)
	}
	event := <-completed
	fmt.Println(event.Kind, event.Job.State)
	event = <-failed
	fmt.Println(event.Kind, event.Job.State, event.Job.Errors[0].Error)
	check(client.Stop(ctx))

	// Output:
	// job_completed completed
	// job_failed retryable tails
}
