package duty_test

import (
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs/internal/duty"
)

func sweep(t *testing.T, f *fixture) {
	t.Helper()
	if _, err := duty.NewSweeper(f.store, duty.Config{VoidGrace: time.Microsecond}).Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSweeperFreesKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(5)
	completed, kept, waiting, retrying, held := ids[0], ids[1], ids[2], ids[3], ids[4]
	const available, completes, all = 1, 4, 255
	for id, states := range map[int64]int{completed: available, kept: completes, waiting: available, retrying: available, 42: all, held: available} {
		f.exec(`INSERT INTO pelton.job_unique VALUES (int8send($1), $1, $2)`, id, states)
	}
	f.exec(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) SELECT unnest($1::bigint[]), 1, 1, 'completed'`, []int64{completed, kept, held})
	f.exec(schedule, []int64{retrying}, "1 hour", 2, 1)
	user := f.begin()
	if _, err := user.Exec(t.Context(), `SELECT FROM pelton.job_unique WHERE job_id = $1 FOR UPDATE`, held); err != nil {
		t.Fatal(err)
	}
	sweep(t, f)
	want := f.int(`SELECT count(*) FROM pelton.job_unique WHERE job_id IN ($1, $2, $3)`, kept, waiting, held)
	if n := f.int(`SELECT count(*) FROM pelton.job_unique`); n != 3 || want != 3 {
		t.Fatalf("%d keys are left, %d of them should be, want 3: of a job that keeps it, one that waits, and one that is locked", n, want)
	}
}

func TestSweeperEndsVoidedRunsInLinesThatNobodyWorks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(5)
	cancelled, moved, deleted, stale, put := ids[1], ids[2], ids[3], ids[4], f.jobs(1)[0]
	f.exec(`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (2, 'default', $1)`, ids[:4])
	f.exec(`INSERT INTO pelton.job_change (job_id, queue) VALUES ($1, 'other')`, moved)
	f.exec(`INSERT INTO pelton.job_void (job_id, run, reason) VALUES ($1, 1, 'cancelled'), ($2, 1, 'moved'), ($3, 1, 'deleted'), ($4, 1, 'cancelled'), ($5, 1, 'cancelled')`,
		cancelled, moved, deleted, stale, put)
	f.exec(`DELETE FROM pelton.job WHERE id = $1`, deleted)
	f.exec(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, 1, 1, 'completed'), ($2, 1, 1, 'errored')`, stale, put)
	f.exec(schedule, []int64{put}, "1 hour", 2, 1)
	seq := f.int(`SELECT seq FROM pelton.job_ready`)
	sweep(t, f)
	if got := f.text(`SELECT job_ids::text || ' ' || priority || ' ' || seq FROM pelton.job_ready WHERE line = 'default'`); got != f.text(`SELECT ARRAY[$1::bigint]::text || ' 2 ' || $2::bigint`, ids[0], seq) {
		t.Errorf("the ticket is %s, want the first job alone under the same seq", got)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_ready WHERE line = 'other' AND job_ids = ARRAY[$1::bigint] AND runs = '{2}'`, moved); n != 1 {
		t.Error("the moved job is not in its new line")
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'cancelled' AND (job_id = $1 AND run = 1 OR job_id = $2 AND run = 2)`, cancelled, put); n != 2 {
		t.Errorf("%d of the two cancelled jobs have ended", n)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_void`); n != 0 {
		t.Errorf("%d voids are left", n)
	}
}
