package periodic_test

import (
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/periodic"
)

// Trigger starts a run now, beside the ticks.
func ExampleClient_Trigger() {
	worked := make(chan string)
	ctx, _, schedules, done := service(&periodic.Config{}, func(job *river.Job[SumArgs]) { worked <- job.Args.Table })
	defer done()
	_, err := schedules.Put(ctx, periodic.Schedule{
		Name: "nightly", Cron: "30 2 * * *", Job: &periodic.JobTarget{Kind: "sum", Args: []byte(`{"table":"orders"}`)},
	})
	check(err)
	triggered, err := schedules.Trigger(ctx, "nightly")
	check(err)
	fmt.Println(triggered.Tick.Source, triggered.Tick.Outcome)
	fmt.Println("summed up", <-worked)

	// Output:
	// trigger fired
	// summed up orders
}

// A backfill runs ticks of the past, in order. A job learns its tick from TickOf: the day that it is about, whenever it runs.
func ExampleClient_Backfill() {
	ctx, _, schedules, done := service(&periodic.Config{}, func(job *river.Job[SumArgs]) {
		name, tick, _ := periodic.TickOf(job.JobRow)
		fmt.Println(name, tick.In(day("2026-03-07").Location()).Format("Mon Jan 2 15:04 MST"))
	})
	defer done()
	_, err := schedules.Put(ctx, periodic.Schedule{
		Name: "nightly", Cron: "30 2 * * *", TimeZone: "America/New_York", Job: &periodic.JobTarget{Kind: "sum"},
	})
	check(err)
	backfill, err := schedules.Backfill(ctx, "nightly", periodic.BackfillParams{From: day("2026-03-07"), To: day("2026-03-10")})
	check(err)
	backfill, err = schedules.BackfillEnded(ctx, backfill.ID, nil)
	check(err)
	fmt.Printf("%s: %d of %d succeeded\n", backfill.Status, backfill.Succeeded, backfill.Total)

	// Output:
	// nightly Sat Mar 7 02:30 EST
	// nightly Sun Mar 8 03:00 EDT
	// nightly Mon Mar 9 02:30 EDT
	// completed: 3 of 3 succeeded
}

// TickOf tells a job which tick it is of.
func ExampleTickOf() {
	ticks := make(chan string)
	ctx, _, schedules, done := service(&periodic.Config{}, func(job *river.Job[SumArgs]) {
		name, tick, ok := periodic.TickOf(job.JobRow)
		ticks <- fmt.Sprint(name, " ", tick.Format(time.RFC3339), " ", ok)
	})
	defer done()
	_, err := schedules.Put(ctx, periodic.Schedule{Name: "yearly", Cron: "@yearly", Job: &periodic.JobTarget{Kind: "sum"}})
	check(err)
	newYear := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err = schedules.Backfill(ctx, "yearly", periodic.BackfillParams{From: newYear, To: newYear})
	check(err)
	fmt.Println(<-ticks)

	// Output:
	// yearly 2026-01-01T00:00:00Z true
}

// Preview shows what clock changes do to a schedule: here 2:30 is left out on March 8.
func ExamplePreview() {
	ticks, err := periodic.Preview(periodic.Schedule{Cron: "30 2 * * *", TimeZone: "America/New_York"}, day("2026-03-07"), 3)
	check(err)
	for _, t := range ticks {
		fmt.Printf("%s %q\n", t.At.Format(time.RFC3339), t.Note)
	}

	// Output:
	// 2026-03-07T02:30:00-05:00 ""
	// 2026-03-08T03:00:00-04:00 "moved"
	// 2026-03-09T02:30:00-04:00 ""
}
