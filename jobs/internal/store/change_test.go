package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

func (d *desk) move(db store.DB, id int64, queue string) int32 {
	d.t.Helper()
	run, err := d.Change(d.t.Context(), db, id, store.Change{Queue: queue}, ann)
	if err != nil {
		d.t.Fatal(err)
	}
	return run
}

func TestMoveInTheLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(nil)
	d.move(d.Pool, id, "other")
	d.want(1, "tickets", `SELECT count(*) FROM pelton.job_ready`) // whoever moves writes none
	d.noneLost()
	d.honour(d.take("default"), state.Moved)
	d.release(id)
	d.wantRuns(id, "1 moved 0")
	d.noneLost()
	taken := d.take("other")
	if len(taken) != 1 || taken[0] != (store.VoidedRun{JobID: id, Run: 2}) {
		t.Fatalf("took %v", taken)
	}
	if job := d.wantState(id, rivertype.JobStateRunning); job.Queue != "other" || job.Attempt != 1 {
		t.Errorf("%+v", job)
	}
	d.want(0, "voids", `SELECT count(*) FROM pelton.job_void`)
}

// The claim has read the voids before the move commits: one run goes on, and no second one exists.
func TestMoveOfAClaimedRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	id := d.insert(nil)
	move := d.begin()
	run := d.move(move, id, "other")
	taken := d.take("default")
	d.commit(move)
	d.want(0, "tickets", `SELECT count(*) FROM pelton.job_ready`)
	d.end(ctx, d.Pool, taken[0], state.Errored)
	d.release(id)
	if err := d.MoveAgain(ctx, d.Pool, id, run); err != nil { // it is put off: nothing to do
		t.Fatal(err)
	}
	d.promote(id)
	d.want(0, "tickets in the old line", `SELECT count(*) FROM pelton.job_ready WHERE line = 'default'`)
	next := d.take("other")
	d.honour(next, store.VoidNone) // the void was for run 1 alone
	if removed, err := d.SweepVoids(ctx, 0, 100); err != nil || removed != 1 {
		t.Errorf("swept %d voids, %v", removed, err)
	}
	d.wantRuns(id, "1 errored 1")
	d.noneLost()
}

func TestMoveOfARunningJobChangesTheNextRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(nil)
	run := d.take("default")[0]
	d.move(d.Pool, id, "other")
	d.want(0, "voids", `SELECT count(*) FROM pelton.job_void`)
	d.end(t.Context(), d.Pool, run, state.Errored)
	d.release(id)
	d.retry(d.Pool, id, rivertype.JobStateAvailable)
	if taken := d.take("other"); len(taken) != 1 || taken[0].Run != 2 {
		t.Fatalf("took %v", taken)
	}
	d.noneLost()
}

// The mover must not put a job into the line that a person's open transaction is taking it out of.
func TestMoveOfAScheduledJobHoldsItUntilTheCommit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(scheduled)
	move := d.begin()
	d.move(move, id, "other")
	d.want(0, "rows the mover may take", `SELECT count(*) FROM (SELECT FROM pelton.job_scheduled FOR UPDATE SKIP LOCKED) s`)
	d.commit(move)
	d.want(0, "voids", `SELECT count(*) FROM pelton.job_void`)
	d.promote(id)
	d.want(1, "tickets", `SELECT count(*) FROM pelton.job_ready WHERE line = 'other'`)
	d.noneLost()
}

// The job is retried at once, into its old line, while a move is open: the second look moves that run too.
func TestMoveAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	id := d.insert(nil)
	taken := d.take("default")[0]
	move := d.begin()
	run := d.move(move, id, "other")
	d.inTx(func(ctx context.Context, tx pgx.Tx) {
		d.end(ctx, tx, taken, state.Lost)
		if _, err := tx.Exec(ctx, `INSERT INTO pelton.job_ready (priority, line, job_ids, runs, attempts)
			VALUES (1, 'default', ARRAY[$1::bigint], '{2}', '{1}')`, id); err != nil {
			t.Fatal(err)
		}
	})
	d.release(id)
	d.commit(move)
	if err := d.MoveAgain(ctx, d.Pool, id, run); err != nil {
		t.Fatal(err)
	}
	d.honour(d.take("default"), state.Moved)
	d.release(id)
	d.wantRuns(id, "1 lost 1, 2 moved 1")
	d.want(1, "tickets", `SELECT count(*) FROM pelton.job_ready WHERE line = 'other' AND runs = '{3}' AND attempts = '{1}'`)
	d.noneLost()
}

// A cancel that comes while a taker honours a move holds for the run the move enters.
func TestCancelOvertakesAMove(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(nil)
	d.move(d.Pool, id, "other")
	d.cancel(d.Pool, id, rivertype.JobStateCancelled)
	d.wantState(id, rivertype.JobStateCancelled)
	d.honour(d.take("default"), state.Cancelled)
	d.release(id)
	d.wantRuns(id, "1 cancelled 0")

	id = d.insert(nil)
	d.move(d.Pool, id, "other")
	taken := d.take("default")
	cancel := d.begin()
	d.cancel(cancel, id, rivertype.JobStateRunning)                           // turns the void, uncommitted
	d.exec(`SELECT pelton.honour_voids(ARRAY[$1::bigint], '{1}', '{0}')`, id) // sees the move still
	d.commit(cancel)
	if err := d.DropVoids(t.Context(), []store.Honoured{{VoidedRun: taken[0], Outcome: state.Moved}}); err != nil {
		t.Fatal(err)
	}
	d.release(id)
	d.honour(d.take("other"), state.Cancelled)
	d.release(id)
	d.wantRuns(id, "1 moved 0, 2 cancelled 0")
	d.noneLost()
}

