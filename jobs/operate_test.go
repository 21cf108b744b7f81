package jobs_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/jobstest"
	"github.com/peltonq/pelton/schema/schematest"
)

func waitState(t *testing.T, client *jobs.Client, id int64, want rivertype.JobState) *rivertype.JobRow {
	t.Helper()
	var job *rivertype.JobRow
	pgtest.Eventually(t, patience, func() bool {
		var err error
		if job, err = client.JobGet(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return job.State == want
	}, "job %d to be %s", id, want)
	return job
}

func TestOperateOnWorkedJobs(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	started := make(chan int64, 10)
	c := config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		started <- job.ID
		switch job.Args.N {
		case 1: // runs until it is cancelled
			<-ctx.Done()
			return context.Cause(ctx)
		case 2: // stores an output while it runs
			if err := jobs.RecordOutput(ctx, "half"); err != nil {
				return err
			}
			_, err := jobs.ClientFromContext(ctx).JobUpdate(ctx, job.ID, nil)
			return err
		}
		return nil
	})
	c.ID = "tester"
	client := start(t, pool, c)
	ctx := t.Context()

	running := insert(t, client, 1, nil)
	<-started
	if _, err := client.JobDelete(ctx, running); !errors.Is(err, rivertype.ErrJobRunning) {
		t.Errorf("delete of a running job: %v", err)
	}
	if job, err := client.JobRetry(ctx, running); err != nil || job.State != rivertype.JobStateRunning {
		t.Errorf("retry of a running job: %v, %v", job, err)
	}
	if _, err := client.JobCancel(ctx, running); err != nil {
		t.Fatal(err)
	}
	job := waitState(t, client, running, rivertype.JobStateCancelled)
	if job.Attempt != 1 || len(job.AttemptedBy) != 1 || job.AttemptedBy[0] != "tester" {
		t.Errorf("cancelled: %+v", job)
	}

	output := insert(t, client, 2, nil)
	if job = waitState(t, client, output, rivertype.JobStateCompleted); string(job.Output()) != `"half"` {
		t.Errorf("output %s", job.Output())
	}

	// Moved and cancelled in a paused line, then resumed: the moved one runs in the other queue, the cancelled one never.
	paused, unsubscribe := client.Subscribe(river.EventKindQueuePaused)
	defer unsubscribe()
	if err := client.QueuePause(ctx, "default", nil); err != nil {
		t.Fatal(err)
	}
	<-paused
	moved, cancelled := insert(t, client, 3, nil), insert(t, client, 3, nil)
	if job, err := client.JobUpdate(ctx, moved, &jobs.JobUpdateParams{Priority: 2, MaxAttempts: 2, Args: taskArgs{N: 5}}); err != nil ||
		job.Priority != 2 || job.MaxAttempts != 2 || string(job.EncodedArgs) != `{"n":5}` {
		t.Errorf("update: %+v, %v", job, err)
	}
	if job, err := client.JobCancel(jobs.WithActor(ctx, "ann"), cancelled); err != nil || job.State != rivertype.JobStateCancelled {
		t.Errorf("cancel: %+v, %v", job, err)
	}
	if err := client.QueueResume(ctx, jobs.AllQueues, nil); err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, pool, moved, "moved completed")
	waitOutcomes(t, pool, cancelled, "cancelled")

	if _, err := client.JobRetry(ctx, cancelled); err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, pool, cancelled, "cancelled retried completed")
	var actor string
	if err := pool.QueryRow(ctx, `SELECT actor FROM pelton.audit WHERE action = 'job.cancel' AND target = $1::bigint::text`, cancelled).
		Scan(&actor); err != nil || actor != "ann" {
		t.Errorf("the cancel's actor is %q, %v", actor, err)
	}
	jobstest.NoneLost(t, pool, "pelton")
}

