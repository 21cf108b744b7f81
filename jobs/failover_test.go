package jobs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/internal/postgres"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// The primary dies, and a standby that is behind takes its place. Clients that know both addresses go over by themselves: what the
// standby has got is worked, from its own first row on, though the clients' marks are of the old primary; what ended before
// does not run again; a job that ran all the while ends once.
func TestFailoverToAStandbyThatIsBehind(t *testing.T) {
	t.Parallel()
	primary := pgtest.NewCluster(t, postgres.Config{NoSync: true})
	if err := schema.Up(t.Context(), primary.DSN("postgres"), schema.DefaultName); err != nil {
		t.Fatal(err)
	}
	standby := pgtest.NewStandby(t, primary)
	old := pgtest.Pool(t, primary.DSN("postgres"))
	either := pgtest.Pool(t, fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write",
		primary.Port(), standby.Port()))
	seen := &refusals{}
	b := newBlocking()
	const long = 1_000_000 // from here on jobs block
	work := func(ctx context.Context, job *river.Job[taskArgs]) error {
		if job.Args.N >= long {
			return b.work(ctx, job)
		}
		return nil
	}
	serve := func(queue string) *jobs.Client {
		c := config(work)
		c.Queues = map[string]jobs.QueueConfig{queue: {MaxWorkers: 10}}
		c.Observer = seen
		return start(t, either, c)
	}
	later := &river.InsertOpts{Queue: "later"}

	client := serve("default")
	var ended, running, waiting []int64
	for n := range 20 {
		ended = append(ended, insert(t, client, n, nil))
	}
	for n := range 3 {
		running = append(running, insert(t, client, long+n, nil))
		<-b.began
	}
	for n := range 50 {
		waiting = append(waiting, insert(t, client, n, later))
	}
	for _, id := range ended {
		waitOutcomes(t, old, id, "completed")
	}
	standby.AwaitCopy(t)
	standby.Lag()

	// All this is lost with the primary, but not what the clients remember of it.
	serve("later")
	for n := range 200 {
		insert(t, client, n, nil)
		insert(t, client, n, later)
	}
	pgtest.Eventually(t, patience, func() bool {
		return one[int](t, old, `SELECT count(*) FROM pelton.job_ready`) == 0 &&
			one[int](t, old, `SELECT count(*) FROM pelton.job_attempt`) == 470
	}, "the lines to be drained")
	var settled int64
	pgtest.Eventually(t, patience, func() bool {
		settled = one[int64](t, old, `SELECT max(settled) FROM pelton.floor WHERE relation = 'job_ready'`)
		return settled > 300
	}, "the marks to follow")
	old.Close()
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	standby.Promote(t)

	promoted := pgtest.Pool(t, standby.DSN("postgres"))
	for n := range 20 {
		waiting = append(waiting, insert(t, client, n, later), insert(t, client, n, nil))
	}
	// One that was claimed while its taker had yet to see the failover may have been handed back first, or, since the new primary does not know that taker, lost.
	before := strings.NewReplacer("returned ", "", "lost ", "")
	for _, id := range waiting {
		pgtest.Retry(t, patience, func(context.Context) error {
			if got := outcomes(t, promoted, id); before.Replace(got) != "completed" {
				return fmt.Errorf("job %d ended %q, want it completed once", id, got)
			}
			return nil
		})
	}
	if at := one[int64](t, promoted, `SELECT last_value FROM pelton.job_ready_seq`); at >= settled {
		t.Fatalf("the new primary is at position %d, the old one had settled %d: the test shows nothing", at, settled)
	}
	close(b.letGo)
	for _, id := range running {
		waitOutcomes(t, promoted, id, "completed")
	}
	for _, id := range ended {
		waitOutcomes(t, promoted, id, "completed")
	}
	pgtest.Eventually(t, patience, func() bool { return leases(t, promoted) == 0 }, "no lease is left")
	if n := seen.below.Load(); n != 0 {
		t.Errorf("%d lines had rows below their marks", n)
	}
	if len(b.began) > 0 {
		t.Errorf("%d long jobs began once more", len(b.began))
	}
	schematest.Audit(t, promoted)
}
