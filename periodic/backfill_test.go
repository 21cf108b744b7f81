package periodic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/periodic/internal/store"
)

// step advances backfills once, and tells whether something was done.
func (r *rig) step() bool {
	r.t.Helper()
	var id int64
	err := r.store.Tx(r.t.Context(), store.Limits{Lock: patience}, func(tx pgx.Tx) (err error) {
		id, _, err = r.backfiller.advance(r.t.Context(), tx)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return id != 0
}

// endJobs ends all jobs that wait.
func (r *rig) endJobs() {
	r.t.Helper()
	for _, id := range list[int64](r.t, r.pool, `SELECT job_id FROM pelton.job_state WHERE state = 'available'`) {
		if _, err := r.queue.JobCancel(r.t.Context(), id); err != nil {
			r.t.Fatal(err)
		}
	}
}

// tickTimes are the ticks of the jobs there are, in order of the jobs.
func (r *rig) tickTimes() []string {
	r.t.Helper()
	return list[string](r.t, r.pool, `SELECT to_char((metadata->'pelton:schedule'->>'tick')::timestamptz AT TIME ZONE 'UTC', 'HH24:MI') FROM pelton.job ORDER BY id`)
}

// yesterday is an hour of it.
func (r *rig) yesterday(hour int) time.Time {
	return r.now().UTC().Truncate(24 * time.Hour).Add(time.Duration(hour-24) * time.Hour)
}

func (r *rig) backfilled(name string, p BackfillParams) *Backfill {
	r.t.Helper()
	b, err := r.Backfill(r.t.Context(), name, p)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func (r *rig) progress(id int64) *Backfill {
	r.t.Helper()
	b, err := r.BackfillGet(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// Ticks come in order, so many at a time, and those that have run are left out.
func TestBackfillRunsWhatWasMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("reports"))
	id := one[int64](t, r.pool, `SELECT id FROM pelton.schedule`)
	exec(t, r.pool, `INSERT INTO pelton.schedule_tick (schedule_id, tick, at, source, outcome, reason) SELECT $1, pelton.tick_key(at), at, 'clock', outcome, reason
		FROM (VALUES ($2::timestamptz, 'fired', NULL), ($3::timestamptz, 'skipped', 'missed')) AS v(at, outcome, reason)`, id, r.yesterday(3), r.yesterday(4))
	b := r.backfilled("reports", BackfillParams{From: r.yesterday(2), To: r.yesterday(6), Parallel: 2})
	if b.Total != 5 || b.Status != BackfillRunning || !b.OnlyMissed {
		t.Errorf("backfill: %+v", b)
	}
	for range 3 {
		r.step()
	}
	if got := r.tickTimes(); !slices.Equal(got, []string{"02:00", "04:00"}) {
		t.Errorf("with two at a time were started %v", got)
	}
	if p := r.progress(b.ID); p.Started != 2 || p.LeftOut != 1 || p.Live != 2 {
		t.Errorf("then: %+v", p)
	}
	pgtest.Eventually(t, patience, func() bool { r.endJobs(); r.step(); return r.progress(b.ID).Status == BackfillCompleted }, "the backfill to end")
	if got := r.tickTimes(); !slices.Equal(got, []string{"02:00", "04:00", "05:00", "06:00"}) {
		t.Errorf("started: %v", got)
	}
	if p := r.progress(b.ID); p.Started != 4 || p.LeftOut != 1 || p.Failed != 4 || p.Succeeded != 0 || p.Live != 0 || p.EndedAt == nil {
		t.Errorf("at its end: %+v", p)
	}
	ticks, err := r.Ticks(t.Context(), "reports", TicksParams{Source: SourceBackfill})
	if err != nil || len(ticks.Ticks) != 4 || ticks.Ticks[0].N != 1 || *ticks.Ticks[0].BackfillID != b.ID {
		t.Errorf("ticks: %+v, %v", ticks, err)
	}
	again := r.backfilled("reports", BackfillParams{From: r.yesterday(2), To: r.yesterday(6), All: true, Parallel: 5})
	r.step()
	if p := r.progress(again.ID); p.Started != 5 || p.LeftOut != 0 {
		t.Errorf("all of them again: %+v", p)
	}
	if n := one[int](t, r.pool, `SELECT max(n) FROM pelton.schedule_tick WHERE at = $1`, r.yesterday(2)); n != 2 {
		t.Errorf("the second run of a tick has number %d", n)
	}
	if wake := one[time.Time](t, r.pool, `SELECT wake FROM pelton.schedule_due`); !wake.After(r.now()) {
		t.Errorf("a backfill moved the schedule itself to %v", wake)
	}
}

// A tick that waits for the end of a run has not been missed.
func TestBackfillLeavesOutWhatWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := hourly("reports")
	s.Overlap = OverlapQueue
	r.put(s)
	if _, err := r.Trigger(t.Context(), "reports"); err != nil {
		t.Fatal(err)
	}
	exec(t, r.pool, `UPDATE pelton.schedule_due SET waiting = $1, wake = NULL`, r.yesterday(3))
	b := r.backfilled("reports", BackfillParams{From: r.yesterday(2), To: r.yesterday(4), Parallel: 3})
	r.step()
	if got := r.tickTimes(); len(got) != 3 || !slices.Equal(got[1:], []string{"02:00", "04:00"}) { // the first is that of the trigger
		t.Errorf("started %v", got)
	}
	if p := r.progress(b.ID); p.Started != 2 || p.LeftOut != 1 {
		t.Errorf("progress: %+v", p)
	}
}

// A run that waits, for an executor or for its next attempt, has not ended.
func TestBackfillWhoseRunsWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("reports"))
	b := r.backfilled("reports", BackfillParams{From: r.yesterday(0), To: r.yesterday(3), Parallel: 2})
	r.step()
	exec(t, r.pool, `WITH gone AS (DELETE FROM pelton.job_ready), first AS (SELECT min(id) AS id FROM pelton.job), failed AS (
			INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, ended_at) SELECT id, 1, 1, 'errored', clock_timestamp() FROM first RETURNING job_id
		), retry AS (
			INSERT INTO pelton.job_scheduled (job_id, run, attempts, wake, due, retry)
			SELECT job_id, 2, 1, clock_timestamp() + interval '1 h', clock_timestamp() + interval '1 h', true FROM failed
		) INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'default', ARRAY[max(id)] FROM pelton.job`)
	exec(t, r.pool, `UPDATE pelton.schedule_backfill SET wake = clock_timestamp()`)
	r.step()
	if p := r.progress(b.ID); p.Started != 2 || p.Live != 2 || p.Status != BackfillRunning {
		t.Errorf("progress: %+v", p)
	}
}

func TestBackfillCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("reports"))
	b := r.backfilled("reports", BackfillParams{From: r.yesterday(0), To: r.yesterday(3), Parallel: 10})
	r.step()
	jobs := list[int64](t, r.pool, `SELECT id FROM pelton.job ORDER BY id`)
	exec(t, r.pool, `INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, ended_at) SELECT unnest($1::bigint[]), 1, 1, 'completed', clock_timestamp()`, jobs[:3])
	exec(t, r.pool, `DELETE FROM pelton.job_ready`)
	if _, err := r.queue.JobCancel(t.Context(), jobs[3]); err != nil {
		t.Log(err)
	}
	exec(t, r.pool, `INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, ended_at) VALUES ($1, 1, 1, 'discarded', clock_timestamp()) ON CONFLICT DO NOTHING`, jobs[3])
	pgtest.Eventually(t, patience, func() bool { r.step(); return r.progress(b.ID).Status == BackfillCompleted }, "the backfill to end")
	if p := r.progress(b.ID); p.Succeeded != 3 || p.Failed != 1 {
		t.Errorf("counted: %+v", p)
	}
}

func TestBackfillRefusesRanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("reports"))
	r.put(Schedule{Name: "seconds", Cron: "* * * * * *", Job: task("x")})
	r.put(Schedule{Name: "delay", Delay: Duration(time.Hour), Job: task("x")})
	now := r.now()
	for name, c := range map[string]struct {
		schedule string
		p        BackfillParams
		says     string
	}{
		"turned round": {"reports", BackfillParams{From: now, To: now.Add(-time.Hour)}, "before it begins"},
		"future":       {"reports", BackfillParams{From: now, To: now.Add(time.Hour)}, "in the future"},
		"nothing":      {"reports", BackfillParams{From: r.yesterday(3).Add(time.Second), To: r.yesterday(3).Add(time.Minute)}, "no tick"},
		"too many":     {"seconds", BackfillParams{From: now.Add(-48 * time.Hour), To: now}, "more than 100000 ticks"},
		"parallel":     {"reports", BackfillParams{From: r.yesterday(1), To: r.yesterday(2), Parallel: -1}, "-1 runs at a time"},
		"delay":        {"delay", BackfillParams{From: r.yesterday(1), To: r.yesterday(2)}, "fixed delay"},
	} {
		_, err := r.Backfill(t.Context(), c.schedule, c.p)
		var invalid *InvalidBackfillError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// Ticks that its start and its end leave out are none of a schedule's, in a backfill too.
func TestBackfillKeepsToTheBounds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := hourly("x")
	start := r.yesterday(3)
	s.StartAt = &start
	r.put(s)
	if b := r.backfilled("x", BackfillParams{From: r.yesterday(0), To: r.yesterday(5)}); b.Total != 3 {
		t.Errorf("backfill: %+v", b)
	}
}

