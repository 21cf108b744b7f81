package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// later is a time that no test lasts until, in whole microseconds as the database has them.
func later(d time.Duration) time.Time { return time.Now().Add(d).Truncate(time.Microsecond) }

func (d *desk) reschedule(db store.DB, id int64, at time.Time) {
	d.t.Helper()
	if err := d.Reschedule(d.t.Context(), db, id, at, ann); err != nil {
		d.t.Fatal(err)
	}
}

// unscheduled wants that a job is refused because it is in a state that has no time.
func (d *desk) unscheduled(db store.DB, id int64, want rivertype.JobState) {
	d.t.Helper()
	var refused *store.NotScheduledError
	if err := d.Reschedule(d.t.Context(), db, id, later(time.Hour), ann); !errors.As(err, &refused) || refused.JobID != id || refused.State != want || refused.Error() == "" {
		d.t.Fatalf("reschedule of job %d: %v, want that it is refused as %s", id, err, want)
	}
}

// wantDue wants a job that waits for a time to be due then, and to be woken no earlier.
func (d *desk) wantDue(id int64, want time.Time) {
	d.t.Helper()
	var due, wake time.Time
	if err := d.Pool.QueryRow(d.t.Context(), `SELECT due, wake FROM pelton.job_scheduled WHERE job_id = $1`, id).Scan(&due, &wake); err != nil {
		d.t.Fatal(err)
	}
	if !due.Equal(want) || wake.Before(due) {
		d.t.Fatalf("job %d is due at %v and woken at %v, want %v", id, due, wake, want)
	}
	if job, err := d.JobRow(d.t.Context(), d.Pool, id); err != nil || !job.ScheduledAt.Equal(want) {
		d.t.Fatalf("job %d is scheduled at %v, want %v (%v)", id, job.ScheduledAt, want, err)
	}
}

func TestReschedule(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, retried := d.insert(scheduled), d.insert(nil)
	d.end(t.Context(), d.Pool, d.take("default")[0], state.Errored)
	d.release(retried)
	for id, want := range map[int64]rivertype.JobState{first: rivertype.JobStateScheduled, retried: rivertype.JobStateRetryable} {
		before := d.wantState(id, want)
		for _, at := range []time.Time{later(5 * time.Hour), later(time.Minute)} {
			for range 2 { // the second one changes nothing
				d.reschedule(d.Pool, id, at)
				d.wantDue(id, at)
			}
		}
		after := d.wantState(id, want)
		if after.Attempt != before.Attempt || len(after.Errors) != len(before.Errors) {
			t.Errorf("it was %+v, and is %+v", before, after)
		}
		d.want(2, "entries of the audit", `SELECT count(*) FROM pelton.audit WHERE action = 'job.reschedule' AND target = $1::bigint::text AND actor = 'ann'
			AND before ->> 'state' = $2 AND after ->> 'state' = $2 AND (before ->> 'due')::timestamptz <> (after ->> 'due')::timestamptz`, id, want)
		// Once it is in line, and after, the time is what somebody made of it.
		at := d.wantState(id, want).ScheduledAt
		d.promote(id)
		run := d.take("default")[0]
		if job := d.wantState(id, rivertype.JobStateRunning); !job.ScheduledAt.Equal(at) {
			t.Errorf("running, it is scheduled at %v, want %v", job.ScheduledAt, at)
		}
		d.end(t.Context(), d.Pool, run, state.Completed)
		d.release(id)
		if job := d.wantState(id, rivertype.JobStateCompleted); !job.ScheduledAt.Equal(at) {
			t.Errorf("ended, it is scheduled at %v, want %v", job.ScheduledAt, at)
		}
		d.want(1, "reports of the run that was put off", `SELECT count(*) FROM pelton.run_report WHERE job_id = $1 AND run = $2 AND ready_at = $3`, id, run.Run, at)
	}
	d.noneLost()
}

