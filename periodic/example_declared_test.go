package periodic_test

import (
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/periodic"
)

// A service declares its schedules, and they are kept in step when it starts. People may pause them, but not change them.
func Example_declared() {
	ctx, _, schedules, done := service(&periodic.Config{
		Owner: "shop",
		Schedules: []*periodic.Declared{
			{Schedule: periodic.Schedule{Name: "shop/cleanup", Cron: "0 4 * * *", Job: &periodic.JobTarget{Kind: "sum"}}},
			{
				Schedule: periodic.Schedule{Name: "shop/report", Cron: "0 0 18 L * ?", TimeZone: "Europe/Berlin"},
				Job:      func() (river.JobArgs, *river.InsertOpts) { return SumArgs{Table: "orders"}, nil },
			},
		},
	}, ignore)
	defer done()
	entries, err := schedules.List(ctx, periodic.ListParams{Prefix: "shop/"})
	check(err)
	for _, e := range entries {
		fmt.Println(e.Name, "of", e.Owner, "is", e.Cron)
	}

	// Output:
	// shop/cleanup of shop is 0 4 * * *
	// shop/report of shop is 0 0 18 L * ?
}

// NewPeriodicJob takes what River's takes. Anything with a method Next can say when.
func ExampleNewPeriodicJob() {
	worked := make(chan string)
	_, _, _, done := service(&periodic.Config{
		Owner: "shop",
		Schedules: []*periodic.Declared{
			periodic.NewPeriodicJob(
				river.PeriodicInterval(15*time.Minute),
				func() (river.JobArgs, *river.InsertOpts) { return SumArgs{Table: "orders"}, nil },
				&river.PeriodicJobOpts{RunOnStart: true},
			),
		},
	}, func(job *river.Job[SumArgs]) {
		name, _, _ := periodic.TickOf(job.JobRow)
		worked <- name + " " + job.Args.Table
	})
	defer done()
	fmt.Println(<-worked)

	// Output:
	// sum orders
}
