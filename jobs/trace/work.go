package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/internal/mark"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Work makes a span of a run, and one of the wait before it.
func (t *Tracer) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	c := carriedBy(job.Metadata)
	if t.off(c.parent) {
		return doInner(ctx)
	}
	now := time.Now()
	ctx = oteltrace.ContextWithRemoteSpanContext(ctx, c.parent)
	if c.parent.IsValid() && !c.parent.IsSampled() {
		return doInner(withTexts(ctx)) // nobody keeps this trace
	}
	options := []oteltrace.SpanStartOption{oteltrace.WithSpanKind(oteltrace.SpanKindConsumer), oteltrace.WithTimestamp(now)}
	for _, to := range []oteltrace.SpanContext{c.link, c.before} {
		if to.IsValid() {
			options = append(options, oteltrace.WithLinks(oteltrace.Link{SpanContext: to}))
		}
	}
	parent := ctx
	ctx, span := t.tracer.Start(ctx, "run "+job.Kind, options...)
	if !span.IsRecording() {
		return doInner(withTexts(ctx))
	}
	waited := wait(job)
	if c.parent.IsValid() {
		_, before := t.tracer.Start(parent, "wait "+job.Kind, oteltrace.WithTimestamp(now.Add(-waited)), oteltrace.WithAttributes(
			messageID(job.ID), attribute.String("messaging.destination.name", job.Queue), attribute.Int("pelton.job.priority", job.Priority)))
		before.End(oteltrace.WithTimestamp(now))
	}
	about := append(messaging("run", "process", job.Queue),
		messageID(job.ID),
		attribute.Int64("pelton.job.id", job.ID),
		attribute.Int("pelton.job.run", joblog.FromContext(ctx).Number()),
		attribute.String("pelton.job.kind", job.Kind),
		attribute.String("pelton.job.queue", job.Queue),
		attribute.Int("pelton.job.priority", job.Priority),
		attribute.Int("pelton.job.attempt", job.Attempt),
		attribute.Int("pelton.job.max_attempts", job.MaxAttempts),
		attribute.Float64("pelton.job.wait", waited.Seconds()),
	)
	if node := mark.Of(job.Metadata); node != nil {
		about = append(about, attribute.Int64("pelton.flow.run", node.Run), attribute.String("pelton.flow.node", node.Path))
	}
	span.SetAttributes(about...)
	return worked(ctx, span, job, doInner)
}

// wait is how long a job stood in line, by the database's clock.
func wait(job *rivertype.JobRow) time.Duration {
	if job.AttemptedAt == nil {
		return 0
	}
	return max(0, job.AttemptedAt.Sub(job.ScheduledAt))
}

// worked works the job and ends its span. A panic goes on.
func worked(ctx context.Context, span oteltrace.Span, job *rivertype.JobRow, doInner func(context.Context) error) (err error) {
	returned := false
	defer func() {
		e := endOf(ctx, job, err, returned)
		span.SetAttributes(attribute.String("pelton.outcome", e.outcome))
		if e.errorType != "" {
			span.SetAttributes(attribute.String("error.type", e.errorType))
			span.SetStatus(codes.Error, e.text)
		}
		if err != nil && e.errorType != "" {
			span.RecordError(err)
		}
		if e.outcome != completed {
			// The next run links to this one. What is too much for the job's metadata is left out.
			_ = jobs.MetadataSet(ctx, keyRun, textOf(span.SpanContext()).parent)
		}
		span.End()
	}()
	err = doInner(withTexts(ctx))
	returned = true
	return err
}

const completed = "completed"

// ending is how a run ended, as the outcome that is going to be recorded unless the client's error handler says otherwise.
type ending struct {
	outcome   string
	errorType string // "": no failure
	text      string
}

func endOf(ctx context.Context, job *rivertype.JobRow, err error, returned bool) ending {
	failed := "errored"
	if job.Attempt >= job.MaxAttempts {
		failed = "discarded"
	}
	if !returned {
		return ending{failed, "panic", "the worker panicked"}
	}
	if err == nil {
		return ending{outcome: completed}
	}
	cause := context.Cause(ctx)
	var snooze *rivertype.JobSnoozeError
	var cancel *rivertype.JobCancelError
	switch {
	case errors.As(err, &snooze):
		return ending{outcome: "snoozed"}
	case errors.As(err, &cancel), errors.Is(cause, rivertype.ErrJobCancelledRemotely):
		return ending{outcome: "cancelled"}
	case errors.Is(cause, jobs.ErrStopped):
		return ending{outcome: "returned"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, jobs.ErrJobTimedOut):
		return ending{failed, "timeout", err.Error()}
	}
	return ending{failed, typeOf(err), err.Error()}
}

// typeOf names the type of an error below those that only add words to it.
func typeOf(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

// withTexts has the job's log and the programs that it runs know the trace.
func withTexts(ctx context.Context) context.Context {
	return command.ContextWithEnv(joblog.ContextWithAttrs(ctx, attrsOf), envOf)
}

func attrsOf(ctx context.Context) []slog.Attr {
	span := oteltrace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return nil
	}
	return []slog.Attr{slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String())}
}

func envOf(ctx context.Context) []string {
	parent, state := Inject(ctx)
	var env []string
	if parent != "" {
		env = append(env, "TRACEPARENT="+parent)
	}
	if state != "" {
		env = append(env, "TRACESTATE="+state)
	}
	return env
}
