package jobs_test

import (
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type RemindArgs struct{}

func (RemindArgs) Kind() string { return "remind" }

// A job for later is scheduled until its time. JobReschedule gives it another one; JobRetry makes it available now.
func Example_scheduledJob() {
	ctx, pool, done := exampleDatabase()
	defer done()
	client, err := jobs.NewClient(pool, nil)
	check(err)
	inserted, err := client.Insert(ctx, RemindArgs{}, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)})
	check(err)
	fmt.Println(inserted.Job.State)
	job, err := client.JobReschedule(ctx, inserted.Job.ID, time.Now().Add(24*time.Hour), nil)
	check(err)
	fmt.Println(job.State, job.ScheduledAt.After(inserted.Job.ScheduledAt))
	job, err = client.JobRetry(ctx, inserted.Job.ID)
	check(err)
	fmt.Println(job.State)

	// Output:
	// scheduled
	// scheduled true
	// available
}