func TestBackfillCancel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("reports"))
	b := r.backfilled("reports", BackfillParams{From: r.yesterday(0), To: r.yesterday(23)})
	r.step()
	cancelled, err := r.BackfillCancel(t.Context(), b.ID)
	if err != nil || cancelled.Status != BackfillCancelled || cancelled.EndedAt == nil {
		t.Fatalf("cancelled: %+v, %v", cancelled, err)
	}
	pgtest.Eventually(t, patience, func() bool { r.endJobs(); r.step(); return r.progress(b.ID).Live == 0 }, "its run to be counted")
	if p := r.progress(b.ID); p.Started != 1 || p.Failed != 1 || p.Status != BackfillCancelled {
		t.Errorf("afterwards: %+v", p)
	}
	if wake := one[*time.Time](t, r.pool, `SELECT wake FROM pelton.schedule_backfill`); wake != nil {
		t.Errorf("a backfill that has ended wakes at %v", wake)
	}
	if got := r.audited("reports"); !slices.Equal(got, []string{"schedule.put", "schedule.backfill", "schedule.backfill.cancel"}) {
		t.Errorf("audited: %v", got)
	}
}

// complete has all jobs that wait end well.
func (r *rig) complete() error {
	return r.store.Tx(r.t.Context(), store.Limits{}, func(tx pgx.Tx) error { // READ COMMITTED, whatever the default is
		_, err := tx.Exec(r.t.Context(), `WITH gone AS (DELETE FROM pelton.job_ready r RETURNING r.job_ids)
			INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, ended_at)
			SELECT unnest(job_ids), 1, 1, 'completed', clock_timestamp() FROM gone`)
		return err
	})
}

// Several processes advance one backfill, and their transactions fail at random before the commit: every tick runs once, in order.
func TestBackfillThatIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(Schedule{Name: "x", Cron: "*/5 * * * *", Job: task("noop")})
	b := r.backfilled("x", BackfillParams{From: r.yesterday(0), To: r.yesterday(23), Parallel: 30})
	errKilled := errors.New("killed")
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := 0; r.progress(b.ID).Status == BackfillRunning; i++ {
				err := r.store.Tx(t.Context(), store.Limits{Lock: patience}, func(tx pgx.Tx) error {
					if _, _, err := r.backfiller.advance(t.Context(), tx); err != nil {
						return err
					}
					if (i+worker)%3 == 0 {
						return errKilled
					}
					return nil
				})
				if err != nil && !errors.Is(err, errKilled) {
					t.Error(err)
					return
				}
				if err := r.complete(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	want := one[int](t, r.pool, `SELECT total FROM pelton.schedule_backfill`)
	p := r.progress(b.ID)
	if p.Started != want || p.Succeeded != want || p.Failed != 0 || p.Live != 0 {
		t.Errorf("of %d: %+v", want, p)
	}
	ticks := r.tickTimes()
	if len(ticks) != want || len(slices.Compact(slices.Clone(ticks))) != want {
		t.Errorf("%d jobs, want %d", len(ticks), want)
	}
}

// Workers, a scheduler with its loops, and a backfill.
func TestBackfillWithWorkers(t *testing.T) {
	t.Parallel()
	w := newWorking(t, &Config{}, "report", func(context.Context, *river.Job[reportArgs]) error { return nil })
	w.put(hourly("reports"))
	b := w.backfilled("reports", BackfillParams{From: w.yesterday(0), To: w.yesterday(9), Parallel: 3})
	ended, err := w.BackfillEnded(t.Context(), b.ID, nil)
	if err != nil || ended.Status != BackfillCompleted || ended.Succeeded != 10 {
		t.Errorf("ended: %+v, %v", ended, err)
	}
	if got := fmt.Sprint(w.what("reports")); got != "map[fired:10]" {
		t.Errorf("ticks: %s", got)
	}
}
