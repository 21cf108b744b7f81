package trace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/peltonq/pelton/jobs/flow/follow"
)

// Bounds of what waits to be made into spans.
const (
	endedRuns   = 1000
	endedNodes  = 200_000
	nodesBefore = 500 // spans that are made before they are sent, so that they fit in the provider's queue
)

// paceFor is how long to wait for spans of nodes to be sent before more are made.
const paceFor = 10 * time.Second

// Parameters by which a schedule says what it runs: package periodic's.
const (
	paramSchedule = "schedule.name"
	paramTick     = "schedule.time"
)

// flows is the observer of flows.
type flows struct{ t *Tracer }

// kept is what is kept with a run: the trace that it belongs to and the span that started it, in W3C's form, but with a span of zeros if the
// trace begins with the run.
type kept struct{ texts }

func keptOf(text string) kept {
	parent, state, _ := strings.Cut(text, " ")
	return kept{texts{parent, state}}
}

func (k kept) String() string { return strings.TrimSpace(k.parent + " " + k.state) }

const (
	noSpan    = "0000000000000000"
	someSpan  = "ffffffffffffffff" // stands for none while a text is read
	spanPlace = len("00-") + 2*len(oteltrace.TraceID{}) + len("-")
)

// span is the context of the span that started the run. Without one, begins is true and only the trace counts.
func (k kept) span() (span oteltrace.SpanContext, begins bool) {
	c := k.texts
	if len(c.parent) > spanPlace && strings.HasPrefix(c.parent[spanPlace:], noSpan) {
		begins = true
		c.parent = c.parent[:spanPlace] + someSpan + c.parent[spanPlace+len(noSpan):]
	}
	return c.span(), begins
}

// Created decides whose trace a new run belongs to: that of whoever starts it, that of its tick, or its own.
func (f flows) Created(ctx context.Context, run follow.Run, params map[string]string) string {
	parent := oteltrace.SpanContextFromContext(ctx)
	if f.t.off(parent) {
		return ""
	}
	if name := params[paramSchedule]; name != "" {
		if at, err := time.Parse(time.RFC3339Nano, params[paramTick]); err == nil {
			span := f.t.tick(ctx, name, at)
			span.SetAttributes(attribute.String("pelton.flow.project", run.Project), attribute.String("pelton.flow.name", run.Flow))
			span.End()
			parent = span.SpanContext()
		}
	}
	if parent.IsValid() {
		return kept{textOf(parent)}.String()
	}
	trace := newTraceID()
	flags := "00"
	if f.t.root.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx, TraceID: trace, Name: "flow"}).Decision == sdktrace.RecordAndSample {
		flags = "01"
	}
	return "00-" + trace.String() + "-" + noSpan + "-" + flags
}

// spanOf is the context of the span of a run, path "", or of a node. It follows from their names, so that jobs can be its children long before the
// span is made.
func spanOf(run follow.Run, path string) oteltrace.SpanContext {
	starter, _ := keptOf(run.Kept).span()
	trace := starter.TraceID()
	text := binary.BigEndian.AppendUint64(trace[:], uint64(run.ID)) //nolint:gosec // any number
	if !run.Resumed.IsZero() {
		text = binary.BigEndian.AppendUint64(text, uint64(run.Resumed.UnixMicro())) //nolint:gosec // any number
	}
	sum := sha256.Sum256(append(append(text, '/'), path...))
	return starter.WithSpanID(oteltrace.SpanID(sum[:8]))
}

// NodeMetadata has the job of a node continue its span.
func (f flows) NodeMetadata(run follow.Run, path string) map[string]string {
	span := spanOf(run, path)
	if !span.IsValid() {
		return nil
	}
	c := textOf(span)
	keys := map[string]string{keyParent: c.parent}
	if c.state != "" {
		keys[keyState] = c.state
	}
	return keys
}

// Context has notices be enqueued in the run's trace.
func (f flows) Context(ctx context.Context, run follow.Run) context.Context {
	return oteltrace.ContextWithRemoteSpanContext(ctx, spanOf(run, ""))
}

// Ended has the spans of a run made. If too many wait for that, they are left out.
func (f flows) Ended(run *follow.Ended) {
	if !spanOf(run.Run, "").IsSampled() {
		return
	}
	nodes := int64(len(run.Nodes))
	if f.t.waiting.Add(nodes) <= endedNodes+nodes {
		select {
		case f.t.ended <- run:
			return
		default:
		}
	}
	f.t.waiting.Add(-nodes)
}