func TestTxVerbsFollowTheirTransaction(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := newClient(t, pool, nil)
	ctx := t.Context()
	unique := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
	loser, other := insert(t, client, 1, unique), insert(t, client, 2, nil)
	if _, err := client.JobCancel(ctx, loser); err != nil {
		t.Fatal(err)
	}
	holder := insert(t, client, 1, unique)

	tx, err := pool.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var conflict *jobs.UniqueConflictError
	if _, err := client.JobRetryTx(ctx, tx, loser); !errors.As(err, &conflict) || conflict.HolderID != holder {
		t.Fatalf("retry: %v, want a conflict with %d", err, holder)
	}
	// The refusal has not spoiled the transaction.
	if job, err := client.JobCancelTx(ctx, tx, other); err != nil || job.State != rivertype.JobStateCancelled {
		t.Fatalf("%+v, %v", job, err)
	}
	if job, err := client.JobGet(ctx, other); err != nil || job.State != rivertype.JobStateAvailable {
		t.Fatalf("seen before the commit: %+v, %v", job, err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if job, err := client.JobGet(ctx, other); err != nil || job.State != rivertype.JobStateCancelled {
		t.Fatalf("after the commit: %+v, %v", job, err)
	}
	if _, err := client.JobGet(ctx, 1); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("get of no job: %v", err)
	}
	report, err := client.Audit(ctx)
	if err != nil || !report.Clean() {
		t.Errorf("audit: %+v, %v", report, err)
	}
}

func TestJobList(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := newClient(t, pool, nil)
	ctx := t.Context()
	var ids []int64
	for n := range 5 {
		ids = append(ids, insert(t, client, n, &river.InsertOpts{
			Queue: []string{"a", "b"}[n%2], Priority: n%4 + 1, Tags: []string{"all", []string{"even", "odd"}[n%2]},
			Metadata: []byte(`{"m": {"n": ` + string(rune('0'+n)) + `}}`),
		}))
	}
	later := insert(t, client, 9, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour), Queue: "c"})
	sooner := insert(t, client, 9, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Minute), Queue: "c"})
	if _, err := client.JobCancel(ctx, ids[4]); err != nil {
		t.Fatal(err)
	}
	list := jobs.NewJobListParams()
	for name, c := range map[string]struct {
		params *jobs.JobListParams
		want   []int64
	}{
		"all":        {nil, append(append([]int64{}, ids...), later, sooner)},
		"descending": {list.OrderBy(jobs.JobListOrderByID, jobs.SortOrderDesc).First(2), []int64{sooner, later}},
		"queue":      {list.Queues("b"), []int64{ids[1], ids[3]}},
		"priority":   {list.Priorities(1).Queues("a"), []int64{ids[0], ids[4]}},
		"tags any":   {list.TagsAny("odd", "none"), []int64{ids[1], ids[3]}},
		"tags all":   {list.TagsAll("odd", "none"), nil},
		"metadata":   {list.Metadata(`{"m": {"n": 3}}`), []int64{ids[3]}},
		"args":       {list.Args(`{"n": 9}`), []int64{later, sooner}},
		"states":     {list.States("cancelled", "available").Queues("a"), []int64{ids[0], ids[2], ids[4]}},
		"scheduled":  {list.States("scheduled").OrderBy(jobs.JobListOrderByTime, jobs.SortOrderAsc), []int64{sooner, later}},
		"finalized":  {list.OrderBy(jobs.JobListOrderByFinalizedAt, jobs.SortOrderAsc), []int64{ids[4]}},
		"ids":        {list.IDs(ids[0], later), []int64{ids[0], later}},
		"window":     {list.Until(time.Now().Add(-time.Hour)), nil},
		"kind":       {list.Kinds("other"), nil},
	} {
		got, err := client.JobList(ctx, c.params)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !sameIDs(got.Jobs, c.want) {
			t.Errorf("%s: %v, want %v", name, got.Jobs, c.want)
		}
	}
	for _, order := range []jobs.JobListOrderByField{jobs.JobListOrderByID, jobs.JobListOrderByTime, jobs.JobListOrderByScheduledAt} {
		for _, direction := range []jobs.SortOrder{jobs.SortOrderAsc, jobs.SortOrderDesc} {
			if n := countByPages(t, client, list.OrderBy(order, direction).First(2)); n != 7 {
				t.Errorf("pages by %s hold %d jobs, want 7", order, n)
			}
		}
	}
	counts, err := client.JobCounts(ctx)
	if err != nil || len(counts) != 3 || counts[1].Queue != "b" || counts[1].States["available"] != 2 || counts[2].States["scheduled"] != 2 {
		t.Errorf("counts %v, %v", counts, err)
	}
	deleteMany(t, client)
	jobstest.NoneLost(t, pool, "pelton")
}

func deleteMany(t *testing.T, client *jobs.Client) {
	t.Helper()
	if _, err := client.JobDeleteMany(t.Context(), jobs.NewJobDeleteManyParams()); err == nil {
		t.Error("deleted without a filter")
	}
	gone, err := client.JobDeleteMany(t.Context(), jobs.NewJobDeleteManyParams().Queues("c").First(1))
	if err != nil || len(gone.Jobs) != 1 {
		t.Errorf("deleted %v, %v, want one", gone, err)
	}
	gone, err = client.JobDeleteMany(t.Context(), jobs.NewJobDeleteManyParams().UnsafeAll())
	if err != nil || len(gone.Jobs) != 6 {
		t.Errorf("deleted %v, %v, want six", gone, err)
	}
}