// A job keeps the time that it was given when its run then is moved, handed back or lost: it does not show the one that was asked for first again.
func TestGivenTimeOutlastsARunThatWasTakenBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(scheduled)
	d.retry(d.Pool, id, rivertype.JobStateAvailable)
	at := d.wantState(id, rivertype.JobStateAvailable).ScheduledAt
	if _, err := d.Change(t.Context(), d.Pool, id, store.Change{Priority: 2}, ann); err != nil {
		t.Fatal(err)
	}
	d.honour(d.take("default"), state.Moved)
	if job := d.wantState(id, rivertype.JobStateAvailable); job.Attempt != 0 || !job.ScheduledAt.Equal(at) {
		t.Errorf("it is scheduled at %v, want %v", job.ScheduledAt, at)
	}
	second := d.insert(nil)
	found, err := d.FindJobs(t.Context(), d.Pool, store.JobFilter{States: []rivertype.JobState{rivertype.JobStateAvailable}}, store.JobPage{Order: store.OrderByScheduledAt, Limit: 9})
	if err != nil || !slices.Equal(found.IDs, []int64{id, second}) {
		t.Errorf("in the order of time are %v, %v, want %d and then %d", found.IDs, err, id, second)
	}
	d.noneLost()
}

// A time gone by is now: the mover finds the job at once, above its floor.
func TestRescheduleToATimeGoneBy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(scheduled)
	for range 2 {
		d.reschedule(d.Pool, id, time.Now().Add(-time.Hour))
	}
	d.want(1, "jobs that are due and fell below no floor", `SELECT count(*) FROM pelton.job_scheduled s JOIN pelton.job j ON j.id = s.job_id
		WHERE s.wake <= clock_timestamp() AND s.wake >= j.created_at AND s.due >= j.created_at`)
	d.want(1, "entries of the audit", `SELECT count(*) FROM pelton.audit`)
	d.noneLost()
}

func TestRescheduleRefusesWhatWaitsForNoTime(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	if err := d.Reschedule(ctx, d.Pool, 1, later(time.Hour), ann); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("no job: %v", err)
	}
	d.unscheduled(d.Pool, d.insert(pending), rivertype.JobStatePending)
	for _, outcome := range []state.Outcome{state.Completed, state.Cancelled, state.Discarded} {
		id := d.insert(nil)
		d.unscheduled(d.Pool, id, rivertype.JobStateAvailable)
		run := d.take("default")[0]
		d.unscheduled(d.Pool, id, rivertype.JobStateRunning)
		d.end(ctx, d.Pool, run, outcome)
		d.release(id)
		d.unscheduled(d.Pool, id, rivertype.JobState(outcome))
	}
	id := d.insert(nil)
	d.cancel(d.Pool, id, rivertype.JobStateCancelled) // it stays in the line
	d.unscheduled(d.Pool, id, rivertype.JobStateCancelled)

	id = d.insert(func(j *store.NewJob) {
		scheduled(j)
		j.Metadata = []byte(`{"pelton:flow": {"run": 7, "node": 2, "path": "a:b"}}`)
	})
	var node *store.NodeError
	if err := d.Reschedule(ctx, d.Pool, id, later(time.Minute), ann); !errors.As(err, &node) || node.Run != 7 || node.Node != "a:b" {
		t.Errorf("a node of a flow: %v", err)
	}
	id = d.insert(scheduled)
	for _, sql := range []string{`'infinity'`, `'-infinity'`, `NULL`, `'10000-01-01'`, `'0001-01-01 BC'`} {
		if _, err := d.Pool.Exec(ctx, `SELECT pelton.reschedule($1, `+sql+`)`, id); store.SQLState(err) != store.InvalidValue {
			t.Errorf("%s: %v", sql, err)
		}
	}
	d.want(0, "entries of the audit", `SELECT count(*) FROM pelton.audit WHERE action = 'job.reschedule'`)
	d.noneLost()
}

// heldBy runs act while somebody's transaction holds the job, until it waits; then that commits.
func (d *desk) heldBy(tx pgx.Tx, act func()) {
	d.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); act() }()
	d.awaitLock()
	d.commit(tx)
	<-done
}

// takeDue and lineUp are what the mover does, one step after the other.
func (d *desk) takeDue(tx pgx.Tx) []store.Due {
	d.t.Helper()
	due, err := d.TakeDue(d.t.Context(), tx, 0, 100)
	if err != nil {
		d.t.Fatal(err)
	}
	return due
}

