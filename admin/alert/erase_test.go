package alert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema/schematest"
)

// canary is what a job holds in all places, and must be nowhere after an erase.
const canary = "janedoe"

type canaryArgs struct {
	Person string `json:"person" river:"unique"`
}

func (canaryArgs) Kind() string { return "person" }

func workCanary(ctx context.Context, job *river.Job[canaryArgs]) error {
	if _, err := joblog.FromContext(ctx).Stream(joblog.Stdout).Write([]byte("working for " + job.Args.Person + "\n")); err != nil {
		return err
	}
	return errors.Join(jobs.RecordOutput(ctx, job.Args.Person), jobs.MetadataSet(ctx, "who", job.Args.Person), errors.New("cannot write to "+job.Args.Person))
}

// A job that has failed, was changed, told of by an alert, whose notices were sent or are to be sent, and was erased, is nowhere.
func TestEraseOfWhatAlertsTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(rule(alert.DeadLetters, nil)))
	ctx := jobs.WithActor(t.Context(), "alice")
	h.works(h.pool, "people", func(c *jobs.Config) {
		jobs.AddWorker(c.Workers, river.WorkFunc(workCanary))
	})
	insert := func(person string) int64 {
		t.Helper()
		metadata, err := json.Marshal(map[string]string{"person": person})
		must(t, err)
		made, err := h.queue.Insert(ctx, canaryArgs{person}, &river.InsertOpts{
			Queue: "people", Metadata: metadata, Tags: []string{person}, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true},
		})
		must(t, err)
		pgtest.Eventually(t, patience, func() bool {
			job, err := h.queue.JobGet(ctx, made.Job.ID)
			return err == nil && job.State == rivertype.JobStateDiscarded
		}, "the end of job %d", made.Job.ID)
		return made.Job.ID
	}
	other := insert("somebody")
	h.expect("firing ops dead_letters: queue people: 1 new dead letter (job " + fmt.Sprint(other))
	id := insert(canary)
	_, err := h.queue.JobUpdate(ctx, id, &jobs.JobUpdateParams{Args: canaryArgs{canary + "2"}, Metadata: map[string]any{"a": canary}})
	must(t, err)
	h.evaluate() // writes the new text
	h.exec(`UPDATE pelton.alert_state SET noticed_at = noticed_at - interval '40 days'`)
	if got := h.evaluate(); !strings.Contains(got, "reminder ops") || !strings.Contains(got, canary) {
		t.Fatalf("the reminder is %q", got)
	}
	// One that could not be sent is a dead letter of its own.
	h.exec(`INSERT INTO pelton.job_dead (job_id, kind, queue, priority, max_attempts, attempt, reason, args, created_at, attempts)
		SELECT id, kind, queue, 1, 1, 1, 'exhausted', args, created_at, '[]' FROM pelton.job WHERE kind = $1 ORDER BY id DESC LIMIT 1`, alert.Kind)
	places := map[string]bool{}
	for _, row := range schematest.Find(t, h.pool, canary) {
		table, _, _ := strings.Cut(row, ": ")
		places[table] = true
	}
	for _, table := range []string{"job", "job_attempt", "job_log", "job_dead", "job_change", "alert_state"} {
		if !places[table] {
			t.Errorf("before, it is in %v, not in %s", places, table)
		}
	}
	done, err := h.queue.JobErase(ctx, id)
	must(t, err)
	if done.Notices != 3 {
		t.Errorf("erased: %+v, want 3 alerts and notices", done)
	}
	for _, row := range schematest.Find(t, h.pool, canary) {
		t.Errorf("it is in %s", row)
	}
	var text string
	must(t, h.pool.QueryRow(ctx, `SELECT text FROM pelton.alert_state`).Scan(&text))
	if want := fmt.Sprintf("2 new dead letters (job %d, erased)", id); text != want {
		t.Errorf("the alert says %q, want %q", text, want)
	}
	// What other letters' notices say stays, and notices can still be read.
	rows := schematest.Find(t, h.pool, "somebody")
	if !strings.Contains(strings.Join(rows, "\n"), fmt.Sprintf("(job %d, person: cannot write to somebody)", other)) {
		t.Errorf("of the other job there is only %q", rows)
	}
	h.seen = 0
	if got := h.notices(); !strings.Contains(got, fmt.Sprintf("reminder ops dead_letters: queue people: 2 new dead letters (job %d, erased)", id)) {
		t.Errorf("notices are\n%s", got)
	}
	if again, err := h.queue.JobErase(ctx, id); err != nil || again.Changed {
		t.Errorf("once more: %+v, %v", again, err)
	}
}

// Jobs of the kinds of notices that are none stay as they are, whatever their args, and keep no job from being erased.
func TestEraseLeavesWhatIsNoNotice(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(rule(alert.DeadLetters, nil)))
	ctx := t.Context()
	h.works(h.pool, "people", func(c *jobs.Config) {
		jobs.AddWorker(c.Workers, river.WorkFunc(workCanary))
	})
	made, err := h.queue.Insert(ctx, canaryArgs{canary}, &river.InsertOpts{Queue: "people", MaxAttempts: 1})
	must(t, err)
	pgtest.Eventually(t, patience, func() bool {
		job, err := h.queue.JobGet(ctx, made.Job.ID)
		return err == nil && job.State == rivertype.JobStateDiscarded
	}, "the end of the job")
	var odd []string
	for _, args := range []string{
		`{"subjects": []}`, `{"subjects": [{"text": 1}], "summary": "x"}`, `{"subjects": [{"title": "x"}], "summary": "x"}`, `{"subjects": ["x", 7, null, []], "summary": "x"}`,
		`{"subjects": [{"text": "x"}], "summary": null}`, `{"subjects": {"text": "x"}, "summary": "x"}`, `[]`, `"x"`, `{"subjects": [{"text": "\u0000"}], "summary": "x"}`,
		`{"run": "1", "detail": "\u0000"}`, `{"n": 1e999999}`, `{"subjects": [{"text": "\ud800"}], "summary": "x"}`, `{"run": "1", "detail": "\udc00"}`,
	} {
		for _, kind := range []string{alert.Kind, "flow_notify"} {
			odd = append(odd, args)
			h.exec(`SELECT pelton.enqueue($1, '{}', queue => 'nobody')`, kind)
			// Who has the rights to insert may write what no function takes.
			h.exec(`UPDATE pelton.job SET args = $1::text::json WHERE id = (SELECT max(id) FROM pelton.job)`, args)
		}
	}
	done, err := h.queue.JobErase(ctx, made.Job.ID)
	must(t, err)
	if !done.Changed || done.Notices != 0 {
		t.Errorf("erased: %+v", done)
	}
	rows, err := h.pool.Query(ctx, `SELECT args::text FROM pelton.job WHERE queue = 'nobody' ORDER BY id`)
	must(t, err)
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	if !slices.Equal(left, odd) {
		t.Errorf("left are %q, want %q", left, odd)
	}
}
