package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
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

// refusals counts refused results and rows below a mark.
type refusals struct {
	jobs.NoObserver

	n, below atomic.Int32
}

func (r *refusals) BelowMark(_ string, n int) { r.below.Add(int32(n)) }
func (r *refusals) Finished(runs []jobs.RunStats, _ time.Duration) {
	for _, run := range runs {
		if run.Outcome == "refused" {
			r.n.Add(1)
		}
	}
}

// A worker that calls CompleteTx, leaves the transaction open and returns must not hold up the results of others.
func TestOpenCompleteTxHoldsUpOnlyItself(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	open := make(chan pgx.Tx, 1)
	client := start(t, pool, config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		if job.Args.N != 0 {
			return nil
		}
		tx, err := pool.Begin(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		_, err = jobs.CompleteTx(ctx, tx, job)
		open <- tx
		return err
	}))
	held := insert(t, client, 0, nil)
	tx := <-open
	for i := range 9 {
		waitOutcomes(t, pool, insert(t, client, i+1, nil), "completed")
	}
	if got := outcomes(t, pool, held); got != "" {
		t.Fatalf("the held job ended %q before its transaction", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, pool, held, "completed")
	jobstest.NoneLost(t, pool, "pelton")
}

func TestRolledBackCompleteTxDoesNotCount(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := start(t, pool, config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		if _, err := jobs.CompleteTx(ctx, tx, job); err != nil {
			return err
		}
		return errors.New("second thoughts")
	}))
	id := insert(t, client, 0, &river.InsertOpts{MaxAttempts: 1})
	waitOutcomes(t, pool, id, "discarded")
}

