package trace_test

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/trace"
	"github.com/peltonq/pelton/schema/schematest"
)

// sink takes spans and forgets them.
type sink struct{}

func (sink) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (sink) Shutdown(context.Context) error                             { return nil }

// ratios are how much is traced; nil of none: there is no tracer.
var ratios = []struct {
	name  string
	ratio float64
}{{"without", 0}, {"off", -1}, {"hundredth", 0.01}, {"all", 1}}

func benchTracer(b *testing.B, ratio float64) *trace.Tracer {
	b.Helper()
	if ratio == 0 {
		return nil
	}
	tracer, err := trace.New(b.Context(), trace.Config{Exporter: sink{}, Ratio: ratio})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := tracer.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return tracer
}

// What the middleware adds to an insert of one job, without the database.
func BenchmarkInsertMiddleware(b *testing.B) {
	for _, r := range ratios[1:] {
		b.Run(r.name, func(b *testing.B) {
			tracer := benchTracer(b, r.ratio)
			result := []*rivertype.JobInsertResult{{Job: &rivertype.JobRow{ID: 1}}}
			inner := func(context.Context) ([]*rivertype.JobInsertResult, error) { return result, nil }
			many := []*rivertype.JobInsertParams{{Kind: "task", Queue: "default", Priority: 1}}
			b.ReportAllocs()
			for b.Loop() {
				many[0].Metadata = nil
				if _, err := tracer.InsertMany(b.Context(), many, inner); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the middleware adds to a run, without the database.
func BenchmarkWorkMiddleware(b *testing.B) {
	for name, c := range map[string]struct {
		ratio    float64
		metadata string
	}{
		"off":       {-1, `{}`},
		"unsampled": {1, `{"traceparent":"` + unsampled + `"}`},
		"sampled":   {1, `{"traceparent":"` + caller + `"}`},
	} {
		b.Run(name, func(b *testing.B) {
			tracer := benchTracer(b, c.ratio)
			now := time.Now()
			job := &rivertype.JobRow{ID: 1, Kind: "task", Queue: "default", Attempt: 1, MaxAttempts: 25, AttemptedAt: &now, ScheduledAt: now, Metadata: []byte(c.metadata)}
			inner := func(context.Context) error { return nil }
			b.ReportAllocs()
			for b.Loop() {
				if err := tracer.Work(b.Context(), job, inner); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Jobs from their insert to the end of their runs, with and without a tracer. Those of an insert of all begin traces of their own; those of inserts
// of a hundred carry the trace of theirs.
func BenchmarkJobs(b *testing.B) {
	for _, r := range ratios {
		b.Run(r.name+"/bulk", func(b *testing.B) { benchJobs(b, r.ratio, b.N) })
		b.Run(r.name+"/hundreds", func(b *testing.B) { benchJobs(b, r.ratio, 100) })
	}
}

// benchJobs inserts b.N jobs, so many at a time, and works them.
func benchJobs(b *testing.B, ratio float64, atOnce int) {
	b.Helper()
	tracer := benchTracer(b, ratio)
	workers := jobs.NewWorkers()
	var left atomic.Int64
	over := make(chan struct{})
	jobs.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[taskArgs]) error {
		if left.Add(-1) == 0 {
			close(over)
		}
		return nil
	}))
	client, err := jobs.NewClient(schematest.Pool(b), &jobs.Config{
		Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 200}}, Workers: workers, Middleware: tracer.Middleware(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	params := make([]river.InsertManyParams, b.N)
	for i := range params {
		params[i].Args = taskArgs{}
	}
	left.Store(int64(b.N))
	b.ResetTimer()
	for some := range slices.Chunk(params, atOnce) {
		if _, err := client.InsertManyFast(b.Context(), some); err != nil {
			b.Fatal(err)
		}
	}
	if err := client.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	<-over
	if err := client.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}
