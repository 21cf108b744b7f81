package jobs_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type SortArgs struct {
	Words []string `json:"words"`
}

func (SortArgs) Kind() string { return "sort" }

// SortWorker is written to River's contract: nothing of it is Pelton's.
type SortWorker struct {
	river.WorkerDefaults[SortArgs]
}

func (*SortWorker) Work(_ context.Context, job *river.Job[SortArgs]) error {
	slices.Sort(job.Args.Words)
	fmt.Println(job.Args.Words)
	return nil
}

// A worker and its args are River's; the client and the registration are Pelton's.
func Example_insertAndWork() {
	ctx, pool, done := exampleDatabase()
	defer done()

	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, &SortWorker{})
	client, err := jobs.NewClient(pool, &jobs.Config{
		Queues:  map[string]jobs.QueueConfig{jobs.QueueDefault: {MaxWorkers: 100}},
		Workers: workers,
	})
	check(err)
	events, cancel := client.Subscribe(river.EventKindJobCompleted)
	defer cancel()
	check(client.Start(ctx))

	_, err = client.Insert(ctx, SortArgs{Words: []string{"whale", "tiger", "bear"}}, nil)
	check(err)
	fmt.Println(ended(events))
	check(client.Stop(ctx))

	// Output:
	// [bear tiger whale]
	// completed, attempt 1 of 25
}