// Two services with different kinds share a queue: neither touches the other's jobs for long.
func TestTwoServicesShareAQueue(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	one, other := config(func(context.Context, *river.Job[taskArgs]) error { return nil }), config(nil)
	other.Workers = jobs.NewWorkers()
	jobs.AddWorker(other.Workers, river.WorkFunc(func(context.Context, *river.Job[otherArgs]) error { return nil }))
	oneClient := start(t, pool, one)
	mine := insert(t, oneClient, 1, nil)
	res, err := oneClient.Insert(t.Context(), otherArgs{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs := res.Job.ID
	waitOutcomes(t, pool, mine, "completed")
	waitOutcomes(t, pool, theirs, "parked")
	otherClient := start(t, pool, other)
	waitOutcomes(t, pool, theirs, "parked completed")
	row, err := otherClient.JobGet(t.Context(), theirs)
	if err != nil || row.Attempt != 1 {
		t.Errorf("attempt is %d, want 1: %v", row.Attempt, err)
	}
	jobstest.NoneLost(t, pool, "pelton")
}

type otherArgs struct{}

func (otherArgs) Kind() string { return "other" }

// A result that the database refuses is replaced by a readable error, and its neighbours are recorded.
func TestOneBadResultAmongGoodOnes(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	// What is known to be refused is refused when it is recorded. The database may still refuse more.
	exec(t, pool, `ALTER TABLE pelton.job_attempt ADD CHECK ((metadata->>'x')::integer > 0)`)
	gate := make(chan struct{})
	c := config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		<-gate
		if job.Args.N == 7 {
			return jobs.MetadataSet(ctx, "x", "seven")
		}
		return nil
	})
	c.Queues["default"] = jobs.QueueConfig{MaxWorkers: 100}
	client := start(t, pool, c)
	params := make([]river.InsertManyParams, 100)
	for i := range params {
		params[i] = river.InsertManyParams{Args: taskArgs{N: i}, InsertOpts: &river.InsertOpts{MaxAttempts: 1}}
	}
	if _, err := client.InsertMany(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	close(gate)
	pgtest.Eventually(t, patience, func() bool {
		return one[int](t, pool, `SELECT count(*) FROM pelton.job_attempt`) == 100
	}, "all runs are recorded")
	bad := one[string](t, pool, `SELECT string_agg(error, '|') FROM pelton.job_attempt WHERE outcome <> 'completed'`)
	if !strings.HasPrefix(bad, "the result of this run could not be stored: ") || strings.Contains(bad, "|") {
		t.Errorf("errors are %q, want one, readable", bad)
	}
	jobstest.NoneLost(t, pool, "pelton")
}

// What a worker records is refused while it can still do something about it: each value, and all metadata together.
func TestRecordedValuesAreLimited(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	half := strings.Repeat("x", jobs.MaxArgsBytes/2-20)
	client := start(t, pool, config(func(ctx context.Context, _ *river.Job[taskArgs]) error {
		for _, step := range []struct {
			want string // "": accepted
			err  error
		}{
			{"", jobs.MetadataSet(ctx, "a", half)},
			{"", jobs.MetadataSet(ctx, "b", half)},
			{"", jobs.MetadataSet(ctx, "b", half)},
			{"over the limit of 1048576 for all its keys together", jobs.MetadataSet(ctx, "c", strings.Repeat("x", 50))},
			{"over the limit", jobs.MetadataSet(ctx, "b", half+half)},
			{"", jobs.MetadataSet(ctx, "b", "short")},
			{"", jobs.MetadataSet(ctx, "c", strings.Repeat("x", 50))},
			{"digits", jobs.MetadataSet(ctx, "d", json.RawMessage("1e200000"))},
			{"u0000", jobs.MetadataSet(ctx, "\x00", 1)},
			{"digits", jobs.RecordOutput(ctx, json.RawMessage("1e200000"))},
		} {
			if step.want == "" && step.err != nil || step.want != "" && (step.err == nil || !strings.Contains(step.err.Error(), step.want)) {
				t.Errorf("error is %v, want %q", step.err, step.want)
			}
		}
		return nil
	}))
	waitOutcomes(t, pool, insert(t, client, 1, nil), "completed")
	keys := one[string](t, pool, `SELECT string_agg(k || ' ' || length(metadata->>k), ', ' ORDER BY k)
		FROM pelton.job_attempt, jsonb_object_keys(metadata) k`)
	if want := fmt.Sprintf("a %d, b 5, c 50", len(half)); keys != want {
		t.Errorf("metadata are %s, want %s", keys, want)
	}
}

// Jobs of another client whose args jsonb cannot hold do not break listings by args.
func TestListingByArgsPassesOverWhatJSONBCannotHold(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := newClient(t, pool, nil)
	id := insert(t, client, 7, nil)
	for _, args := range []string{`{"n":7,"big":1e200000}`, `{"n":7,"s":"\u0000"}`, `{"n":7,"s":"\ud800"}`} {
		exec(t, pool, `INSERT INTO pelton.job (kind, args) VALUES ('task', $1::text::json)`, args)
	}
	list, err := client.JobList(t.Context(), jobs.NewJobListParams().Args(`{"n":7}`))
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].ID != id {
		t.Errorf("listed %v, %v, want job %d", list, err, id)
	}
}

// Args of the wrong shape fail, back off and end as a dead letter, whole.
func TestArgsOfTheWrongShape(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	c := config(func(context.Context, *river.Job[taskArgs]) error { return nil })
	c.RetryPolicy = atOnce{}
	client := start(t, pool, c)
	args := jobs.RawArgs{JobKind: "task", JSON: json.RawMessage(`{"n":"seven"}`)}
	res, err := client.Insert(t.Context(), args, &river.InsertOpts{MaxAttempts: 3})
	if err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, pool, res.Job.ID, "errored errored discarded")
	var text, kept string
	var attempts int
	if err := pool.QueryRow(t.Context(), `SELECT error, args::text, jsonb_array_length(attempts) FROM pelton.job_dead WHERE job_id = $1`,
		res.Job.ID).Scan(&text, &kept, &attempts); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `decode args of kind "task"`) || kept != `{"n":"seven"}` || attempts != 3 {
		t.Errorf("dead letter has error %q, args %s, %d attempts", text, kept, attempts)
	}
}