func sameIDs(got []*rivertype.JobRow, want []int64) bool {
	if len(got) != len(want) {
		return false
	}
	for i, job := range got {
		if job.ID != want[i] {
			return false
		}
	}
	return true
}

// countByPages reads a list page by page, with the cursor sent through text, and counts different jobs.
func countByPages(t *testing.T, client *jobs.Client, params *jobs.JobListParams) int {
	t.Helper()
	seen := map[int64]bool{}
	for {
		page, err := client.JobList(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Jobs) == 0 {
			return len(seen)
		}
		for _, job := range page.Jobs {
			if seen[job.ID] {
				t.Fatalf("job %d is on two pages", job.ID)
			}
			seen[job.ID] = true
		}
		text, err := page.LastCursor.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		cursor := &jobs.JobListCursor{}
		if err := cursor.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		params = params.After(cursor)
	}
}

func TestQueueVerbs(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := newClient(t, pool, nil)
	ctx := t.Context()
	if _, err := client.QueueGet(ctx, "a"); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("get of no queue: %v", err)
	}
	for range 2 { // a second pause changes nothing
		if err := client.QueuePause(ctx, "a", nil); err != nil {
			t.Fatal(err)
		}
	}
	if q, err := client.QueueUpdate(ctx, "b", &jobs.QueueUpdateParams{Metadata: []byte(`{"x": 1}`)}); err != nil || string(q.Metadata) != `{"x": 1}` {
		t.Errorf("%+v, %v", q, err)
	}
	if q, err := client.QueueGet(ctx, "a"); err != nil || q.PausedAt == nil {
		t.Errorf("%+v, %v", q, err)
	}
	if err := client.QueuePause(ctx, jobs.AllQueues, nil); err != nil {
		t.Fatal(err)
	}
	list, err := client.QueueList(ctx, nil)
	if err != nil || len(list.Queues) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, q := range list.Queues {
		if q.PausedAt == nil {
			t.Errorf("queue %q is not paused", q.Name)
		}
	}
	if err := client.QueueResume(ctx, jobs.AllQueues, nil); err != nil {
		t.Fatal(err)
	}
	if list, err = client.QueueList(ctx, nil); err != nil || len(list.Queues) != 2 || list.Queues[0].PausedAt != nil {
		t.Fatalf("%v, %v", list, err)
	}
	for name, err := range map[string]error{
		"pause":  client.QueuePause(ctx, "No!", nil),
		"resume": client.QueueResume(ctx, "", nil),
	} {
		if err == nil {
			t.Errorf("%s took a bad name", name)
		}
	}
	if _, err := client.QueueUpdate(ctx, "b", &jobs.QueueUpdateParams{Metadata: []byte(`[1]`)}); err == nil {
		t.Error("took metadata that is no object")
	}
	var actions string
	if err := pool.QueryRow(ctx, `SELECT string_agg(action || ' ' || target, ', ' ORDER BY id) FROM pelton.audit`).Scan(&actions); err != nil {
		t.Fatal(err)
	}
	if want := "queue.pause a, queue.update b, queue.pause *, queue.resume *"; actions != want {
		t.Errorf("audit: %s; want %s", actions, want)
	}
}

