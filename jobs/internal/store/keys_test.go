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

// keyed is a job with a key that a completed job gives up.
func keyed(j *store.NewJob) { uniqueJob("no retryable")(j) }

// completed puts a keyed job in and completes it; its key is not freed yet.
func (d *desk) completed() int64 {
	d.t.Helper()
	id := d.insert(keyed)
	d.end(d.t.Context(), d.Pool, d.take("default")[0], state.Completed)
	d.release(id)
	return id
}

func (d *desk) freeKeys(id int64, outcome state.Outcome) {
	d.t.Helper()
	if err := d.FreeKeys(d.t.Context(), []int64{id}, []state.Outcome{outcome}); err != nil {
		d.t.Fatal(err)
	}
}

// insertAside inserts another job with the key of keyed jobs and sends what became of it.
func (d *desk) insertAside() <-chan store.Inserted {
	answer := make(chan store.Inserted, 1)
	go func() {
		defer close(answer)
		job := store.NewJob{Kind: "noop", Args: []byte(`{}`), Queue: "default", Priority: 1, MaxAttempts: 3}
		keyed(&job)
		var in []store.Inserted
		err := pgx.BeginTxFunc(d.t.Context(), d.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			in, err = d.Insert(d.t.Context(), tx, []store.NewJob{job}, false)
			return err
		})
		if err != nil {
			d.t.Error(err)
			return
		}
		answer <- in[0]
	}()
	return answer
}

func (d *desk) wantHolder(id int64) {
	d.t.Helper()
	d.want(1, "keys", `SELECT count(*) FROM pelton.job_unique WHERE key = 'key' AND job_id = $1`, id)
}

// The finisher, the sweep and the voids' end free keys after their commits: a retry in between keeps its job's key.
func TestRetriedJobKeepsItsKey(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]func(d *desk, id int64){
		"finisher": func(d *desk, id int64) { d.freeKeys(id, state.Completed) },
		"drop voids": func(d *desk, id int64) {
			d.exec(`SELECT pelton.drop_voids(ARRAY[$1::bigint], '{1}', '{cancelled}')`, id)
		},
		"sweep": func(d *desk, _ int64) {
			// The first judgement is one from before the retry.
			d.exec(`ALTER FUNCTION pelton.key_is_free RENAME TO key_is_free_now`)
			d.exec(`CREATE SEQUENCE judgements`)
			d.exec(`CREATE FUNCTION pelton.key_is_free(job bigint, states smallint) RETURNS boolean LANGUAGE sql VOLATILE AS
				$$ SELECT nextval('judgements') = 1 OR pelton.key_is_free_now(job, states) $$`)
			if _, _, err := d.SweepKeys(d.t.Context(), nil, 100); err != nil {
				d.t.Fatal(err)
			}
			d.want(2, "judgements", `SELECT last_value FROM judgements`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			id := d.completed()
			tx := d.begin()
			d.retry(tx, id, rivertype.JobStateAvailable)
			d.freeKeys(id, state.Completed) // waits for nobody
			d.wantHolder(id)
			d.commit(tx)
			free(d, id)
			d.wantHolder(id)
			if in := <-d.insertAside(); in.ID != id || !in.Skipped {
				t.Errorf("a second job %d got the key of job %d", in.ID, id)
			}
		})
	}
}

// A key that looks free is not taken from a job that an open transaction is making live again.
func TestInsertWaitsForARetryOfItsKey(t *testing.T) {
	t.Parallel()
	for name, revive := range map[string]func(d *desk) (pgx.Tx, int64){
		"retry": func(d *desk) (pgx.Tx, int64) {
			id := d.completed()
			tx := d.begin()
			d.retry(tx, id, rivertype.JobStateAvailable)
			return tx, id
		},
		"mover": func(d *desk) (pgx.Tx, int64) {
			id := d.insert(keyed)
			d.end(d.t.Context(), d.Pool, d.take("default")[0], state.Errored)
			d.release(id)
			var job store.NewJob
			keyed(&job)
			tx := d.begin()
			holders, err := d.KeepKeys(d.t.Context(), tx, []store.Facts{{JobID: id, UniqueKey: job.UniqueKey, UniqueStates: job.UniqueStates}})
			if err != nil || holders[0] != id {
				d.t.Fatalf("the key is kept by %v, %v", holders, err)
			}
			if _, err := tx.Exec(d.t.Context(), `DELETE FROM pelton.job_scheduled`); err != nil {
				d.t.Fatal(err)
			}
			if _, err := tx.Exec(d.t.Context(), `SELECT pelton.enter_line($1, 2, 1::smallint)`, id); err != nil {
				d.t.Fatal(err)
			}
			return tx, id
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			tx, id := revive(d)
			answer := d.insertAside()
			d.awaitLock()
			d.commit(tx)
			if in := <-answer; in.ID != id || !in.Skipped {
				t.Errorf("a second job %d got the key of job %d", in.ID, id)
			}
			d.wantHolder(id)
		})
	}
}

// An inserter that judged the key free before the retry, and waits for its row since, judges again.
func TestInsertJudgesUnderTheLock(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.completed()
	holder := d.begin() // keeps the inserter between its two looks
	if _, err := holder.Exec(t.Context(), `SELECT FROM pelton.job_unique FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	answer := d.insertAside()
	d.awaitLock()
	if _, err := d.Retry(t.Context(), holder, id, ""); err != nil {
		t.Fatal(err)
	}
	d.commit(holder)
	if in := <-answer; in.ID != id || !in.Skipped {
		t.Errorf("a second job %d got the key of job %d", in.ID, id)
	}
	d.wantHolder(id)
}

// A snapshot from before the retry does not let a stricter transaction take the key either: it fails as usual.
func TestStaleSnapshotDoesNotTakeARetriedKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.completed()
	stale, err := d.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stale.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := stale.Exec(t.Context(), `SELECT FROM pelton.job`); err != nil {
		t.Fatal(err)
	}
	d.retry(d.Pool, id, rivertype.JobStateAvailable)
	job := store.NewJob{Kind: "noop", Args: []byte(`{}`), Queue: "default", Priority: 1, MaxAttempts: 3}
	keyed(&job)
	if _, err := d.Insert(t.Context(), stale, []store.NewJob{job}, false); store.SQLState(err) != store.SerializationFailure {
		t.Errorf("insert: %v, want a serialization failure", err)
	}
	d.wantHolder(id)
}

// Duplicates of a live job lock nothing: an open one holds up neither another insert nor the freeing of the key.
func TestDuplicateLocksNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.insert(keyed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := d.begin()
	job := store.NewJob{Kind: "noop", Args: []byte(`{}`), Queue: "default", Priority: 1, MaxAttempts: 3}
	keyed(&job)
	for _, db := range []store.DB{open, d.Pool} {
		if in, err := d.Insert(ctx, db, []store.NewJob{job}, false); err != nil || in[0].ID != id {
			t.Fatalf("insert: %v, %v", in, err)
		}
	}
	d.end(ctx, d.Pool, d.take("default")[0], state.Completed)
	d.release(id)
	d.freeKeys(id, state.Completed)
	d.want(0, "keys", `SELECT count(*) FROM pelton.job_unique`)
}
