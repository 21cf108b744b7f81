package trace

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// Options are what a provider needs so that flows are in their traces: spans of flows are made after their end, with ids that their jobs have
// named as their parents long before. ratio is the part of traces that are kept, as in Config, 0 for none.
func Options(ratio float64) []sdktrace.TracerProviderOption {
	return []sdktrace.TracerProviderOption{
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSampler(decided{sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))}),
	}
}

// fixed are the ids of the span that is to be started under a context, which is kept.
type fixed struct {
	trace oteltrace.TraceID
	span  oteltrace.SpanID
}

type fixedKey struct{}

func fix(ctx context.Context, trace oteltrace.TraceID, span oteltrace.SpanID) context.Context {
	return context.WithValue(ctx, fixedKey{}, fixed{trace, span})
}

// ids draws ids, unless they are fixed.
type ids struct{}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	if f, ok := ctx.Value(fixedKey{}).(fixed); ok {
		return f.trace, f.span
	}
	return newTraceID(), newSpanID()
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ oteltrace.TraceID) oteltrace.SpanID {
	if f, ok := ctx.Value(fixedKey{}).(fixed); ok {
		return f.span
	}
	return newSpanID()
}

func newTraceID() (id oteltrace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())   //nolint:gosec // no secret
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1) //nolint:gosec // no secret; not all zero
	return id
}

func newSpanID() (id oteltrace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1) //nolint:gosec // no secret; not all zero
	return id
}

// decided is a sampler that keeps spans whose ids are fixed: it was decided before.
type decided struct{ sdktrace.Sampler }

// ShouldSample implements sdktrace.Sampler.
func (d decided) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if _, is := p.ParentContext.Value(fixedKey{}).(fixed); is {
		return sdktrace.SamplingResult{
			Decision: sdktrace.RecordAndSample, Tracestate: oteltrace.SpanContextFromContext(p.ParentContext).TraceState(),
		}
	}
	return d.Sampler.ShouldSample(p)
}
