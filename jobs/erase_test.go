package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema/schematest"
)

// marker is what a job holds in all places, and must be nowhere after an erase.
const marker = "jane.doe@example.com"

type personArgs struct {
	Person string `json:"person" river:"unique"`
	Fail   bool   `json:"fail"`
}

func (personArgs) Kind() string { return "person" }

func personWorker(ctx context.Context, job *river.Job[personArgs]) error {
	run := joblog.FromContext(ctx)
	if _, err := run.Stream(joblog.Stdout).Write([]byte("working for " + marker + "\n")); err != nil {
		return err
	}
	joblog.Logger(ctx).InfoContext(ctx, "a line about "+marker)
	if err := errors.Join(run.Progress(50, marker), jobs.RecordOutput(ctx, map[string]string{"person": marker}),
		jobs.MetadataSet(ctx, "who", marker)); err != nil {
		return err
	}
	if job.Args.Fail {
		return errors.New("cannot write to " + marker)
	}
	return nil
}

// person is a client that works such jobs.
func person(t *testing.T) (*jobs.Client, *pgxpool.Pool) {
	t.Helper()
	pool := schematest.Audited(t)
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(personWorker))
	c := &jobs.Config{Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 5}}, Workers: workers, Logger: slog.New(slog.DiscardHandler)}
	return start(t, pool, c), pool
}

func insertPerson(t *testing.T, client *jobs.Client, fail bool) int64 {
	t.Helper()
	metadata, err := json.Marshal(map[string]string{"person": marker})
	if err != nil {
		t.Fatal(err)
	}
	result, err := client.Insert(t.Context(), personArgs{marker, fail}, &river.InsertOpts{
		Metadata: metadata, Tags: []string{"janedoe"}, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true},
	})
	if err != nil || result.UniqueSkippedAsDuplicate {
		t.Fatalf("%+v, %v", result, err)
	}
	return result.Job.ID
}

// nowhere fails if something of the marker is in a table.
func nowhere(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, part := range []string{"jane", "doe"} {
		for _, row := range schematest.Find(t, pool, part) {
			t.Errorf("%s is in %s", part, row)
		}
	}
}

