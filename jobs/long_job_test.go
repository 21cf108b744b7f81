package jobs_test

import (
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// A job runs for many leases in a process that lives, watched by two more schedulers: for two leases of six seconds, or for three
// hours with the default lease with PELTON_SCENARIOS=full. It is not rescued.
func TestLongJobIsNotRescued(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	heartbeat, lease, last := 50*time.Millisecond, 6*time.Second, 12*time.Second
	if pgtest.FullSize() {
		heartbeat, lease, last = 5*time.Second, 30*time.Second, 3*time.Hour
	}
	b := newBlocking()
	seen := &refusals{}
	c := config(b.work)
	c.Heartbeat, c.Lease, c.JobTimeout, c.Observer = heartbeat, lease, -1, seen
	client := start(t, pool, c)
	for range 2 {
		scheduler := config(nil)
		scheduler.Queues, scheduler.Workers = nil, nil
		scheduler.Heartbeat, scheduler.Lease = heartbeat, lease
		start(t, pool, scheduler)
	}
	id := insert(t, client, 1, nil)
	<-b.began
	select {
	case <-time.After(last):
	case <-b.began:
		t.Fatal("the job began once more")
	}
	// The schedulers look, all the while: they have ended the lease of a process that there is not.
	exec(t, pool, `INSERT INTO pelton.job_lease (executor, no, job_ids) VALUES (-1, 1, '{1}')`)
	pgtest.Eventually(t, lease+patience, func() bool {
		return one[int](t, pool, `SELECT count(*) FROM pelton.job_lease WHERE executor = -1`) == 0
	}, "the schedulers to look")
	if got := outcomes(t, pool, id); got != "" {
		t.Errorf("the job ended %q while it ran", got)
	}
	close(b.letGo)
	waitOutcomes(t, pool, id, "completed")
	if n := seen.n.Load(); n != 0 || len(b.began) > 0 {
		t.Errorf("%d results were refused, the job began %d times more", n, len(b.began))
	}
}
