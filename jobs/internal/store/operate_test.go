package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

// Two who act, as the store takes them.
const ann, bob = `{"actor": "ann"}`, `{"actor": "bob"}`

// desk drives the tables as the executors do, one step at a time, so that a test can stop between two steps.
type desk struct {
	*store.Store
	t     *testing.T
	lease int64
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	// The steps of this desk run as single statements; the store's own transactions are READ COMMITTED.
	pool := schematest.Audited(t, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "read committed"
	})
	return &desk{Store: store.New(pool, "pelton"), t: t}
}

// insert puts one job in and returns its id.
func (d *desk) insert(change func(*store.NewJob)) int64 {
	d.t.Helper()
	job := store.NewJob{Kind: "noop", Args: []byte(`{}`), Queue: "default", Priority: 1, MaxAttempts: 3}
	if change != nil {
		change(&job)
	}
	in, err := d.Insert(d.t.Context(), d.Pool, []store.NewJob{job}, false)
	if err != nil {
		d.t.Fatal(err)
	}
	if in[0].Skipped {
		d.t.Fatalf("the job's key is held by %d", in[0].ID)
	}
	return in[0].ID
}

func scheduled(j *store.NewJob) {
	due := time.Now().Add(time.Hour)
	j.Due = &due
}

func pending(j *store.NewJob) { j.Pending = true }

// take claims every ticket of a line for executor 7 and returns the runs.
func (d *desk) take(line string) []store.VoidedRun {
	d.t.Helper()
	var taken []store.VoidedRun
	d.inTx(func(ctx context.Context, tx pgx.Tx) {
		rows, _ := tx.Query(ctx, `DELETE FROM pelton.job_ready WHERE line = $1
			RETURNING job_ids, coalesce(runs, array_fill(1, ARRAY[cardinality(job_ids)])),
				coalesce(attempts, array_fill(0::smallint, ARRAY[cardinality(job_ids)]))`, line)
		var ids []int64
		var runs []int32
		var attempts []int16
		_, err := pgx.ForEachRow(rows, []any{&ids, &runs, &attempts}, func() error {
			for i := range ids {
				taken = append(taken, store.VoidedRun{JobID: ids[i], Run: runs[i], Attempts: attempts[i]})
			}
			return nil
		})
		if err != nil {
			d.t.Fatal(err)
		}
		for _, r := range taken {
			d.lease++
			if _, err := tx.Exec(ctx, `INSERT INTO pelton.job_lease (executor, no, job_ids, runs, attempts)
				VALUES (7, $1, ARRAY[$2::bigint], ARRAY[$3::int], ARRAY[$4::smallint])`, d.lease, r.JobID, r.Run, r.Attempts); err != nil {
				d.t.Fatal(err)
			}
		}
	})
	return taken
}

// end records a run as a finish does, in the given transaction.
func (d *desk) end(ctx context.Context, db store.DB, run store.VoidedRun, outcome state.Outcome) {
	d.t.Helper()
	if _, err := db.Exec(ctx, `INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt, started_at, executor, error)
		VALUES ($1, $2, $3::text::pelton.outcome, $4, clock_timestamp(), 7, CASE WHEN $3::text IN ('errored', 'discarded') THEN 'boom' END)`,
		run.JobID, run.Run, string(outcome), run.Attempts+1); err != nil {
		d.t.Fatal(err)
	}
	if outcome == state.Errored {
		if _, err := db.Exec(ctx, `INSERT INTO pelton.job_scheduled (job_id, wake, due, run, attempts, retry)
			VALUES ($1, now() + interval '1 hour', now() + interval '1 hour', $2, $3, true)`, run.JobID, run.Run+1, run.Attempts+1); err != nil {
			d.t.Fatal(err)
		}
	}
}

// release deletes the leases of a job's runs that have ended.
func (d *desk) release(id int64) {
	d.exec(`DELETE FROM pelton.job_lease WHERE $1 = ANY (job_ids)`, id)
}

func (d *desk) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.Pool.Exec(d.t.Context(), sql, args...); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) inTx(fn func(ctx context.Context, tx pgx.Tx)) {
	d.t.Helper()
	tx := d.begin()
	fn(d.t.Context(), tx)
	d.commit(tx)
}

