package trace_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/peltonq/pelton/internal/otlptest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/jobs/trace"
)

// pushed makes a version of project p that has these flows.
func (r *rig) pushed(builders ...*flow.Builder) {
	r.t.Helper()
	var list []*flow.Flow
	for _, b := range builders {
		f, err := b.Build()
		if err != nil {
			r.t.Fatal(err)
		}
		list = append(list, f)
	}
	if _, err := r.flows.PushFlows(r.t.Context(), "p", list...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) run(ctx context.Context, name string, o flow.Options) int64 {
	r.t.Helper()
	run, err := r.flows.Run(ctx, flow.RunParams{Project: "p", Flow: name, Options: o})
	if err != nil {
		r.t.Fatal(err)
	}
	r.ended(run)
	return run
}

// ended waits for the end of a run.
func (r *rig) ended(run int64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if _, err := r.flows.Ended(ctx, run, nil); err != nil {
		r.t.Fatal(err)
	}
}

// node waits for the one span of a node whose path is given.
func (r *rig) node(name, path string) *otlptest.Span {
	r.t.Helper()
	var found []*otlptest.Span
	r.eventually("node "+path, func() bool {
		found = slices.DeleteFunc(r.spans.Named(name), func(s *otlptest.Span) bool { return s.Attrs["pelton.flow.node"] != path })
		return len(found) > 0
	})
	if len(found) > 1 {
		r.t.Fatalf("%d spans of node %s", len(found), path)
	}
	return found[0]
}

// within fails the test unless a span lies in another.
func within(t *testing.T, s, outer *otlptest.Span) {
	t.Helper()
	if s.Start.Before(outer.Start) || s.End.After(outer.End) || s.End.Before(s.Start) {
		t.Errorf("%q is from %v to %v, outside of %q from %v to %v", s.Name, s.Start, s.End, outer.Name, outer.Start, outer.End)
	}
}

// A run is in the trace of whoever started it, its nodes are in it, and the runs of their jobs in them, in the process that worked them.
func TestFlow(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	test := flowtest.Args{}
	r.pushed(flow.New("f").
		Job("a", test).
		Job("b", flowtest.Args{"fail": "true", "passRetry": "0"}).Retry(flow.Retry{Max: 1}).After("a").
		Job("c", test).After("b"))
	run := r.run(trace.Extract(t.Context(), caller, "v=1"), "f", flow.Options{})

	f := r.named("flow p/f", 1)[0]
	if f.Trace != callerTrace || f.Parent != callerSpan || f.Failed || f.Service != "works" || !slices.Equal(f.Events, []string{"started"}) {
		t.Errorf("the run is %+v", f)
	}
	attrs(t, f, fmt.Sprintf("pelton.flow.run=%d", run), "pelton.flow.project=p", "pelton.flow.name=f", "pelton.flow.version=1",
		"pelton.flow.status=SUCCEEDED", "pelton.flow.nodes=3", "pelton.flow.by")
	var before *otlptest.Span
	for path, attempts := range map[string]int{"a": 1, "b": 2, "c": 1} {
		n := r.node("node "+path, path)
		child(t, n, f)
		within(t, n, f)
		attrs(t, n, "pelton.flow.status=SUCCEEDED", "pelton.flow.node.type=test", fmt.Sprintf("pelton.flow.node.attempt=%d", attempts-1), "pelton.job.id")
		runs := slices.DeleteFunc(r.named("run test", 4), func(s *otlptest.Span) bool { return s.Attrs["pelton.flow.node"] != path })
		if len(runs) != attempts {
			t.Errorf("%d runs of %s, want %d", len(runs), path, attempts)
		}
		for _, s := range runs {
			child(t, s, n)
			attrs(t, s, fmt.Sprintf("pelton.flow.run=%d", run), "pelton.job.id="+n.Attrs["pelton.job.id"])
			if s.Start.Before(n.Start.Add(-clocks)) || s.End.After(n.End.Add(clocks)) {
				t.Errorf("a run of %s is from %v to %v, its node from %v to %v", path, s.Start, s.End, n.Start, n.End)
			}
		}
		if attempts == 2 && (!runs[0].Failed || !slices.Equal(runs[1].Links, []string{runs[0].Ref()})) {
			t.Errorf("the second run of %s has links %v", path, runs[1].Links)
		}
	}
	for _, path := range []string{"a", "b", "c"} {
		n := r.node("node "+path, path)
		if before != nil && n.Start.Before(before.End) {
			t.Errorf("%s starts at %v, before %s has ended at %v", path, n.Start, before.Name, before.End)
		}
		before = n
	}
	if len(r.spans.Named("enqueue test")) != 0 || len(r.spans.Spans()) != 12 {
		t.Errorf("want a flow, three nodes, four waits and four runs; there are:\n%s", r.spans)
	}
}

// clocks is how far the database's clock, as a process knows it, and the process's own may lie apart: as long as the answer to a claim takes.
const clocks = 10 * time.Second

// Embedded flows and instances are nested. What never started has a span all the same.
func TestNestedFlow(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	test := flowtest.Args{}
	inner := flow.New("inner").Job("x", test).Noop("y").After("x")
	r.pushed(flow.New("f").
		Flow("in", inner).
		Job("each", test).ForEach("1", "2").After("in").
		Job("bad", flowtest.Args{"fail": "true"}).After("each").
		Job("never", test).After("bad"))
	r.run(t.Context(), "f", flow.Options{})
	f := r.named("flow p/f", 1)[0]
	if f.Parent != "" || !f.Failed || !strings.Contains(f.Attrs["pelton.flow.reason"], "bad failed") || f.Error != f.Attrs["pelton.flow.reason"] {
		t.Errorf("the run is %+v", f)
	}
	nodes := map[string]*otlptest.Span{}
	for path, name := range map[string]string{
		"in": "in", "in:x": "in:x", "in:y": "in:y", "each": "each", "each[0]": "each", "each[1]": "each", "bad": "bad", "never": "never",
	} {
		nodes[path] = r.node("node "+name, path)
	}
	for path, parent := range map[string]*otlptest.Span{
		"in": f, "in:x": nodes["in"], "in:y": nodes["in"], "each": f, "each[0]": nodes["each"], "each[1]": nodes["each"], "bad": f, "never": f,
	} {
		child(t, nodes[path], parent)
		within(t, nodes[path], parent)
	}
	for path, status := range map[string]string{"in": "SUCCEEDED", "bad": "FAILED", "never": "CANCELLED"} {
		attrs(t, nodes[path], "pelton.flow.status="+status)
	}
	if !nodes["bad"].Failed || nodes["never"].Failed || !nodes["never"].Start.Equal(nodes["never"].End) {
		t.Errorf("bad is %+v, never is %+v", nodes["bad"], nodes["never"])
	}
}

// A run that goes on after its end gets spans for what it does then, in the same trace.
func TestFlowThatGoesOn(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	r := newRig(t, trace.Config{}, func(context.Context, *river.Job[taskArgs]) error {
		if broken.Load() {
			return errors.New("broken")
		}
		return nil
	})
	r.pushed(flow.New("f").Job("a", flowtest.Args{}).Job("b", taskArgs{}).After("a"))
	run := r.run(t.Context(), "f", flow.Options{})
	first := r.named("flow p/f", 1)[0]
	broken.Store(false)
	if err := r.flows.Retry(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	r.ended(run)
	second := r.named("flow p/f", 2)[1]
	if second.Trace != first.Trace || second.ID == first.ID || !slices.Equal(second.Links, []string{first.Ref()}) || second.Start.Before(first.End) {
		t.Errorf("the run went on as %+v after %+v", second, first)
	}
	r.named("node a", 1)
	nodes := r.named("node b", 2)
	runs := r.named("run task", 2)
	for i, f := range []*otlptest.Span{first, second} {
		child(t, nodes[i], f)
		child(t, runs[i], nodes[i])
	}
	attrs(t, nodes[1], "pelton.flow.status=SUCCEEDED", "pelton.flow.node.try=1")
}

// A notice is enqueued in the trace of its run.
func TestNoticesOfFlows(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	r.pushed(flow.New("f").Job("a", flowtest.Args{}))
	r.run(t.Context(), "f", flow.Options{Notify: flow.Notify{Success: []string{"http://127.0.0.1:1/"}}})
	f := r.named("flow p/f", 1)[0]
	r.eventually("the notice", func() bool {
		return slices.ContainsFunc(r.spans.Spans(), func(s *otlptest.Span) bool { return strings.HasPrefix(s.Name, "enqueue") })
	})
	for _, s := range r.spans.Spans() {
		if strings.HasPrefix(s.Name, "enqueue") {
			child(t, s, f)
		}
	}
}

// A run is followed or not as a whole, whatever the ratios of its processes are.
func TestFlowsThatAreNotKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	r.pushed(flow.New("f").Job("a", flowtest.Args{}))
	r.run(trace.Extract(t.Context(), unsampled, ""), "f", flow.Options{})
	r.run(t.Context(), "f", flow.Options{})
	f := r.named("flow p/f", 1)[0]
	r.named("run test", 1)
	for _, s := range r.spans.Spans() {
		if s.Trace != f.Trace {
			t.Errorf("%q is in another trace than the run's", s.Name)
		}
	}
}

// Whoever starts a run decides on its trace, and not who ends it.
func TestFlowOfAnotherRatio(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, trace.Config{}, trace.Config{Ratio: -1}, done)
	r.pushed(flow.New("f").Job("a", flowtest.Args{}))
	r.run(t.Context(), "f", flow.Options{})
	f := r.named("flow p/f", 1)[0]
	n := r.named("node a", 1)[0]
	child(t, n, f)
	child(t, r.named("run test", 1)[0], n)
	if f.Parent != "" {
		t.Errorf("the run is %+v", f)
	}
}

// slow is an exporter that takes its time, and counts.
type slow struct{ spans atomic.Int32 }

func (e *slow) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(50 * time.Millisecond):
	}
	e.spans.Add(int32(len(spans)))
	return nil
}

func (*slow) Shutdown(context.Context) error { return nil }

// A flow of many nodes is sent whole, by a provider of the user's too: spans are made no faster than they are sent.
func TestLargeFlow(t *testing.T) {
	t.Parallel()
	out := &slow{}
	provider := sdktrace.NewTracerProvider(append(trace.Options(1), sdktrace.WithBatcher(out, sdktrace.WithMaxQueueSize(600)))...)
	r := newRigOf(t, trace.Config{}, trace.Config{Provider: provider}, done)
	t.Cleanup(func() {
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	const n = 2500
	b := flow.New("f")
	for i := range n {
		b.Noop(fmt.Sprintf("n%d", i))
	}
	r.pushed(b)
	r.run(t.Context(), "f", flow.Options{})
	r.eventually("all nodes", func() bool { return out.spans.Load() == n+1 })
}
