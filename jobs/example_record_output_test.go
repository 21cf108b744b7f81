package jobs_test

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type SumArgs struct {
	Numbers []int `json:"numbers"`
}

func (SumArgs) Kind() string { return "sum" }

// RecordOutput keeps a result with the job, MetadataSet a key of its metadata.
func ExampleRecordOutput() {
	ctx, pool, done := exampleDatabase()
	defer done()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[SumArgs]) error {
		sum := 0
		for _, n := range job.Args.Numbers {
			sum += n
		}
		jobs.Logger(ctx).InfoContext(ctx, "added up", "numbers", len(job.Args.Numbers)) // a line of the job's log
		if err := jobs.MetadataSet(ctx, "numbers", len(job.Args.Numbers)); err != nil {
			return err
		}
		return jobs.RecordOutput(ctx, map[string]int{"sum": sum})
	}))
	client, err := jobs.NewClient(pool, inOneSlot(workers))
	check(err)
	events, cancel := client.Subscribe(river.EventKindJobCompleted)
	defer cancel()
	check(client.Start(ctx))

	inserted, err := client.Insert(ctx, SumArgs{Numbers: []int{1, 2, 3}}, nil)
	check(err)
	<-events
	job, err := client.JobGet(ctx, inserted.Job.ID)
	check(err)
	fmt.Printf("%s\n%s\n", job.Output(), job.Metadata)
	check(client.Stop(ctx))

	// Output:
	// {"sum":6}
	// {"numbers":3,"output":{"sum":6}}
}