// begin opens a transaction that the test parks.
func (d *desk) begin() pgx.Tx {
	d.t.Helper()
	tx, err := d.Pool.BeginTx(d.t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func (d *desk) commit(tx pgx.Tx) {
	d.t.Helper()
	if err := tx.Commit(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) cancel(db store.DB, id int64, want rivertype.JobState) {
	d.t.Helper()
	if got, err := d.Cancel(d.t.Context(), db, id, ann); err != nil || got != want {
		d.t.Fatalf("cancel returned %q, %v, want %q", got, err, want)
	}
}

func (d *desk) retry(db store.DB, id int64, want rivertype.JobState) {
	d.t.Helper()
	if got, err := d.Retry(d.t.Context(), db, id, ann); err != nil || got != want {
		d.t.Fatalf("retry returned %q, %v, want %q", got, err, want)
	}
}

// honour ends taken runs whose voids hold and wants these outcomes.
func (d *desk) honour(runs []store.VoidedRun, want ...state.Outcome) {
	d.t.Helper()
	done, held, err := d.HonourVoids(d.t.Context(), runs)
	if err != nil || len(held) > 0 || len(done) != len(want) {
		d.t.Fatalf("honoured %v, held %v, %v; want %v", done, held, err, want)
	}
	for i, h := range done {
		if h.Outcome != want[i] {
			d.t.Fatalf("run %d of job %d: %q, want %q", h.Run, h.JobID, h.Outcome, want[i])
		}
	}
}

func (d *desk) wantState(id int64, want rivertype.JobState) *rivertype.JobRow {
	d.t.Helper()
	job, err := d.JobRow(d.t.Context(), d.Pool, id)
	if err != nil {
		d.t.Fatal(err)
	}
	if job.State != want {
		d.t.Fatalf("job %d is %q, want %q", id, job.State, want)
	}
	return job
}

// count runs a query that returns one number.
func (d *desk) count(sql string, args ...any) (n int) {
	d.t.Helper()
	if err := d.Pool.QueryRow(d.t.Context(), sql, args...).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

func (d *desk) want(n int, what, sql string, args ...any) {
	d.t.Helper()
	if got := d.count(sql, args...); got != n {
		d.t.Fatalf("%s: %d, want %d", what, got, n)
	}
}

// runs lists a job's ended runs as text.
func (d *desk) wantRuns(id int64, want string) {
	d.t.Helper()
	var got string
	if err := d.Pool.QueryRow(d.t.Context(), `SELECT coalesce(string_agg(run || ' ' || outcome || ' ' || attempt, ', ' ORDER BY run), '')
		FROM pelton.job_attempt WHERE job_id = $1`, id).Scan(&got); err != nil {
		d.t.Fatal(err)
	}
	if got != want {
		d.t.Fatalf("runs of job %d (run outcome attempts): %s; want %s", id, got, want)
	}
}

// noneLost is the audit that every test ends with.
func (d *desk) noneLost() {
	d.t.Helper()
	for name, find := range map[string]func() ([]int64, error){
		"lost":  func() ([]int64, error) { return d.LostJobs(d.t.Context(), d.Pool, 0) },
		"twice": func() ([]int64, error) { return d.JobsTwice(d.t.Context(), d.Pool) },
		"stale": func() ([]int64, error) { return d.StaleRuns(d.t.Context(), d.Pool) },
	} {
		if ids, err := find(); err != nil || len(ids) > 0 {
			d.t.Errorf("audit: %s: %v, %v", name, ids, err)
		}
	}
}

// waiting reports when somebody waits for a lock in this database.
func (d *desk) awaitLock() {
	d.t.Helper()
	pgtest.Eventually(d.t, time.Minute, func() bool {
		return d.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	}, "somebody to wait for a lock")
}

func TestCancelWhereItWaits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, place := range []struct {
		name   string
		change func(*store.NewJob)
	}{{"scheduled", scheduled}, {"pending", pending}} {
		id := d.insert(place.change)
		d.wantState(id, rivertype.JobState(place.name))
		d.cancel(d.Pool, id, rivertype.JobStateCancelled)
		d.cancel(d.Pool, id, rivertype.JobStateCancelled)
		job := d.wantState(id, rivertype.JobStateCancelled)
		if job.FinalizedAt == nil || job.Attempt != 0 || len(job.AttemptedBy) != 0 {
			t.Errorf("%s: %+v", place.name, job)
		}
		d.wantRuns(id, "1 cancelled 0")
		d.want(1, "audit rows", `SELECT count(*) FROM pelton.audit WHERE action = 'job.cancel' AND target = $1::bigint::text
			AND actor = 'ann' AND role = session_user AND before ->> 'state' = $2`, id, place.name)
	}
	if _, err := d.Cancel(t.Context(), d.Pool, 1, ""); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("cancel of no job: %v", err)
	}
	d.noneLost()
}

func TestCancelInTheLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(nil)
	d.cancel(d.Pool, id, rivertype.JobStateCancelled)
	if job := d.wantState(id, rivertype.JobStateCancelled); job.FinalizedAt == nil {
		t.Error("cancelled without a time")
	}
	d.noneLost()
	d.honour(d.take("default"), state.Cancelled)
	d.release(id)
	d.wantState(id, rivertype.JobStateCancelled)
	d.wantRuns(id, "1 cancelled 0")
	d.want(0, "voids", `SELECT count(*) FROM pelton.job_void`)
	d.want(1, "audit rows", `SELECT count(*) FROM pelton.audit`)
	d.noneLost()
}

func TestCancelRunning(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	listener, err := d.Pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Release()
	if _, err := listener.Exec(ctx, `LISTEN pelton_wake`); err != nil {
		t.Fatal(err)
	}
	id := d.insert(nil)
	run := d.take("default")[0]
	d.cancel(d.Pool, id, rivertype.JobStateRunning)
	hint, err := listener.Conn().WaitForNotification(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if want := "cancel:"; hint.Payload[:len(want)] != want {
		t.Errorf("hint %q", hint.Payload)
	}
	d.want(1, "voids", `SELECT count(*) FROM pelton.job_void WHERE reason = 'cancelled' AND run = 1`)
	d.end(ctx, d.Pool, run, state.Completed)
	d.cancel(d.Pool, id, rivertype.JobStateCompleted)
	d.release(id)
	d.noneLost()
}

// A run fails while its cancel is being written: neither transaction sees the other.
func TestCancelBetweenARunsEndAndItsRetry(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(d *desk, id int64){
		"looked at once more":  func(d *desk, id int64) { d.cancel(d.Pool, id, rivertype.JobStateCancelled) },
		"met by the finisher":  func(d *desk, id int64) { d.cancelWaiting(1, []int64{id}) },
		"met by the sweep":     func(d *desk, _ int64) { d.cancelWaiting(1, nil) },
		"met by whoever takes": func(d *desk, id int64) { d.promote(id); d.honour(d.take("default"), state.Cancelled) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			ctx := t.Context()
			id := d.insert(nil)
			run := d.take("default")[0]
			finish := d.begin()
			d.end(ctx, finish, run, state.Errored)
			d.cancel(d.Pool, id, rivertype.JobStateRunning)
			d.commit(finish)
			d.release(id)
			d.wantState(id, rivertype.JobStateRetryable)
			settle(d, id)
			d.wantState(id, rivertype.JobStateCancelled)
			d.wantRuns(id, "1 errored 1, 2 cancelled 1")
			d.want(0, "tickets", `SELECT count(*) FROM pelton.job_ready`)
			d.release(id)
			d.noneLost()
		})
	}
}

func (d *desk) cancelWaiting(want int, ids []int64) {
	d.t.Helper()
	if n, err := d.CancelWaiting(d.t.Context(), ids); err != nil || n != want {
		d.t.Fatalf("cancelled %d, %v, want %d", n, err, want)
	}
}

// promote does what the mover does when a job is due.
func (d *desk) promote(id int64) {
	d.exec(`WITH due AS (DELETE FROM pelton.job_scheduled WHERE job_id = $1 RETURNING *)
		INSERT INTO pelton.job_ready (priority, line, job_ids, runs, attempts)
		SELECT coalesce(c.priority, j.priority), coalesce(c.queue, j.queue), ARRAY[j.id], ARRAY[due.run], ARRAY[due.attempts]
		FROM due JOIN pelton.job j ON j.id = due.job_id LEFT JOIN pelton.job_change c ON c.job_id = j.id`, id)
}

func TestRetryAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, outcome := range []state.Outcome{state.Completed, state.Cancelled, state.Discarded} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			ctx := t.Context()
			id := d.insert(func(j *store.NewJob) { j.MaxAttempts = 1 })
			run := d.take("default")[0]
			d.inTx(func(ctx context.Context, tx pgx.Tx) {
				d.end(ctx, tx, run, outcome)
				if outcome == state.Discarded {
					if err := d.BuryTx(ctx, tx, []int64{id}, store.Exhausted); err != nil {
						t.Fatal(err)
					}
				}
			})
			d.release(id)
			d.retry(d.Pool, id, rivertype.JobStateAvailable)
			d.retry(d.Pool, id, rivertype.JobStateAvailable)
			if job := d.wantState(id, rivertype.JobStateAvailable); job.MaxAttempts != 2 || job.Attempt != 1 || job.FinalizedAt != nil {
				t.Errorf("%+v", job)
			}
			d.wantRuns(id, "1 "+string(outcome)+" 1, 2 retried 1")
			d.want(0, "dead letters", `SELECT count(*) FROM pelton.job_dead`)
			d.want(1, "audit rows", `SELECT count(*) FROM pelton.audit`)
			d.noneLost()
			again := d.take("default")
			if len(again) != 1 || again[0] != (store.VoidedRun{JobID: id, Run: 3, Attempts: 1}) {
				t.Fatalf("took %v", again)
			}
			d.end(ctx, d.Pool, again[0], state.Completed)
			d.release(id)
			d.wantState(id, rivertype.JobStateCompleted)
			d.noneLost()
		})
	}
}

