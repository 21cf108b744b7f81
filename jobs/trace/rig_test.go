package trace_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/otlptest"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/jobs/trace"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

// patience is how long a test waits for something that must happen.
const patience = time.Minute

type taskArgs struct{}

func (taskArgs) Kind() string { return "task" }

type otherArgs struct{}

func (otherArgs) Kind() string { return "other" }

type workFunc = func(ctx context.Context, job *river.Job[taskArgs]) error

// rig is a service that enqueues, "shop", one that works and advances flows, "works", and a collector for both.
type rig struct {
	t           *testing.T
	pool        *pgxpool.Pool
	spans       *otlptest.Collector
	shop, works *trace.Tracer
	client      *jobs.Client // of shop
	flows       *flow.Client // of shop
	worker      *jobs.Client
}

// atOnce has failed jobs run again at once.
type atOnce struct{}

func (atOnce) NextRetry(*rivertype.JobRow) time.Time { return time.Now() }

func newRig(t *testing.T, config trace.Config, work workFunc) *rig {
	t.Helper()
	return newRigOf(t, config, config, work)
}

// newRigOf is newRig with other settings for the two.
func newRigOf(t *testing.T, shop, works trace.Config, work workFunc) *rig {
	t.Helper()
	r := &rig{t: t, pool: schematest.Pool(t), spans: otlptest.New(t)}
	r.shop, r.works = r.tracer("shop", shop), r.tracer("works", works)
	var err error
	if r.client, err = jobs.NewClient(r.pool, &jobs.Config{Middleware: r.shop.Middleware(), Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	if r.flows, err = flow.NewClient(r.pool, r.client, &flow.Config{SchedulerOff: true, Observer: r.shop.Flows(), Kinds: []string{flowtest.Kind}}); err != nil {
		t.Fatal(err)
	}
	r.worker = r.work(work)
	return r
}

// tracer makes a tracer that is stopped after the clients.
func (r *rig) tracer(service string, config trace.Config) *trace.Tracer {
	r.t.Helper()
	config.Service = service
	if config.Endpoint == "" && config.Provider == nil {
		config.Endpoint = r.spans.URL + "/v1/traces"
	}
	tracer, err := trace.New(r.t.Context(), config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := tracer.Stop(ctx); err != nil {
			r.t.Errorf("stop: %v", err)
		}
	})
	return tracer
}

// work starts an executor and a scheduler of flows.
func (r *rig) work(work workFunc) *jobs.Client {
	t := r.t
	t.Helper()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, &task{work: work})
	jobs.AddWorker(workers, &flowtest.Worker{})
	command.Register(workers, command.Config{})
	worker, err := jobs.NewClient(r.pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 10}}, Workers: workers, Middleware: r.works.Middleware(),
		Heartbeat: 50 * time.Millisecond, PollInterval: 100 * time.Millisecond, RetryPolicy: atOnce{}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	flows, err := flow.NewClient(r.pool, worker, &flow.Config{Observer: r.works.Flows(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	flows.Start(t.Context())
	t.Cleanup(func() {
		flows.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := worker.StopAndCancel(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return worker
}

// task works jobs of kind task, each for a second at most.
type task struct {
	river.WorkerDefaults[taskArgs]
	work workFunc
}

func (w *task) Work(ctx context.Context, job *river.Job[taskArgs]) error { return w.work(ctx, job) }

func (*task) Timeout(job *river.Job[taskArgs]) time.Duration {
	if strings.Contains(string(job.Metadata), `"brief"`) {
		return 50 * time.Millisecond
	}
	return -1
}

// eventually waits for spans.
func (r *rig) eventually(what string, there func() bool) {
	r.t.Helper()
	defer func() {
		if r.t.Failed() {
			r.t.Logf("spans:\n%s", r.spans)
		}
	}()
	pgtest.Eventually(r.t, patience, func() bool {
		for _, tracer := range []*trace.Tracer{r.shop, r.works} {
			if err := tracer.Flush(r.t.Context()); err != nil {
				r.t.Fatal(err)
			}
		}
		return there()
	}, "%s", what)
}

// named waits for n spans of a name, by their start.
func (r *rig) named(name string, n int) []*otlptest.Span {
	r.t.Helper()
	r.eventually(name, func() bool { return len(r.spans.Named(name)) >= n })
	spans := r.spans.Named(name)
	if len(spans) != n {
		r.t.Fatalf("%d spans %q, want %d; there are:\n%s", len(spans), name, n, r.spans)
	}
	return spans
}

func (r *rig) insert(ctx context.Context, opts *river.InsertOpts) int64 {
	r.t.Helper()
	result, err := r.client.Insert(ctx, taskArgs{}, opts)
	if err != nil {
		r.t.Fatal(err)
	}
	return result.Job.ID
}

// completed waits until no job waits or runs.
func (r *rig) completed() {
	r.t.Helper()
	pgtest.Eventually(r.t, patience, func() bool {
		var left int
		if err := r.pool.QueryRow(r.t.Context(), `SELECT count(*) FROM pelton.job_state WHERE state NOT IN ('completed', 'cancelled', 'discarded')`).Scan(&left); err != nil {
			r.t.Fatal(err)
		}
		return left == 0
	}, "all jobs to end")
}

func (r *rig) metadata(job int64) string {
	r.t.Helper()
	var text *string
	if err := r.pool.QueryRow(r.t.Context(), `SELECT metadata::text FROM pelton.job WHERE id = $1`, job).Scan(&text); err != nil {
		r.t.Fatal(err)
	}
	if text == nil {
		return ""
	}
	return *text
}

// child fails the test unless a span is another's child.
func child(t *testing.T, s, parent *otlptest.Span) {
	t.Helper()
	if s.Trace != parent.Trace || s.Parent != parent.ID {
		t.Errorf("%q is a child of %s/%s, want %q: %s", s.Name, s.Trace, s.Parent, parent.Name, parent.Ref())
	}
}

// attrs fails the test unless a span has attributes, given as "name=value"; "name" alone: any but none.
func attrs(t *testing.T, s *otlptest.Span, want ...string) {
	t.Helper()
	for _, w := range want {
		name, value, exact := strings.Cut(w, "=")
		if got, has := s.Attrs[name]; !has || exact && got != value {
			t.Errorf("%q has %s=%q, want %s", s.Name, name, got, w)
		}
	}
}
