package jobs_test

import (
	"fmt"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type IndexArgs struct {
	Page int `json:"page"`
}

func (IndexArgs) Kind() string { return "index" }

// InsertManyFast enqueues thousands of jobs by COPY.
func ExampleClient_InsertManyFast() {
	ctx, pool, done := exampleDatabase()
	defer done()
	client, err := jobs.NewClient(pool, nil)
	check(err)
	params := make([]river.InsertManyParams, 5000)
	for i := range params {
		params[i].Args = IndexArgs{Page: i}
	}
	n, err := client.InsertManyFast(ctx, params)
	check(err)
	fmt.Println(n, "jobs")
	counts, err := client.JobCounts(ctx)
	check(err)
	fmt.Println(counts[0].Queue, counts[0].States)

	// Output:
	// 5000 jobs
	// default map[available:5000]
}