// What is too large or could not be read back is refused before anything is stored.
func TestBadInputIsRefusedAtTheEdge(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := newClient(t, pool, nil)
	big := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	raw := func(j string) jobs.RawArgs { return jobs.RawArgs{JobKind: "task", JSON: json.RawMessage(j)} }
	cases := []struct {
		name string
		args river.JobArgs
		opts *river.InsertOpts
		want string // "": accepted
	}{
		{"limit", jobs.RawArgs{JobKind: "task", JSON: big(jobs.MaxArgsBytes)}, nil, ""},
		{"over", jobs.RawArgs{JobKind: "task", JSON: big(jobs.MaxArgsBytes + 1)}, nil, "over the limit of 1048576"},
		{"10 MB", jobs.RawArgs{JobKind: "task", JSON: big(10 << 20)}, nil, "over the limit"},
		{"100 MB", jobs.RawArgs{JobKind: "task", JSON: big(100 << 20)}, nil, "over the limit"},
		{"nul", raw(`{"a":"\u0000"}`), nil, "u0000"},
		{"escaped backslash", raw(`{"a":"\\u0000"}`), nil, ""},
		{"half a pair", raw(`{"a":"\ud800"}`), nil, "surrogate"},
		{"pair", raw(`{"a":"\ud83d\ude00"}`), nil, ""},
		{"number", raw(`{"a":1e200000}`), nil, "digits"},
		{"number in metadata", taskArgs{}, &river.InsertOpts{Metadata: []byte(`{"a":1e200000}`)}, "digits"},
		{"large number", raw(`{"a":1e131071}`), nil, ""},
		{"not JSON", raw(`{"a":`), nil, "encode args"},
		{"invalid UTF-8", raw("{\"a\":\"\xff\"}"), nil, "UTF-8"},
		{"no kind", jobs.RawArgs{}, nil, "kind is 0 bytes"},
		{"kind of two lines", jobs.RawArgs{JobKind: "bad kind\nx"}, nil, "kind has characters that control a terminal"},
		{"queue", taskArgs{}, &river.InsertOpts{Queue: "No Spaces"}, "queue name"},
		{"priority", taskArgs{}, &river.InsertOpts{Priority: 5}, "priority is 5"},
		{"tag", taskArgs{}, &river.InsertOpts{Tags: []string{"a,b"}}, "tag"},
		{"metadata", taskArgs{}, &river.InsertOpts{Metadata: []byte(`[]`)}, "not a JSON object"},
		{"attempts", taskArgs{}, &river.InsertOpts{MaxAttempts: 40000}, "want 1 to 32767"},
		{"period", taskArgs{}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByPeriod: time.Millisecond}}, "at least 1 second"},
		{"states", taskArgs{}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{
			ByArgs: true, ByState: []rivertype.JobState{rivertype.JobStateRunning},
		}}, "available, pending, scheduled"},
	}
	accepted := 0
	for _, tc := range cases {
		_, err := client.Insert(t.Context(), tc.args, tc.opts)
		var invalid *jobs.InvalidJobError
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.want == "":
			accepted++
		case !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want):
			t.Errorf("%s: error is %v, want %q in an InvalidJobError", tc.name, err, tc.want)
		}
		if len(fmt.Sprint(err)) > 400 {
			t.Errorf("%s: the message is %d bytes long", tc.name, len(fmt.Sprint(err)))
		}
	}
	params := []river.InsertManyParams{{Args: taskArgs{}}, {Args: raw(`{"a":"\u0000"}`)}}
	var invalid *jobs.InvalidJobError
	if _, err := client.InsertManyFast(t.Context(), params); !errors.As(err, &invalid) || invalid.Index != 1 {
		t.Errorf("bulk: error is %v, want one that names job 1", err)
	}
	if n := one[int](t, pool, `SELECT count(*) FROM pelton.job`); n != accepted {
		t.Errorf("%d jobs stored, want the %d accepted ones", n, accepted)
	}
}

