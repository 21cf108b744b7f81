package trace

import (
	"bytes"
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/peltonq/pelton/jobs"
)

// Keys of a job's metadata. The first two are W3C's, and anybody may give them to a job.
const (
	keyParent = "traceparent"
	keyState  = "tracestate"
	keyLink   = "pelton:trace_link" // the traceparent of the enqueue, for jobs that begin traces of their own
	keyRun    = "pelton:trace_run"  // the traceparent of the run before, which failed or was put off
)

// carrier is a trace context as texts: a propagation.TextMapCarrier.
type carrier struct{ parent, state string }

// Get implements propagation.TextMapCarrier.
func (c *carrier) Get(key string) string {
	switch key {
	case keyParent:
		return c.parent
	case keyState:
		return c.state
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c *carrier) Set(key, value string) {
	switch key {
	case keyParent:
		c.parent = value
	case keyState:
		c.state = value
	}
}

// Keys implements propagation.TextMapCarrier.
func (*carrier) Keys() []string { return []string{keyParent, keyState} }

// textOf is a span's context as texts, empty if it has none.
func textOf(span oteltrace.SpanContext) (c carrier) {
	propagation.TraceContext{}.Inject(oteltrace.ContextWithSpanContext(context.Background(), span), &c)
	return c
}

// span is the context of the span that the texts name; not valid if they name none.
func (c carrier) span() oteltrace.SpanContext {
	if c.parent == "" {
		return oteltrace.SpanContext{}
	}
	return oteltrace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), &c))
}

// Extract returns a context that goes on with the trace that W3C's texts name, as a request's headers or a program's environment have them. Texts that
// name none change nothing.
func Extract(ctx context.Context, traceparent, tracestate string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, &carrier{traceparent, tracestate})
}

// Inject returns W3C's texts for the trace of ctx; empty ones if there is none.
func Inject(ctx context.Context) (traceparent, tracestate string) {
	c := textOf(oteltrace.SpanContextFromContext(ctx))
	return c.parent, c.state
}

// carried is what a job's metadata say of its trace.
type carried struct {
	parent, link, before oteltrace.SpanContext
}

var traceWord = []byte(`trace`)

func carriedBy(metadata []byte) (c carried) {
	if !bytes.Contains(metadata, traceWord) {
		return c
	}
	var keys struct {
		Parent any `json:"traceparent"` // users may have given anything
		State  any `json:"tracestate"`
		Link   any `json:"pelton:trace_link"`
		Run    any `json:"pelton:trace_run"`
	}
	if json.Unmarshal(metadata, &keys) != nil {
		return c
	}
	span := func(parent, state any) oteltrace.SpanContext {
		p, _ := parent.(string)
		s, _ := state.(string)
		return carrier{p, s}.span()
	}
	return carried{span(keys.Parent, keys.State), span(keys.Link, nil), span(keys.Run, nil)}
}

// keys are the texts as the first members of a JSON object: `"traceparent":"..."`.
func (c carrier) keys() string {
	member := func(key, value string) string {
		b, _ := json.Marshal(value) // a text
		return `"` + key + `":` + string(b)
	}
	text := member(keyParent, c.parent)
	if c.state != "" {
		text += "," + member(keyState, c.state)
	}
	return text
}

// with returns metadata with more members. What is no object, or would be too large then, stays as it is.
func with(metadata []byte, members string) []byte {
	trimmed := bytes.TrimSpace(metadata)
	if len(trimmed) == 0 {
		return []byte("{" + members + "}")
	}
	if trimmed[0] != '{' || len(metadata)+len(members) >= jobs.MaxArgsBytes {
		return metadata
	}
	rest := bytes.TrimLeft(trimmed[1:], " \t\r\n")
	joined := make([]byte, 0, len(members)+len(rest)+2)
	joined = append(append(joined, '{'), members...)
	if len(rest) > 0 && rest[0] != '}' {
		joined = append(joined, ',')
	}
	return append(joined, rest...)
}
