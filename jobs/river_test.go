package jobs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// TestRiversOwnContextFunctionsFailClearly calls what River's engine must be there for: the job fails with River's words, and
// does not end as completed with its output lost.
func TestRiversOwnContextFunctionsFailClearly(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	cases := []struct {
		call func(ctx context.Context) error
		want string
	}{
		{func(ctx context.Context) error { return river.RecordOutput(ctx, 1) }, "RecordOutput must be called within a Worker"},
		{func(ctx context.Context) error { return river.MetadataSet(ctx, "key", 1) }, "MetadataSet must be called within a worker"},
		{func(ctx context.Context) error { river.ClientFromContext[pgx.Tx](ctx); return nil }, "client not found in context"},
		{func(ctx context.Context) error {
			river.ResumableStep(ctx, "one", nil, func(context.Context) error { return nil })
			return nil
		}, "resumable step can only be used within a Worker"},
	}
	client := start(t, pool, config(func(ctx context.Context, job *river.Job[taskArgs]) error { return cases[job.Args.N].call(ctx) }))
	for i, c := range cases {
		id := insert(t, client, i, &river.InsertOpts{MaxAttempts: 1})
		waitOutcomes(t, pool, id, "discarded")
		got := one[string](t, pool, `SELECT error FROM pelton.job_attempt ORDER BY job_id DESC LIMIT 1`)
		if !strings.Contains(got, c.want) {
			t.Errorf("the job failed with %q, want %q in it", got, c.want)
		}
	}
}

// TestJobCancelledByItsWorkerWhileTheClientStops wants JobCancel to count also after a hard stop.
func TestJobCancelledByItsWorkerWhileTheClientStops(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	began := make(chan struct{})
	client := start(t, pool, config(func(ctx context.Context, _ *river.Job[taskArgs]) error {
		close(began)
		<-ctx.Done()
		return river.JobCancel(errors.New("never again"))
	}))
	id := insert(t, client, 1, nil)
	<-began
	if err := client.StopAndCancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(t, pool, id); got != "cancelled" {
		t.Errorf("the job ended %q, want cancelled", got)
	}
}

// pickyWorker can only say when to retry if it knows its args.
type pickyWorker struct {
	river.WorkerDefaults[taskArgs]
	asked chan struct{}
}

func (*pickyWorker) Work(context.Context, *river.Job[taskArgs]) error { return nil }

func (w *pickyWorker) NextRetry(*river.Job[taskArgs]) time.Time {
	close(w.asked)
	return time.Now()
}

// TestNextRetryIsNotAskedWithoutArgs lets a job fail before its worker saw its args.
func TestNextRetryIsNotAskedWithoutArgs(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	worker := &pickyWorker{asked: make(chan struct{})}
	c := config(nil)
	c.Workers = jobs.NewWorkers()
	jobs.AddWorker(c.Workers, worker)
	client := start(t, pool, c)
	res, err := client.Insert(t.Context(), jobs.RawArgs{JobKind: "task", JSON: []byte(`{"n":"no number"}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, pool, res.Job.ID, "errored")
	select {
	case <-worker.asked:
		t.Error("the worker was asked for the next retry of args that it could not decode")
	default:
	}
}

// notes is what happened, in order.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

// notingPlugin is a hook and middleware in one.
type notingPlugin struct {
	river.PluginDefaults
	name  string
	notes *notes
}

func (p *notingPlugin) InsertBegin(context.Context, *rivertype.JobInsertParams) error {
	p.notes.add(p.name + ": insert begins")
	return nil
}

func (p *notingPlugin) InsertMany(
	ctx context.Context, _ []*rivertype.JobInsertParams, doInner func(context.Context) ([]*rivertype.JobInsertResult, error),
) ([]*rivertype.JobInsertResult, error) {
	p.notes.add(p.name + ": around the insert")
	return doInner(ctx)
}

func (p *notingPlugin) WorkBegin(context.Context, *rivertype.JobRow) error {
	p.notes.add(p.name + ": work begins")
	return nil
}

func (p *notingPlugin) WorkEnd(_ context.Context, _ *rivertype.JobRow, err error) error {
	p.notes.add(p.name + ": work ended")
	return err
}

func (p *notingPlugin) Work(ctx context.Context, _ *rivertype.JobRow, doInner func(context.Context) error) error {
	p.notes.add(p.name + ": around the work")
	return doInner(ctx)
}

// pluggedArgs bring a plugin of their own.
type pluggedArgs struct{}

func (pluggedArgs) Kind() string { return "plugged" }

func (pluggedArgs) Plugins() []rivertype.Plugin {
	return []rivertype.Plugin{&notingPlugin{name: "args", notes: theNotes}}
}

// theNotes are reached by a plugin of an args type, which is made of an empty value.
var theNotes = &notes{}

// TestPluginsAreHooksAndMiddleware wants each plugin's methods once, in River's order: middleware outside of hooks, the
// client's before those of the args type.
func TestPluginsAreHooksAndMiddleware(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	c := config(nil)
	c.Plugins = []rivertype.Plugin{&notingPlugin{name: "client", notes: theNotes}}
	c.Workers = jobs.NewWorkers()
	jobs.AddWorker(c.Workers, river.WorkFunc(func(context.Context, *river.Job[pluggedArgs]) error {
		theNotes.add("work")
		return nil
	}))
	client := newClient(t, pool, c)
	many := []river.InsertManyParams{{Args: pluggedArgs{}}, {Args: pluggedArgs{}}}
	if _, err := client.InsertManyFast(t.Context(), many[:1]); err != nil {
		t.Fatal(err)
	}
	insertOne := []string{"client: around the insert", "args: around the insert", "client: insert begins", "args: insert begins"}
	if !slices.Equal(theNotes.list, insertOne) {
		t.Errorf("an insert of one met %q", theNotes.list)
	}
	theNotes.list = nil
	results, err := client.InsertMany(t.Context(), many)
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Concat(insertOne, insertOne[2:]); !slices.Equal(theNotes.list, want) {
		t.Errorf("an insert of two met %q", theNotes.list)
	}
	for i := range results {
		if _, err := client.JobCancel(t.Context(), results[i].Job.ID); err != nil {
			t.Fatal(err)
		}
	}
	theNotes.list = nil
	start(t, pool, c)
	id := one[int64](t, pool, `SELECT min(id) FROM pelton.job`)
	waitOutcomes(t, pool, id, "completed")
	theNotes.mu.Lock()
	defer theNotes.mu.Unlock()
	want := []string{
		"client: around the work", "args: around the work", "client: work begins", "args: work begins", "work",
		"client: work ended", "args: work ended",
	}
	if !slices.Equal(theNotes.list, want) {
		t.Errorf("work met %q", theNotes.list)
	}
}
