package periodic_test

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/periodic"
)

// Put stores a schedule or changes it, and says which; what is wrong with it is said at once.
func ExampleClient_Put() {
	ctx, _, schedules, done := service(&periodic.Config{}, ignore)
	defer done()

	nightly := periodic.Schedule{
		Name: "nightly", Cron: "30 2 * * *", TimeZone: "America/New_York", Overlap: periodic.OverlapSkip, Missed: periodic.MissedLatest,
		Job: &periodic.JobTarget{Kind: "sum", Args: []byte(`{"table":"orders"}`)},
	}
	for _, cron := range []string{"30 2 * * *", "30 2 * * *", "0 3 * * *"} {
		nightly.Cron = cron
		result, err := schedules.Put(ctx, nightly)
		check(err)
		fmt.Println(result.Change, "version", result.Schedule.Version)
	}
	nightly.Cron, nightly.TimeZone = "0 25 * * *", "America/Gotham"
	_, err := schedules.Put(ctx, nightly)
	fmt.Println(err)

	// Output:
	// created version 1
	// unchanged version 1
	// changed version 2
	// schedule "nightly":
	//   time zone: "America/Gotham" is not known; want an IANA name such as Europe/Berlin
	//   cron: hour: 25 is above 23
}

// In a transaction a schedule is there, if and when that commits, with all else that it does.
func ExampleClient_PutTx() {
	ctx, pool, schedules, done := service(&periodic.Config{}, ignore)
	defer done()
	put := func(fail error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := schedules.PutTx(ctx, tx, periodic.Schedule{Name: "customer 7", Cron: "@daily", Job: &periodic.JobTarget{Kind: "sum"}})
			return errors.Join(err, fail)
		})
	}
	_ = put(errors.New("the customer changes his mind"))
	_, err := schedules.Get(ctx, "customer 7")
	fmt.Println(errors.Is(err, periodic.ErrNotFound))
	check(put(nil))
	entry, err := schedules.Get(ctx, "customer 7")
	check(err)
	fmt.Println(entry.Name, entry.Cron)

	// Output:
	// true
	// customer 7 @daily
}

// A pause keeps ticks from running. What becomes of them when it ends says AfterPause: by default they are skipped.
func ExampleClient_Pause() {
	ctx, _, schedules, done := service(&periodic.Config{}, ignore)
	defer done()
	_, err := schedules.Put(ctx, periodic.Schedule{Name: "nightly", Cron: "30 2 * * *", Job: &periodic.JobTarget{Kind: "sum"}})
	check(err)
	entry, err := schedules.Pause(ctx, "nightly")
	check(err)
	fmt.Println("paused:", entry.PausedAt != nil, entry.PausedWhy, "next:", entry.NextAt != nil)
	entry, err = schedules.Resume(ctx, "nightly")
	check(err)
	fmt.Println("paused:", entry.PausedAt != nil, "next:", entry.NextAt.Format("15:04"))

	// Output:
	// paused: true person next: false
	// paused: false next: 02:30
}