func TestDeadLetterVerbs(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := start(t, pool, config(func(_ context.Context, job *river.Job[taskArgs]) error {
		if job.Args.N < 10 {
			return errors.New("no")
		}
		return nil
	}))
	ctx := t.Context()
	once := &river.InsertOpts{MaxAttempts: 1}
	first, second := insert(t, client, 1, once), insert(t, client, 2, once)
	waitState(t, client, first, rivertype.JobStateDiscarded)
	waitState(t, client, second, rivertype.JobStateDiscarded)
	letter, err := client.DeadGet(ctx, first)
	if err != nil || letter.Error != "no" || letter.Reason != jobs.DeadExhausted || len(letter.Attempts) != 1 {
		t.Fatalf("%+v, %v", letter, err)
	}
	made, err := client.DeadRedrive(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	waitState(t, client, made.ID, rivertype.JobStateDiscarded)
	if err := client.DeadDiscard(ctx, first); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("discard of a redriven letter: %v", err)
	}
	if ids, err := client.RedrivenAs(ctx, first); err != nil || !slices.Equal(ids, []int64{made.ID}) {
		t.Errorf("made of the letter: %v, %v", ids, err)
	}
	if from := jobs.RedrivenFrom(made); from != first {
		t.Errorf("made of the letter of job %d", from)
	}
	if letters, err := client.DeadList(ctx, nil); err != nil || len(letters) != 2 || letters[0].JobID != made.ID {
		t.Errorf("%v, %v", letters, err)
	}
	if gone, err := client.DeadDiscardMany(ctx, &jobs.DeadFilter{IDs: []int64{made.ID}}, 0); err != nil || len(gone) != 1 {
		t.Errorf("%v, %v", gone, err)
	}
	// Retried under its own id: the letter goes, one attempt more is allowed.
	if _, err := client.JobUpdate(ctx, second, &jobs.JobUpdateParams{Args: taskArgs{N: 10}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.JobRetry(ctx, second); err != nil {
		t.Fatal(err)
	}
	if job := waitState(t, client, second, rivertype.JobStateCompleted); job.Attempt != 2 || job.MaxAttempts != 2 {
		t.Errorf("%+v", job)
	}
	if _, err := client.DeadGet(ctx, second); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("letter of a retried job: %v", err)
	}
	jobstest.NoneLost(t, pool, "pelton")
}

// Many jobs are cancelled in few transactions, wherever they wait; one that somebody's transaction holds keeps none of the others.
func TestCancelMany(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client := newClient(t, pool, nil)
	ctx := t.Context()
	later := &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)}
	ids := []int64{7} // of no job
	for n := range 300 {
		opts := later
		if n%2 == 0 {
			opts = nil
		}
		ids = append(ids, insert(t, client, n, opts))
	}
	if err := client.JobCancelMany(jobs.WithActor(ctx, "ann"), append(ids, ids[5])); err != nil {
		t.Fatal(err)
	}
	cancelled := func(ids []int64) {
		t.Helper()
		for _, id := range ids {
			if job, err := client.JobGet(ctx, id); err != nil || job.State != rivertype.JobStateCancelled {
				t.Errorf("job %d is %+v, %v", id, job, err)
			}
		}
	}
	cancelled(ids[1:])
	var audited, transactions int
	if err := pool.QueryRow(ctx, `SELECT count(*), count(DISTINCT xmin::text) FROM pelton.audit WHERE action = 'job.cancel' AND actor = 'ann'`).
		Scan(&audited, &transactions); err != nil || audited != 300 || transactions != 2 {
		t.Errorf("%d cancels are audited, in %d transactions, want 300 in 2 (%v)", audited, transactions, err)
	}

	held, free := insert(t, client, 1, later), insert(t, client, 2, later)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, `SELECT FROM pelton.job_scheduled WHERE job_id = $1 FOR UPDATE`, held); err != nil {
		t.Fatal(err)
	}
	if err := client.JobCancelMany(ctx, []int64{held, free}); err == nil || !strings.Contains(err.Error(), strconv.FormatInt(held, 10)) {
		t.Errorf("a job is held: %v", err)
	}
	cancelled([]int64{free})
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := client.JobCancelMany(ctx, []int64{held}); err != nil {
		t.Fatal(err)
	}
	cancelled([]int64{held})
}

// A change with a condition waits for one that is under way, and sees what that did.
func TestUpdateIf(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client, err := jobs.NewClient(pool, &jobs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	job := insert(t, client, 1, nil)
	changed := errors.New("it was changed")
	ifFirst := &jobs.JobUpdateParams{Priority: 3, If: func(job *rivertype.JobRow) error {
		if job.Priority != 1 {
			return changed
		}
		return nil
	}}
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := client.JobUpdateTx(ctx, tx, job, &jobs.JobUpdateParams{Priority: 2}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := client.JobUpdate(ctx, job, ifFirst)
		answered <- err
	}()
	pgtest.Eventually(t, patience, func() bool {
		var waits bool
		if err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).
			Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits || len(answered) > 0
	}, "the second change to wait")
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; !errors.Is(err, changed) {
		t.Errorf("the second change: %v", err)
	}
	if row, err := client.JobGet(ctx, job); err != nil || row.Priority != 2 {
		t.Errorf("%+v, %v", row, err)
	}
	var entries int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM pelton.audit WHERE action = 'job.update'`).Scan(&entries); err != nil || entries != 1 {
		t.Errorf("%d entries of the audit, %v, want that of the first change", entries, err)
	}
	ifFirst.If = func(*rivertype.JobRow) error { return nil }
	if row, err := client.JobUpdate(ctx, job, ifFirst); err != nil || row.Priority != 3 {
		t.Errorf("%+v, %v", row, err)
	}
	if _, err := client.JobUpdate(ctx, 1, ifFirst); !errors.Is(err, rivertype.ErrNotFound) {
		t.Errorf("a job that is not there: %v", err)
	}
}