func TestErase(t *testing.T) {
	t.Parallel()
	client, pool := person(t)
	ctx := jobs.WithActor(t.Context(), "alice")
	for _, fail := range []bool{false, true} {
		id := insertPerson(t, client, fail)
		state := map[bool]rivertype.JobState{false: rivertype.JobStateCompleted, true: rivertype.JobStateDiscarded}[fail]
		waitState(t, client, id, state)
		if fail { // what a person changed, and another run
			if _, err := client.JobUpdate(ctx, id, &jobs.JobUpdateParams{Args: personArgs{marker, true}, Metadata: map[string]any{"a": marker}, Output: marker}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.JobRetry(ctx, id); err != nil {
				t.Fatal(err)
			}
			waitState(t, client, id, state)
		}
		places := map[string]bool{}
		for _, row := range schematest.Find(t, pool, marker) {
			table, _, _ := strings.Cut(row, ": ")
			places[table] = true
		}
		if !places["job"] || !places["job_attempt"] || !places["job_log"] || places["job_dead"] != fail || places["job_change"] != fail {
			t.Errorf("before, it is in %v", places)
		}
		done, err := client.JobErase(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if !done.Changed || len(done.Jobs) != 1 || done.Attempts != map[bool]int{false: 1, true: 2}[fail] || done.LogChunks < 3 || done.DeadLetters != map[bool]int{true: 1}[fail] {
			t.Errorf("erased: %+v", done)
		}
		nowhere(t, pool)
		job, err := client.JobGet(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State != state || job.Kind != "person" || string(job.EncodedArgs) != "{}" || len(job.Tags) != 0 || job.UniqueKey != nil || len(job.Output()) != 0 ||
			fail && (len(job.Errors) != 2 || job.Errors[0].Error != "erased") {
			t.Errorf("what is left: %+v", job)
		}
		if again, err := client.JobErase(ctx, id); err != nil || again.Changed {
			t.Errorf("once more: %+v, %v", again, err)
		}
		_, err = client.JobRetry(ctx, id)
		if refused, is := errors.AsType[*jobs.EraseError](err); !is || !refused.Erased || !strings.Contains(err.Error(), "was erased") {
			t.Errorf("retry: %v", err)
		}
		var entries int
		if err := pool.QueryRow(ctx, `SELECT count(*) FROM pelton.audit WHERE action = 'job.erase' AND actor = 'alice' AND target = $1::bigint::text`, id).Scan(&entries); err != nil || entries != 1 {
			t.Errorf("%d audit entries, %v", entries, err)
		}
	}
}

// Who was redriven, or discarded, or deleted, has left traces under other ids and none of its own.
func TestEraseOfWhatWasRedrivenDiscardedDeleted(t *testing.T) {
	t.Parallel()
	client, pool := person(t)
	ctx := t.Context()
	first := insertPerson(t, client, true)
	waitState(t, client, first, rivertype.JobStateDiscarded)
	second, err := client.DeadRedrive(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	waitState(t, client, second.ID, rivertype.JobStateDiscarded)
	third, err := client.DeadRedrive(ctx, second.ID)
	if err != nil {
		t.Fatal(err)
	}
	waitState(t, client, third.ID, rivertype.JobStateDiscarded)
	if err := client.DeadDiscard(ctx, third.ID); err != nil {
		t.Fatal(err)
	}
	done, err := client.JobErase(ctx, second.ID)
	if err != nil || len(done.Jobs) != 3 {
		t.Fatalf("erased: %+v, %v", done, err)
	}
	nowhere(t, pool)

	deleted := insertPerson(t, client, true)
	waitState(t, client, deleted, rivertype.JobStateDiscarded)
	if _, err := client.JobDelete(ctx, deleted); err != nil {
		t.Fatal(err)
	}
	if found := schematest.Find(t, pool, marker); len(found) == 0 {
		t.Error("a deleted job has left neither a dead letter nor a log")
	}
	if done, err := client.JobErase(ctx, deleted); err != nil || done.DeadLetters != 1 || done.LogChunks == 0 {
		t.Errorf("of a deleted job: %+v, %v", done, err)
	}
	nowhere(t, pool)
	if _, err := client.JobErase(ctx, 17); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("of no job: %v", err)
	}
}

// Jobs that have not ended, or were redriven as one that has not, stay as they are.
func TestEraseIsForEndedJobs(t *testing.T) {
	t.Parallel()
	client, pool := person(t)
	ctx := t.Context()
	pending, err := client.Insert(ctx, personArgs{marker, false}, &river.InsertOpts{Pending: true})
	if err != nil {
		t.Fatal(err)
	}
	dead := insertPerson(t, client, true)
	waitState(t, client, dead, rivertype.JobStateDiscarded)
	if err := client.Stop(ctx); err != nil { // nobody works what is redriven
		t.Fatal(err)
	}
	live, err := client.DeadRedrive(ctx, dead)
	if err != nil {
		t.Fatal(err)
	}
	before := len(schematest.Find(t, pool, marker))
	for _, id := range []int64{pending.Job.ID, dead, live.ID} {
		_, err := client.JobErase(ctx, id)
		if early, is := errors.AsType[*jobs.EraseError](err); !is || early.Erased || !strings.Contains(err.Error(), "has not ended") {
			t.Errorf("erase of job %d: %v", id, err)
		}
	}
	if after := len(schematest.Find(t, pool, marker)); after != before {
		t.Errorf("%d rows held it before, %d do now", before, after)
	}
	if _, err := client.JobCancel(ctx, pending.Job.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := client.JobErase(ctx, pending.Job.ID); err != nil {
		t.Errorf("after the cancel: %v", err)
	}
}
