package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
)

type CallArgs struct{}

func (CallArgs) Kind() string { return "call" }

// soon retries ten milliseconds after the last error.
type soon struct{}

func (soon) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(10 * time.Millisecond) }

// A retry policy of the client says when a failed job runs again; a worker's NextRetry comes before it.
func Example_retryPolicy() {
	ctx, pool, done := exampleDatabase()
	defer done()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[CallArgs]) error {
		fmt.Println("attempt", job.Attempt, "after", len(job.Errors), "errors")
		return errors.New("nobody answers")
	}))
	config := inOneSlot(workers)
	config.RetryPolicy = soon{}
	client, err := jobs.NewClient(pool, config)
	check(err)
	events, cancel := client.Subscribe(river.EventKindJobFailed)
	defer cancel()
	check(client.Start(ctx))

	_, err = client.Insert(ctx, CallArgs{}, &river.InsertOpts{MaxAttempts: 3})
	check(err)
	fmt.Println(ended(events))
	fmt.Println(ended(events))
	fmt.Println(ended(events))
	check(client.Stop(ctx))

	letters, err := client.DeadList(ctx, nil)
	check(err)
	fmt.Println("dead letters:", len(letters), letters[0].Reason)

	// Output:
	// attempt 1 after 0 errors
	// retryable, attempt 1 of 3
	// attempt 2 after 1 errors
	// retryable, attempt 2 of 3
	// attempt 3 after 2 errors
	// discarded, attempt 3 of 3
	// dead letters: 1 exhausted
}
