package jobs_test

import (
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type ReportArgs struct {
	Account int    `json:"account" river:"unique"`
	Trace   string `json:"trace"` // does not count
}

func (ReportArgs) Kind() string { return "report" }

func (ReportArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: 24 * time.Hour}}
}

// A unique job is skipped while another one with its key waits, runs or has completed.
func Example_uniqueJob() {
	ctx, pool, done := exampleDatabase()
	defer done()
	client, err := jobs.NewClient(pool, nil)
	check(err)
	for _, args := range []ReportArgs{{1, "a"}, {2, "b"}, {1, "c"}} {
		inserted, err := client.Insert(ctx, args, nil)
		check(err)
		fmt.Println("account", args.Account, "skipped:", inserted.UniqueSkippedAsDuplicate)
	}

	// Output:
	// account 1 skipped: false
	// account 2 skipped: false
	// account 1 skipped: true
}
