package jobs_test

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type MailArgs struct {
	To string `json:"to"`
}

func (MailArgs) Kind() string { return "mail" }

// Priority 1 comes first within a queue; queues have slots of their own.
func Example_priorityAndQueue() {
	ctx, pool, done := exampleDatabase()
	defer done()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[MailArgs]) error {
		fmt.Println(job.Args.To, "- queue", job.Queue, "priority", job.Priority)
		return nil
	}))
	client, err := jobs.NewClient(pool, &jobs.Config{
		Queues:  map[string]jobs.QueueConfig{"mail": {MaxWorkers: 1}},
		Workers: workers,
	})
	check(err)
	events, cancel := client.Subscribe(river.EventKindJobCompleted)
	defer cancel()
	for to, priority := range map[string]int{"newsletter": 4, "receipt": 2, "password": 1} {
		_, err := client.Insert(ctx, MailArgs{To: to}, &river.InsertOpts{Queue: "mail", Priority: priority})
		check(err)
	}
	check(client.Start(ctx))
	for range 3 {
		<-events
	}
	check(client.Stop(ctx))

	// Output:
	// password - queue mail priority 1
	// receipt - queue mail priority 2
	// newsletter - queue mail priority 4
}