func TestRetryOfWhatWaits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, change := range []func(*store.NewJob){scheduled, pending, nil} {
		id := d.insert(change)
		d.retry(d.Pool, id, rivertype.JobStateAvailable)
		taken := d.take("default")
		if len(taken) != 1 || taken[0].Run != 1 {
			t.Fatalf("took %v", taken)
		}
		d.retry(d.Pool, id, rivertype.JobStateRunning)
		d.want(0, "attempts", `SELECT count(*) FROM pelton.job_attempt WHERE job_id = $1`, id)
		d.end(t.Context(), d.Pool, taken[0], state.Errored)
		d.release(id)
		d.wantState(id, rivertype.JobStateRetryable)
		d.retry(d.Pool, id, rivertype.JobStateAvailable)
		if taken = d.take("default"); len(taken) != 1 || taken[0].Run != 2 || taken[0].Attempts != 1 {
			t.Fatalf("took %v", taken)
		}
		d.end(t.Context(), d.Pool, taken[0], state.Completed)
		d.release(id)
	}
	if _, err := d.Retry(t.Context(), d.Pool, 1, ""); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("retry of no job: %v", err)
	}
	d.noneLost()
}

// Two clicks: the second waits for the first and finds its row.
func TestTwoRetriesAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	id := d.insert(nil)
	d.end(ctx, d.Pool, d.take("default")[0], state.Cancelled)
	d.release(id)

	first := d.begin()
	d.retry(first, id, rivertype.JobStateAvailable)
	second := make(chan error, 1)
	go func() {
		_, err := d.Retry(ctx, d.Pool, id, bob)
		second <- err
	}()
	d.awaitLock()
	d.commit(first)
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	d.wantRuns(id, "1 cancelled 1, 2 retried 1")
	d.want(1, "tickets", `SELECT count(*) FROM pelton.job_ready`)
	d.noneLost()
}

