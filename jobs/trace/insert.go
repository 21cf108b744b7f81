package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// mostChildren is how many jobs of one insert continue its trace. More of them begin traces of their own, linked to it: no viewer shows a trace
// of a hundred thousand spans.
const mostChildren = 100

// carries is how a job's metadata stand to traces.
type carries int

const (
	none   carries = iota // it is in no trace yet
	own                   // it has a trace, or is a node's, which has its run's or none
	ticked                // a schedule enqueues it
)

var (
	parentWord = []byte(`"` + keyParent + `"`)
	nodeWord   = []byte(`"pelton:flow"`)     // package flow's key
	tickWord   = []byte(`"pelton:schedule"`) // package periodic's key
)

func carriesOf(metadata []byte) carries {
	switch {
	case len(metadata) <= len("{}"):
		return none
	case bytes.Contains(metadata, parentWord), bytes.Contains(metadata, nodeWord):
		return own
	case bytes.Contains(metadata, tickWord):
		return ticked
	}
	return none
}

// InsertMany makes a span of an insert, and has the jobs carry its context: one span, however many they are. Jobs of ticks get a span each.
func (t *Tracer) InsertMany(
	ctx context.Context, many []*rivertype.JobInsertParams, doInner func(context.Context) ([]*rivertype.JobInsertResult, error),
) ([]*rivertype.JobInsertResult, error) {
	if t.off(oteltrace.SpanContextFromContext(ctx)) {
		return doInner(ctx)
	}
	var first *rivertype.JobInsertParams
	n, kinds, ticks := 0, 1, 0
	for _, p := range many {
		switch carriesOf(p.Metadata) {
		case none:
			if first == nil {
				first = p
			} else if p.Kind != first.Kind {
				kinds++
			}
			n++
		case ticked:
			ticks++
		case own:
		}
	}
	if ticks > 0 {
		fired := t.ticksOf(ctx, many)
		inner := doInner
		doInner = func(ctx context.Context) ([]*rivertype.JobInsertResult, error) {
			results, err := inner(ctx)
			for _, f := range fired {
				f.end(results, err)
			}
			return results, err
		}
	}
	if n == 0 {
		return doInner(ctx)
	}
	return t.insert(ctx, many, doInner, first, n, kinds)
}

func (t *Tracer) insert(
	ctx context.Context, many []*rivertype.JobInsertParams, doInner func(context.Context) ([]*rivertype.JobInsertResult, error),
	first *rivertype.JobInsertParams, n, kinds int,
) ([]*rivertype.JobInsertResult, error) {
	name := "enqueue"
	if kinds == 1 {
		name += " " + first.Kind
	}
	ctx, span := t.tracer.Start(ctx, name, oteltrace.WithSpanKind(oteltrace.SpanKindProducer))
	defer span.End()
	carry(many, membersFor(span.SpanContext(), n))
	results, err := doInner(ctx)
	if span.IsRecording() {
		span.SetAttributes(messaging("enqueue", "send", first.Queue)...)
		if kinds == 1 {
			span.SetAttributes(attribute.String("pelton.job.kind", first.Kind))
		}
		if n == 1 {
			span.SetAttributes(attribute.Int("pelton.job.priority", first.Priority))
		} else {
			span.SetAttributes(attribute.Int("messaging.batch.message_count", n))
		}
		switch {
		case err != nil:
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		case len(many) == 1 && len(results) == 1 && results[0].Job != nil && results[0].Job.ID != 0:
			span.SetAttributes(messageID(results[0].Job.ID))
			if results[0].UniqueSkippedAsDuplicate {
				span.SetAttributes(attribute.Bool("pelton.job.duplicate", true))
			}
		}
	}
	return results, err
}

// membersFor are what n jobs of an insert get into their metadata. Of many, which begin traces of their own, none if the span of the
// insert is not kept: a link to it would lead nowhere.
func membersFor(span oteltrace.SpanContext, n int) string {
	text := textOf(span)
	switch {
	case n <= mostChildren:
		return text.keys()
	case span.IsSampled():
		return `"` + keyLink + `":"` + text.parent + `"`
	}
	return ""
}

// carry puts members into the metadata of the jobs that are in no trace yet.
func carry(many []*rivertype.JobInsertParams, members string) {
	if members == "" {
		return
	}
	alone := with(nil, members) // shared: nobody writes to it
	for _, p := range many {
		if carriesOf(p.Metadata) != none {
			continue
		}
		if len(p.Metadata) == 0 {
			p.Metadata = alone
		} else {
			p.Metadata = with(p.Metadata, members)
		}
	}
}

// messaging are the attributes that OpenTelemetry's conventions for messaging want.
func messaging(name, kind, queue string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "pelton"),
		attribute.String("messaging.operation.name", name),
		attribute.String("messaging.operation.type", kind),
		attribute.String("messaging.destination.name", queue),
	}
}

func messageID(job int64) attribute.KeyValue {
	return attribute.String("messaging.message.id", strconv.FormatInt(job, 10))
}

// firedTick is a tick whose job is being enqueued.
type firedTick struct {
	span  oteltrace.Span
	place int
}

// ticksOf begins a span for each job of a tick, which carries its context.
func (t *Tracer) ticksOf(ctx context.Context, many []*rivertype.JobInsertParams) (fired []firedTick) {
	for i, p := range many {
		if carriesOf(p.Metadata) != ticked {
			continue
		}
		var keys struct {
			Origin struct {
				Name string    `json:"name"`
				Tick time.Time `json:"tick"`
			} `json:"pelton:schedule"`
		}
		if json.Unmarshal(p.Metadata, &keys) != nil || keys.Origin.Name == "" {
			continue
		}
		span := t.tick(ctx, keys.Origin.Name, keys.Origin.Tick)
		if span.IsRecording() {
			span.SetAttributes(messaging("enqueue", "send", p.Queue)...)
			span.SetAttributes(attribute.String("pelton.job.kind", p.Kind))
		}
		p.Metadata = with(p.Metadata, textOf(span.SpanContext()).keys())
		fired = append(fired, firedTick{span, i})
	}
	return fired
}

// end ends the span of a tick that has fired. Of one that could not be, there is none: it is fired again, or was refused.
func (f firedTick) end(results []*rivertype.JobInsertResult, err error) {
	if err != nil || f.place >= len(results) || results[f.place].UniqueSkippedAsDuplicate {
		return
	}
	if f.span.IsRecording() {
		f.span.SetAttributes(messageID(results[f.place].Job.ID))
	}
	f.span.End()
}

// tick begins the span of a schedule's tick.
func (t *Tracer) tick(ctx context.Context, schedule string, at time.Time) oteltrace.Span {
	now := time.Now()
	_, span := t.tracer.Start(ctx, "tick "+schedule, oteltrace.WithSpanKind(oteltrace.SpanKindProducer), oteltrace.WithTimestamp(now),
		oteltrace.WithAttributes(
			attribute.String("pelton.schedule.name", schedule),
			attribute.String("pelton.schedule.tick", at.UTC().Format(time.RFC3339Nano)),
			attribute.Float64("pelton.schedule.lag", now.Sub(at).Seconds()),
		))
	return span
}