func TestChangeRefusesBadValues(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(nil)
	for name, change := range map[string]store.Change{
		"queue":    {Queue: "a/b"},
		"priority": {Priority: 5},
		"attempts": {MaxAttempts: -1},
		"metadata": {Metadata: []byte(`[1]`)},
	} {
		if _, err := d.Change(t.Context(), d.Pool, id, change, ""); store.SQLState(err) != store.InvalidValue {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.want(0, "changes", `SELECT count(*) FROM pelton.job_change`)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	ended := d.insert(uniqueJob("default"))
	d.end(ctx, d.Pool, d.take("default")[0], state.Completed)
	d.release(ended)
	running := d.insert(nil)
	d.take("default")
	waiting, line := d.insert(scheduled), d.insert(nil)
	if _, err := d.Change(ctx, d.Pool, line, store.Change{MaxAttempts: 9}, ""); err != nil {
		t.Fatal(err)
	}

	got, err := d.Delete(ctx, d.Pool, []int64{ended, running, waiting, line, 1}, ann)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int64]rivertype.JobState{ended: "completed", running: "running", waiting: "scheduled", line: "available"}
	for id, state := range want {
		if got[id] != state {
			t.Errorf("job %d was %q, want %q", id, got[id], state)
		}
	}
	if len(got) != len(want) {
		t.Errorf("deleted %v", got)
	}
	d.want(1, "jobs left", `SELECT count(*) FROM pelton.job`)
	d.want(0, "attempts, changes, keys", `SELECT (SELECT count(*) FROM pelton.job_attempt) + (SELECT count(*) FROM pelton.job_change)
		+ (SELECT count(*) FROM pelton.job_unique) + (SELECT count(*) FROM pelton.job_scheduled)`)
	d.want(3, "audit rows", `SELECT count(*) FROM pelton.audit WHERE action = 'job.delete'`)
	d.insert(func(j *store.NewJob) { uniqueJob("default")(j); j.Queue = "other" }) // its key is free

	d.honour(d.take("default"), store.VoidDeleted)
	d.want(0, "voids", `SELECT count(*) FROM pelton.job_void`)
	d.want(0, "attempts", `SELECT count(*) FROM pelton.job_attempt`)
	d.noneLost()
}

// The job is deleted while its ticket is being taken, and its run fails: nothing of it comes back.
func TestDeleteOfARunBeingTaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	id := d.insert(nil)
	deletion := d.begin()
	if got, err := d.Delete(ctx, deletion, []int64{id}, ""); err != nil || got[id] != rivertype.JobStateAvailable {
		t.Fatalf("%v, %v", got, err)
	}
	run := d.take("default")[0] // and its void is not there yet
	d.commit(deletion)
	d.end(ctx, d.Pool, run, state.Errored)
	d.release(id)
	d.cancelWaiting(0, nil)
	d.want(0, "jobs put off", `SELECT count(*) FROM pelton.job_scheduled`)
	d.noneLost()
}

// Nobody claims from a paused line; voids in it are met by a duty, which leaves the other jobs of the ticket where they are.
func TestHonourInLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	var ids []int64
	for range 6 {
		ids = append(ids, d.insert(nil))
	}
	d.exec(`DELETE FROM pelton.job_ready`)
	d.exec(`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, 'default', $1), (1, 'default', $2)`, ids[:5], ids[5:])
	d.cancel(d.Pool, ids[0], rivertype.JobStateCancelled)
	d.move(d.Pool, ids[2], "other")
	if _, err := d.Delete(ctx, d.Pool, ids[4:5], ""); err != nil {
		t.Fatal(err)
	}
	d.cancel(d.Pool, ids[5], rivertype.JobStateCancelled)
	back := d.begin() // somebody takes the last one back, and stays open
	d.retry(back, ids[5], rivertype.JobStateAvailable)

	if n, err := d.HonourInLine(ctx, time.Hour, 100); err != nil || n != 0 {
		t.Fatalf("ended %d fresh ones, %v", n, err)
	}
	if n, err := d.HonourInLine(ctx, 0, 100); err != nil || n != 3 {
		t.Fatalf("ended %d, %v, want 3", n, err)
	}
	d.want(1, "tickets with the rest, under the old seq", `SELECT count(*) FROM pelton.job_ready r
		WHERE r.job_ids = $1 AND r.seq < (SELECT min(seq) FROM pelton.job_ready WHERE job_ids <> $1)`, []int64{ids[1], ids[3]})
	d.want(1, "tickets of the moved one", `SELECT count(*) FROM pelton.job_ready WHERE line = 'other' AND runs = '{2}'`)
	d.want(1, "voids", `SELECT count(*) FROM pelton.job_void`)
	d.wantRuns(ids[0], "1 cancelled 0")
	d.commit(back)
	if n, err := d.HonourInLine(ctx, 0, 100); err != nil || n != 1 {
		t.Fatalf("met %d stale tickets, %v, want 1", n, err)
	}
	d.wantState(ids[5], rivertype.JobStateAvailable)
	d.want(0, "voids", `SELECT count(*) FROM pelton.job_void`)
	d.noneLost()
}