// Cancelled in the line and taken back: the old ticket finds its run ended, the new one runs.
func TestRetryOfACancelInTheLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(nil)
	d.cancel(d.Pool, id, rivertype.JobStateCancelled)
	d.retry(d.Pool, id, rivertype.JobStateAvailable)
	d.wantState(id, rivertype.JobStateAvailable)
	d.wantRuns(id, "1 cancelled 0, 2 retried 0")
	d.noneLost()
	taken := d.take("default")
	if len(taken) != 2 {
		t.Fatalf("took %v", taken)
	}
	d.honour(taken, state.Outcome("refused"), state.Outcome("none"))
	d.want(0, "voids", `SELECT count(*) FROM pelton.job_void`)
	d.end(t.Context(), d.Pool, taken[1], state.Completed)
	d.release(id)
	d.noneLost()
}

// The taker ends a cancelled run in the moment in which somebody wants the job back.
func TestRetryWhileTheCancelIsHonoured(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	id := d.insert(nil)
	d.cancel(d.Pool, id, rivertype.JobStateCancelled)
	back := d.begin()
	d.retry(back, id, rivertype.JobStateAvailable)
	taken := d.take("default")
	if done, held, err := d.HonourVoids(ctx, taken); err != nil || len(done) != 0 || len(held) != 1 {
		t.Fatalf("done %v, held %v, %v: want it held by the open retry", done, held, err)
	}
	d.commit(back)
	d.honour(taken, store.VoidRefused)
	d.release(id)
	d.wantState(id, rivertype.JobStateAvailable)
	d.wantRuns(id, "1 cancelled 0, 2 retried 0")
	d.noneLost()
}

func TestHeldRunsDelayNobodyElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	var ids []int64
	for range 4 {
		id := d.insert(nil)
		d.cancel(d.Pool, id, rivertype.JobStateCancelled)
		ids = append(ids, id)
	}
	back := d.begin()
	d.retry(back, ids[1], rivertype.JobStateAvailable)
	taken := d.take("default")
	done, held, err := d.HonourVoids(ctx, taken)
	if err != nil || len(done) != 3 || len(held) != 1 || held[0].JobID != ids[1] {
		t.Fatalf("done %v, held %v, %v", done, held, err)
	}
	if err := back.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	d.honour(held, state.Cancelled)
	d.exec(`DELETE FROM pelton.job_lease`)
	d.noneLost()
}

func uniqueJob(states string) func(*store.NewJob) {
	return func(j *store.NewJob) {
		j.UniqueKey = []byte("key")
		mask := byte(0)
		switch states {
		case "default":
			mask = state.Bits([]rivertype.JobState{"available", "completed", "pending", "retryable", "running", "scheduled"})
		case "no retryable":
			mask = state.Bits([]rivertype.JobState{"available", "pending", "running", "scheduled"})
		}
		j.UniqueStates = int16(mask)
	}
}

func TestRetryTakesItsUniqueKeyAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	old := d.insert(uniqueJob("default"))
	d.cancel(d.Pool, old, rivertype.JobStateCancelled)
	heir := d.insert(uniqueJob("default")) // the cancel has freed the key at once
	var held *store.KeyHeldError
	if _, err := d.Retry(ctx, d.Pool, old, ""); !errors.As(err, &held) || held.HolderID != heir || held.JobID != old {
		t.Fatalf("retry: %v, want the key held by %d", err, heir)
	}
	d.wantState(old, rivertype.JobStateCancelled)
	d.cancel(d.Pool, heir, rivertype.JobStateCancelled)
	d.retry(d.Pool, old, rivertype.JobStateAvailable)
	d.want(1, "keys of the retried job", `SELECT count(*) FROM pelton.job_unique WHERE job_id = $1`, old)
	d.noneLost()

	late := d.insert(func(j *store.NewJob) { uniqueJob("no retryable")(j); j.UniqueKey = []byte("other"); j.Queue = "other" })
	d.end(ctx, d.Pool, d.take("other")[0], state.Errored)
	d.release(late)
	heir = d.insert(func(j *store.NewJob) { uniqueJob("no retryable")(j); j.UniqueKey = []byte("other") })
	if _, err := d.Retry(ctx, d.Pool, late, ""); !errors.As(err, &held) || held.HolderID != heir {
		t.Fatalf("retry: %v, want the key held by %d", err, heir)
	}
	d.wantState(late, rivertype.JobStateRetryable)
	d.noneLost()
}