// Snoozes and hand-backs keep the attempt number; the run number still tells runs apart when the first owner dies.
func TestRunTellsRunsApart(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	var snoozes atomic.Int32
	b := newBlocking()
	c := config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		if snoozes.Add(1) <= 3 {
			return river.JobSnooze(0)
		}
		return b.work(ctx, job)
	})
	client := start(t, pool, c)
	id := insert(t, client, 1, nil)
	<-b.began
	if err := client.StopAndCancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A claim that was on its way when the stop began may have taken the job once more, and handed it back.
	before := outcomes(t, pool, id)
	if !regexp.MustCompile(`^snoozed snoozed snoozed( returned)+$`).MatchString(before) {
		t.Fatalf("the job's runs ended %q", before)
	}
	close(b.letGo)
	start(t, pool, c)
	waitOutcomes(t, pool, id, before+" completed")
	row, err := client.JobGet(t.Context(), id)
	if err != nil || row.Attempt != 1 || row.State != rivertype.JobStateCompleted {
		t.Errorf("attempt %d, state %s: %v; want 1, completed", row.Attempt, row.State, err)
	}
	if !strings.Contains(string(row.Metadata), `"snoozes": 3`) && !strings.Contains(string(row.Metadata), `"snoozes":3`) {
		t.Errorf("metadata is %s, want 3 snoozes", row.Metadata)
	}
}

// A claim of two thousand jobs writes nothing to TOAST.
func TestLargeClaimWritesNoToast(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	c := config(func(context.Context, *river.Job[taskArgs]) error { return nil })
	c.Queues["default"] = jobs.QueueConfig{MaxWorkers: 2000}
	client := newClient(t, pool, c)
	params := make([]river.InsertManyParams, 20_000)
	for i := range params {
		params[i].Args = taskArgs{N: i}
	}
	if _, err := client.InsertManyFast(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	start(t, pool, c)
	pgtest.Eventually(t, patience, func() bool {
		return one[int](t, pool, `SELECT count(*) FROM pelton.job_attempt`) == len(params)
	}, "all jobs are worked")
	const toast = `SELECT coalesce(sum(pg_relation_size(c.reltoastrelid)), 0) FROM pg_class c
		WHERE c.oid IN ('pelton.job_lease'::regclass, 'pelton.job_ready'::regclass) AND c.reltoastrelid <> 0`
	if n := one[int](t, pool, toast); n != 0 {
		t.Errorf("%d bytes of TOAST", n)
	}
}

// A running job is cancelled within a heartbeat where nobody listens.
func TestCancelWithoutListen(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	b := newBlocking()
	c := config(b.work)
	c.PollOnly = true
	client := start(t, pool, c)
	id := insert(t, client, 1, nil)
	<-b.began
	if _, err := client.JobCancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, pool, id, "cancelled")
	pgtest.Eventually(t, 3*patience, func() bool { // what the finisher misses goes by the sweep, a minute or two later
		return one[int](t, pool, `SELECT count(*) FROM pelton.job_void`) == 0
	}, "the void goes after the run")
}

// Lower priorities get their turn under a stream of higher ones.
func TestLowPriorityIsNotStarved(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	started := make(chan struct{})
	var client *jobs.Client
	var running atomic.Bool
	running.Store(true)
	c := config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		if job.Priority == 4 {
			close(started)
			return nil
		}
		if running.Load() { // every urgent job is followed by two more
			for range 2 {
				if _, err := client.Insert(ctx, taskArgs{}, &river.InsertOpts{Priority: 1}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	c.Queues["default"] = jobs.QueueConfig{MaxWorkers: 2}
	c.AgeAfter = 100 * time.Millisecond
	client = newClient(t, pool, c)
	params := make([]river.InsertManyParams, 200)
	for i := range params {
		params[i] = river.InsertManyParams{Args: taskArgs{N: i}, InsertOpts: &river.InsertOpts{Priority: 1}}
	}
	if _, err := client.InsertMany(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	insert(t, client, 1, &river.InsertOpts{Priority: 4})
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-started:
	case <-time.After(patience):
		t.Error("the job of priority 4 never started")
	}
	if n := one[int](t, pool, `SELECT count(*) FROM pelton.job_ready WHERE priority = 1`); n == 0 {
		t.Error("no urgent job was waiting when the last class had its turn: the test shows nothing")
	}
	running.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := client.StopAndCancel(ctx); err != nil {
		t.Error(err)
	}
}
