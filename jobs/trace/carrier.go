package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/peltonq/pelton/jobs"
)

// Keys of a job's metadata. The first two are W3C's, and anybody may give them to a job.
const (
	keyParent = "traceparent"
	keyState  = "tracestate"
	keyLink   = "pelton:trace_link" // the traceparent of an enqueue that is kept, for jobs that begin traces of their own
	keyRun    = "pelton:trace_run"  // the traceparent of the run before, which failed or was put off
)

// texts are a trace context as W3C writes it.
type texts struct{ parent, state string }

// textOf is a span's context as texts, empty if it has none.
func textOf(span oteltrace.SpanContext) texts {
	if !span.IsValid() {
		return texts{}
	}
	return texts{
		"00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-" + (span.TraceFlags() & oteltrace.FlagsSampled).String(),
		span.TraceState().String(),
	}
}

// span is the context of the span that the texts name; not valid if they name none.
func (t texts) span() oteltrace.SpanContext {
	p := t.parent
	if len(p) < parentSize || p[2] != '-' || p[35] != '-' || p[52] != '-' || p[:2] == "ff" {
		return oteltrace.SpanContext{}
	}
	if len(p) > parentSize && (p[:2] == "00" || p[parentSize] != '-') { // later versions may say more
		return oteltrace.SpanContext{}
	}
	trace, err := oteltrace.TraceIDFromHex(p[3:35])
	if err != nil {
		return oteltrace.SpanContext{}
	}
	span, err := oteltrace.SpanIDFromHex(p[36:52])
	if err != nil {
		return oteltrace.SpanContext{}
	}
	flags, err := strconv.ParseUint(p[53:parentSize], 16, 8)
	if err != nil {
		return oteltrace.SpanContext{}
	}
	state, err := oteltrace.ParseTraceState(t.state)
	if err != nil {
		state = oteltrace.TraceState{} // the trace goes on without it
	}
	return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID: trace, SpanID: span, TraceFlags: oteltrace.TraceFlags(flags) & oteltrace.FlagsSampled, TraceState: state, Remote: true,
	})
}

// parentSize is the length of a traceparent of version 00.
const parentSize = len("00-") + 32 + len("-") + 16 + len("-00")

// Extract returns a context that goes on with the trace that W3C's texts name, as a request's headers or a program's environment have them. Texts that
// name none change nothing.
func Extract(ctx context.Context, traceparent, tracestate string) context.Context {
	span := texts{traceparent, tracestate}.span()
	if !span.IsValid() {
		return ctx
	}
	return oteltrace.ContextWithRemoteSpanContext(ctx, span)
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
	if parent, ok := onlyKey(metadata, keyParent); ok {
		return carried{parent: texts{parent: parent}.span()}
	}
	if link, ok := onlyKey(metadata, keyLink); ok {
		return carried{link: texts{parent: link}.span()}
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
		return texts{p, s}.span()
	}
	return carried{span(keys.Parent, keys.State), span(keys.Link, nil), span(keys.Run, nil)}
}

// onlyKey reads the traceparent under a key of metadata that say nothing else of traces, and say that first, which is the usual case.
func onlyKey(metadata []byte, key string) (parent string, ok bool) {
	rest, ok := bytes.CutPrefix(metadata, []byte(`{"`+key+`":`))
	if !ok {
		return "", false
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte(`"`))
	const size = parentSize
	if !ok || len(rest) <= size || rest[size] != '"' || bytes.ContainsAny(rest[:size], "\"\\") || bytes.Contains(rest[size:], traceWord) {
		return "", false
	}
	return string(rest[:size]), true
}

// keys are the texts as the first members of a JSON object: `"traceparent":"..."`.
func (t texts) keys() string {
	member := func(key, value string) string {
		b, _ := json.Marshal(value) // a text
		return `"` + key + `":` + string(b)
	}
	text := member(keyParent, t.parent)
	if t.state != "" {
		text += "," + member(keyState, t.state)
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