// emitEnded makes the spans of runs that have ended, and of those that wait when it is to stop.
func (t *Tracer) emitEnded(until context.Context) {
	ctx := context.WithoutCancel(until)
	for {
		select {
		case run := <-t.ended:
			t.emit(ctx, run)
			continue
		default:
		}
		select {
		case run := <-t.ended:
			t.emit(ctx, run)
		case <-until.Done():
			if len(t.ended) == 0 {
				return
			}
		}
	}
}

// emit makes the spans of a run and its nodes.
func (t *Tracer) emit(ctx context.Context, run *follow.Ended) {
	defer t.waiting.Add(-int64(len(run.Nodes)))
	t.emitRun(ctx, run)
	for n := range run.Nodes {
		if n%nodesBefore == nodesBefore-1 && !t.paced(ctx) {
			return
		}
		t.emitNode(ctx, run, &run.Nodes[n])
	}
}

// paced waits until spans were sent; false if they cannot be.
func (t *Tracer) paced(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, paceFor)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-t.hurry:
			cancel()
		case <-over:
		}
	}()
	return t.flush(ctx) == nil && !t.away()
}

func (t *Tracer) emitRun(ctx context.Context, run *follow.Ended) {
	starter, begins := keptOf(run.Kept).span()
	if begins {
		starter = oteltrace.SpanContext{}
	}
	ctx = oteltrace.ContextWithRemoteSpanContext(ctx, starter)
	began := run.Created
	var links []oteltrace.Link
	if !run.Resumed.IsZero() {
		began = run.Resumed
		first := run.Run
		first.Resumed = time.Time{}
		links = []oteltrace.Link{{SpanContext: spanOf(first, "")}}
	}
	own := spanOf(run.Run, "")
	_, span := t.tracer.Start(fix(ctx, own.TraceID(), own.SpanID()), "flow "+run.Project+"/"+run.Flow,
		oteltrace.WithTimestamp(began), oteltrace.WithLinks(links...), oteltrace.WithAttributes(
			attribute.Int64("pelton.flow.run", run.ID),
			attribute.String("pelton.flow.project", run.Project),
			attribute.String("pelton.flow.name", run.Flow),
			attribute.Int("pelton.flow.version", run.Version),
			attribute.String("pelton.flow.status", run.Status),
			attribute.String("pelton.flow.by", run.By),
			attribute.Int("pelton.flow.nodes", len(run.Nodes)),
		))
	if run.Resumed.IsZero() {
		span.AddEvent("started", oteltrace.WithTimestamp(run.Started))
	}
	finish(span, run.Status, run.Reason, run.Ended)
}

// emitNode makes the span of a node, unless it had ended before the run went on.
func (t *Tracer) emitNode(ctx context.Context, run *follow.Ended, n *follow.Node) {
	if n.Ended.IsZero() || n.Ended.Before(run.Resumed) {
		return
	}
	began := n.Ended
	for _, at := range []time.Time{n.Started, n.Queued} {
		if !at.IsZero() && at.Before(began) {
			began = at
		}
	}
	container := ""
	if n.Container >= 0 && n.Container < len(run.Nodes) {
		container = run.Nodes[n.Container].Path
	}
	own := spanOf(run.Run, n.Path)
	ctx = oteltrace.ContextWithRemoteSpanContext(ctx, spanOf(run.Run, container))
	_, span := t.tracer.Start(fix(ctx, own.TraceID(), own.SpanID()), "node "+withoutIndex(n.Path), oteltrace.WithTimestamp(began),
		oteltrace.WithAttributes(
			attribute.Int64("pelton.flow.run", run.ID),
			attribute.String("pelton.flow.node", n.Path),
			attribute.String("pelton.flow.node.type", n.Type),
			attribute.String("pelton.flow.status", n.Status),
			attribute.Int("pelton.flow.node.try", n.Try),
			attribute.Int("pelton.flow.node.attempt", n.Attempt),
		))
	if n.Job != 0 {
		span.SetAttributes(attribute.Int64("pelton.job.id", n.Job))
	}
	finish(span, n.Status, n.Reason, n.Ended)
}

// withoutIndex is the path of an instance's template: names of spans are few.
func withoutIndex(path string) string {
	if at := strings.LastIndexByte(path, '['); at > 0 && strings.HasSuffix(path, "]") {
		return path[:at]
	}
	return path
}

// finish ends the span of a run or a node.
func finish(span oteltrace.Span, status, reason string, at time.Time) {
	if status == "FAILED" || status == "KILLED" {
		span.SetStatus(codes.Error, reason)
	}
	if reason != "" {
		span.SetAttributes(attribute.String("pelton.flow.reason", reason))
	}
	span.End(oteltrace.WithTimestamp(at))
}