func (d *desk) lineUp(tx pgx.Tx, due []store.Due) {
	d.t.Helper()
	for _, one := range due {
		if err := d.LineUp(d.t.Context(), tx, []store.Entry{{JobID: one.JobID, Run: one.Run, Attempts: one.Attempts, Line: "default", Priority: 1}}, 1, false); err != nil {
			d.t.Fatal(err)
		}
	}
}

// Whoever comes first has it: a job that the mover has taken is not put off any more, and it does not take one that is just being put off.
func TestRescheduleAgainstTheMover(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	moved, put, back := d.insert(scheduled), d.insert(scheduled), d.insert(scheduled)
	d.exec(`UPDATE pelton.job_scheduled SET due = now(), wake = now() WHERE job_id = $1`, moved)
	mover := d.begin()
	d.lineUp(mover, d.takeDue(mover))
	d.heldBy(mover, func() { d.unscheduled(d.Pool, moved, rivertype.JobStateAvailable) })
	d.want(1, "tickets", `SELECT count(*) FROM pelton.job_ready WHERE job_ids = ARRAY[$1::bigint]`, moved)

	d.exec(`UPDATE pelton.job_scheduled SET due = now(), wake = now() WHERE job_id = $1`, put)
	person := d.begin()
	at := later(time.Hour)
	d.reschedule(person, put, at)
	mover = d.begin()
	if due := d.takeDue(mover); len(due) != 0 {
		t.Errorf("the mover took %v", due)
	}
	d.commit(person)
	if due := d.takeDue(mover); len(due) != 0 {
		t.Errorf("the mover took %v once it was put off", due)
	}
	d.commit(mover)
	d.wantDue(put, at)

	// The mover puts one back that it cannot move: the row is another, and is found by a second look.
	d.exec(`UPDATE pelton.job_scheduled SET due = now(), wake = now() WHERE job_id = $1`, back)
	mover = d.begin()
	if err := d.PutBack(t.Context(), mover, d.takeDue(mover)[0], time.Minute); err != nil {
		t.Fatal(err)
	}
	d.heldBy(mover, func() { d.reschedule(d.Pool, back, at) })
	d.wantDue(back, at)
	d.noneLost()
}

func TestRescheduleAgainstCancelAndRetry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := later(2 * time.Hour)
	// They wait for it, and find the job where it is now.
	for name, act := range map[string]func(id int64){
		"cancel": func(id int64) {
			d.cancel(d.Pool, id, rivertype.JobStateCancelled)
			d.wantState(id, rivertype.JobStateCancelled)
		},
		"retry": func(id int64) {
			d.retry(d.Pool, id, rivertype.JobStateAvailable)
			d.wantState(id, rivertype.JobStateAvailable)
		},
		"reschedule": func(id int64) {
			d.reschedule(d.Pool, id, at.Add(time.Hour))
			d.wantDue(id, at.Add(time.Hour))
		},
		"change": func(id int64) {
			if _, err := d.Change(t.Context(), d.Pool, id, store.Change{Priority: 2}, bob); err != nil {
				t.Error(err)
			}
			d.wantDue(id, at)
		},
	} {
		id := d.insert(scheduled)
		person := d.begin()
		d.reschedule(person, id, at)
		t.Log(name)
		d.heldBy(person, func() { act(id) })
		d.want(0, "voids: each found the row", `SELECT count(*) FROM pelton.job_void`)
	}
	// It waits for them, and is refused.
	for want, act := range map[rivertype.JobState]func(tx pgx.Tx, id int64){
		rivertype.JobStateCancelled: func(tx pgx.Tx, id int64) { d.cancel(tx, id, rivertype.JobStateCancelled) },
		rivertype.JobStateAvailable: func(tx pgx.Tx, id int64) { d.retry(tx, id, rivertype.JobStateAvailable) },
	} {
		id := d.insert(scheduled)
		tx := d.begin()
		act(tx, id)
		d.heldBy(tx, func() { d.unscheduled(d.Pool, id, want) })
	}
	d.noneLost()
}

