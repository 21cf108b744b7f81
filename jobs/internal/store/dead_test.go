package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// die inserts a job and gives it up after one attempt.
func (d *desk) die(kind string) int64 {
	d.t.Helper()
	id := d.insert(func(j *store.NewJob) {
		j.Kind, j.Queue, j.Args, j.Metadata = kind, kind+"s", []byte(`{"order": 5}`), []byte(`{"team": "a"}`)
		j.Tags = []string{"x", "y"}
	})
	d.inTx(func(ctx context.Context, tx pgx.Tx) {
		d.end(ctx, tx, d.take(kind + "s")[0], state.Discarded)
		if err := d.BuryTx(ctx, tx, []int64{id}, store.Exhausted); err != nil {
			d.t.Fatal(err)
		}
	})
	d.release(id)
	return id
}

func TestDeadLetterOutlivesItsJob(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	id := d.die("mail")
	letters, _, err := d.ListDead(ctx, d.Pool, store.DeadFilter{IDs: []int64{id}}, nil, 10, 0)
	if err != nil || len(letters) != 1 {
		t.Fatalf("%v, %v", letters, err)
	}
	l := letters[0]
	if l.Kind != "mail" || l.Queue != "mails" || l.Error != "boom" || l.Attempt != 1 || l.MaxAttempts != 3 || l.Reason != store.Exhausted ||
		string(l.EncodedArgs) != `{"order": 5}` || len(l.Tags) != 2 || len(l.Attempts) != 1 {
		t.Errorf("%+v", l)
	}
	if a := l.Attempts[0]; a.Run != 1 || a.Outcome != "discarded" || a.Error != "boom" || a.StartedAt == nil || time.Since(a.EndedAt) > time.Hour {
		t.Errorf("%+v", a)
	}

	// Retention drops the partition with the job; the letter alone is enough for a new one.
	d.exec(`DELETE FROM pelton.job`)
	d.exec(`DELETE FROM pelton.job_attempt`)
	if _, err := d.Retry(ctx, d.Pool, id, ""); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("retry under the old id: %v", err)
	}
	made, err := d.Redrive(ctx, d.Pool, id, ann)
	if err != nil {
		t.Fatal(err)
	}
	job := d.wantState(made, rivertype.JobStateAvailable)
	var metadata struct {
		Team         string `json:"team"`
		RedrivenFrom int64  `json:"redriven_from"`
	}
	if err := json.Unmarshal(job.Metadata, &metadata); err != nil || metadata.Team != "a" || metadata.RedrivenFrom != id {
		t.Errorf("metadata %s, %v", job.Metadata, err)
	}
	if string(job.EncodedArgs) != `{"order": 5}` || job.Queue != "mails" || len(job.Tags) != 2 || job.Attempt != 0 {
		t.Errorf("%+v", job)
	}
	if _, err := d.Redrive(ctx, d.Pool, id, ann); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("second redrive: %v", err)
	}
	d.want(1, "audit rows", `SELECT count(*) FROM pelton.audit WHERE action = 'dead.redrive' AND (after ->> 'job')::bigint = $1`, made)
	d.noneLost()
}

func TestDeadLettersInBulk(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	for range 3 {
		d.die("mail")
	}
	bill := d.die("bill")
	first, _, err := d.ListDead(ctx, d.Pool, store.DeadFilter{}, nil, 2, 0)
	if err != nil || len(first) != 2 || first[0].JobID != bill {
		t.Fatalf("%v, %v: want the newest first", first, err)
	}
	if rest, _, err := d.ListDead(ctx, d.Pool, store.DeadFilter{}, first[1], 10, 0); err != nil || len(rest) != 2 {
		t.Fatalf("%v, %v", rest, err)
	}
	held := d.begin()
	if found, err := d.Discard(ctx, held, first[1].JobID, ""); err != nil || !found {
		t.Fatalf("%v, %v", found, err)
	}
	made, err := d.RedriveMany(ctx, d.Pool, store.DeadFilter{Kinds: []string{"mail"}}, 10, "")
	if err != nil || len(made) != 2 { // the third is held by somebody
		t.Fatalf("%v, %v", made, err)
	}
	d.commit(held)
	gone, err := d.DiscardMany(ctx, d.Pool, store.DeadFilter{Reason: store.Exhausted}, 10, "")
	if err != nil || len(gone) != 1 || gone[0] != bill {
		t.Fatalf("%v, %v", gone, err)
	}
	d.want(0, "letters", `SELECT count(*) FROM pelton.job_dead`)
	d.want(4, "audit rows", `SELECT count(*) FROM pelton.audit`)
	d.noneLost()
}

// What a job row shows is put together from what was asked, what its runs left and what was changed since, the latest last.
func TestJobRow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	id := d.insert(func(j *store.NewJob) {
		j.Args, j.Metadata, j.Tags = []byte(`{"a": "\u0000"}`), []byte(`{"a": 1, "b": 1, "c": 1}`), []string{"x"}
	})
	job := d.wantState(id, rivertype.JobStateAvailable)
	if job.Attempt != 0 || job.AttemptedAt != nil || job.FinalizedAt != nil || !job.ScheduledAt.Equal(job.CreatedAt) || job.Errors != nil {
		t.Errorf("fresh: %+v", job)
	}
	run := d.take("default")[0]
	if job = d.wantState(id, rivertype.JobStateRunning); job.Attempt != 1 || job.AttemptedAt == nil || len(job.AttemptedBy) != 1 {
		t.Errorf("running: %+v", job)
	}
	d.end(ctx, d.Pool, run, state.Errored)
	d.release(id)
	d.exec(`UPDATE pelton.job_attempt SET metadata = '{"b": 2}', output = '"early\u0000"'`)
	if _, err := d.Change(ctx, d.Pool, id, store.Change{MaxAttempts: 9, Priority: 3, Metadata: []byte(`{"c": 3}`)}, ""); err != nil {
		t.Fatal(err)
	}
	job = d.wantState(id, rivertype.JobStateRetryable)
	if string(job.Output()) != `"early\u0000"` || job.MaxAttempts != 9 || job.Priority != 3 || job.Attempt != 1 || len(job.Errors) != 1 ||
		job.Errors[0].Error != "boom" || job.Errors[0].Attempt != 1 || time.Until(job.ScheduledAt) < time.Minute {
		t.Errorf("retryable: %+v", job)
	}
	var metadata map[string]any
	if err := json.Unmarshal(job.Metadata, &metadata); err != nil || metadata["a"] != 1.0 || metadata["b"] != 2.0 || metadata["c"] != 3.0 {
		t.Errorf("metadata %s, %v", job.Metadata, err)
	}
	if _, err := d.Change(ctx, d.Pool, id, store.Change{Metadata: []byte(`{"output": "later"}`)}, ""); err != nil {
		t.Fatal(err)
	}
	if job = d.wantState(id, rivertype.JobStateRetryable); string(job.Output()) != `"later"` {
		t.Errorf("output %s", job.Output())
	}
	d.retry(d.Pool, id, rivertype.JobStateAvailable)
	d.end(ctx, d.Pool, d.take("default")[0], state.Completed)
	d.release(id)
	d.exec(`UPDATE pelton.job_attempt SET output = '"last"' WHERE run = 2`)
	if job = d.wantState(id, rivertype.JobStateCompleted); string(job.Output()) != `"last"` || job.FinalizedAt == nil || job.Attempt != 2 {
		t.Errorf("completed: %+v", job)
	}
	d.noneLost()
}
