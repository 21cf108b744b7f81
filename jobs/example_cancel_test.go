package jobs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
)

type ChargeArgs struct {
	Card string `json:"card"`
}

func (ChargeArgs) Kind() string { return "charge" }

// A worker that returns river.JobCancel ends its job for good.
func Example_cancelFromWorker() {
	ctx, pool, done := exampleDatabase()
	defer done()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[ChargeArgs]) error {
		return river.JobCancel(fmt.Errorf("card %s was reported stolen", job.Args.Card))
	}))
	client, err := jobs.NewClient(pool, inOneSlot(workers))
	check(err)
	events, cancel := client.Subscribe(river.EventKindJobCancelled)
	defer cancel()
	check(client.Start(ctx))

	_, err = client.Insert(ctx, ChargeArgs{Card: "1234"}, nil)
	check(err)
	event := <-events
	fmt.Println(event.Job.State, "-", event.Job.Errors[0].Error)
	check(client.Stop(ctx))

	// Output:
	// cancelled - JobCancelError: card 1234 was reported stolen
}

// JobCancel keeps a waiting job from running, and ends the context of a running one.
func ExampleClient_JobCancel() {
	ctx, pool, done := exampleDatabase()
	defer done()
	began := make(chan int64)
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[ChargeArgs]) error {
		began <- job.ID
		<-ctx.Done()
		fmt.Println("cancelled by a person:", errors.Is(context.Cause(ctx), rivertype.ErrJobCancelledRemotely))
		return ctx.Err()
	}))
	client, err := jobs.NewClient(pool, inOneSlot(workers))
	check(err)
	events, cancel := client.Subscribe(river.EventKindJobCancelled)
	defer cancel()

	waits, err := client.Insert(ctx, ChargeArgs{}, nil)
	check(err)
	job, err := client.JobCancel(ctx, waits.Job.ID)
	check(err)
	fmt.Println("waited, now", job.State)

	check(client.Start(ctx))
	_, err = client.Insert(ctx, ChargeArgs{}, nil)
	check(err)
	_, err = client.JobCancel(ctx, <-began)
	check(err)
	event := <-events // none came of the first one, which did not run
	fmt.Println("ran, now", event.Job.State)
	check(client.Stop(ctx))

	// Output:
	// waited, now cancelled
	// cancelled by a person: true
	// ran, now cancelled
}