// A claim takes the job once it is in line: neither a promotion nor the claim can be undone by who comes too late, and a run that fails as somebody looks is
// found where its retry waits.
func TestRescheduleAgainstAClaim(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	id := d.insert(nil)
	claim := d.begin()
	if _, err := claim.Exec(ctx, `DELETE FROM pelton.job_ready`); err != nil {
		t.Fatal(err)
	}
	if _, err := claim.Exec(ctx, `INSERT INTO pelton.job_lease (executor, no, job_ids, runs, attempts) VALUES (7, 100, ARRAY[$1::bigint], '{1}', '{0}')`, id); err != nil {
		t.Fatal(err)
	}
	d.unscheduled(d.Pool, id, rivertype.JobStateAvailable)
	d.commit(claim)
	d.unscheduled(d.Pool, id, rivertype.JobStateRunning)
	finish := d.begin()
	d.end(ctx, finish, store.VoidedRun{JobID: id, Run: 1}, state.Errored)
	d.unscheduled(d.Pool, id, rivertype.JobStateRunning)
	d.commit(finish)
	d.release(id)
	at := later(time.Hour)
	d.reschedule(d.Pool, id, at)
	d.wantDue(id, at)

	// A cancel came as the run failed: it holds, whatever the time.
	other := d.insert(nil)
	run := d.take("default")[0]
	finish = d.begin()
	d.end(ctx, finish, run, state.Errored)
	d.cancel(d.Pool, other, rivertype.JobStateRunning)
	d.commit(finish)
	d.release(other)
	d.unscheduled(d.Pool, other, rivertype.JobStateCancelled)
	d.cancelWaiting(1, []int64{other})
	d.noneLost()
}

// Movers, takers, and people who reschedule and cancel, all at once: none is lost, none is handed out twice, and what was cancelled never runs.
func TestRescheduleStorm(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const n = 60
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = d.insert(scheduled)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var loops []chan error
	loop := func(step func(i int) error) {
		ended := make(chan error, 1)
		loops = append(loops, ended)
		go func() {
			var err error
			for i := 0; err == nil && ctx.Err() == nil; i++ {
				err = step(i)
			}
			ended <- err
		}()
	}
	put := func(ahead time.Duration, step int) func(int) error {
		return func(i int) error {
			err := d.Reschedule(t.Context(), d.Pool, ids[i*step%n], time.Now().Add(ahead), ann)
			if _, refused := errors.AsType[*store.NotScheduledError](err); refused {
				return nil
			}
			return err
		}
	}
	loop(put(time.Hour, 7))
	loop(put(0, 1))
	for range 2 {
		loop(func(int) error {
			return d.Tx(t.Context(), store.MoveLimits, func(tx pgx.Tx) error {
				due, err := d.TakeDue(t.Context(), tx, 0, 7)
				if err != nil {
					return err
				}
				var entries []store.Entry
				for _, one := range due {
					entries = append(entries, store.Entry{JobID: one.JobID, Run: one.Run, Attempts: one.Attempts, Line: "default", Priority: 1})
				}
				return d.LineUp(t.Context(), tx, entries, store.MaxTicket, false)
			})
		})
	}
	cancelled := map[int64]bool{}
	for i := 0; i < n; i += 6 {
		cancelled[ids[i]] = true
		d.cancel(d.Pool, ids[i], rivertype.JobStateCancelled)
	}
	ran := map[int64]bool{}
	pgtest.Eventually(t, 60*time.Second, func() bool {
		done, _, err := d.HonourVoids(t.Context(), d.take("default"))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range done {
			switch {
			case h.Outcome == store.VoidNone && (ran[h.JobID] || cancelled[h.JobID] || h.Run != 1):
				t.Fatalf("run %d of job %d is handed out; it was before: %v, it was cancelled: %v", h.Run, h.JobID, ran[h.JobID], cancelled[h.JobID])
			case h.Outcome == store.VoidNone:
				ran[h.JobID] = true
			}
		}
		return len(ran) >= n/2
	}, "half of the jobs to run")
	stop()
	for _, ended := range loops {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for id := range ran {
		d.end(t.Context(), d.Pool, store.VoidedRun{JobID: id, Run: 1}, state.Completed)
	}
	d.exec(`DELETE FROM pelton.job_lease`)
	for id := range cancelled {
		d.wantState(id, rivertype.JobStateCancelled)
	}
	d.noneLost()
}
