// Package otlptest is a collector of traces for tests: it takes OTLP by HTTP, as a real one does.
package otlptest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it came.
type Span struct {
	Service           string
	Name              string
	Trace, ID, Parent string // in hex; Parent is empty for a root
	Kind              string // "PRODUCER", ...
	Start, End        time.Time
	Attrs             map[string]string
	Links             []string // "trace/span"
	Events            []string
	Error             string // of the status; "" if it is none
	Failed            bool
}

// Ref is how links name the span.
func (s *Span) Ref() string { return s.Trace + "/" + s.ID }

// Collector keeps what it gets.
type Collector struct {
	t   testing.TB
	URL string

	mu    sync.Mutex
	spans []*Span
	fails bool
	calls int
}

// New starts a collector, which ends with the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{t: t}
	server := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Fail has it refuse everything, or not any more.
func (c *Collector) Fail(fails bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails = fails
}

// Calls is how often somebody has sent something.
func (c *Collector) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	switch {
	case err != nil || r.URL.Path != "/v1/traces":
		c.t.Errorf("a collector got %s of %d bytes: %v", r.URL.Path, len(body), err)
		w.WriteHeader(http.StatusBadRequest)
		return
	case c.fails:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, about := range request.GetResourceSpans() {
		service := texts(about.GetResource().GetAttributes())["service.name"]
		for _, scope := range about.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(service, s))
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(http.StatusOK)
}

func spanOf(service string, s *otlp.Span) *Span {
	span := &Span{
		Service: service, Name: s.GetName(), Trace: fmt.Sprintf("%x", s.GetTraceId()), ID: fmt.Sprintf("%x", s.GetSpanId()),
		Parent: fmt.Sprintf("%x", s.GetParentSpanId()), Kind: strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_"),
		Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())), //nolint:gosec // times of now
		Attrs: texts(s.GetAttributes()), Error: s.GetStatus().GetMessage(), Failed: s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR,
	}
	for _, l := range s.GetLinks() {
		span.Links = append(span.Links, fmt.Sprintf("%x/%x", l.GetTraceId(), l.GetSpanId()))
	}
	for _, e := range s.GetEvents() {
		span.Events = append(span.Events, e.GetName())
	}
	return span
}

func texts(attributes []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range attributes {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			m[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			m[a.GetKey()] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			m[a.GetKey()] = fmt.Sprint(v.BoolValue)
		case *common.AnyValue_DoubleValue:
			m[a.GetKey()] = fmt.Sprint(v.DoubleValue)
		}
	}
	return m
}

// Spans are those that have come, by their start.
func (c *Collector) Spans() []*Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	spans := slices.Clone(c.spans)
	slices.SortStableFunc(spans, func(a, b *Span) int { return a.Start.Compare(b.Start) })
	return spans
}

// Named are the spans of that name, by their start.
func (c *Collector) Named(name string) []*Span {
	return slices.DeleteFunc(c.Spans(), func(s *Span) bool { return s.Name != name })
}

// One is the only span of that name. The test fails if there is none, or more.
func (c *Collector) One(name string) *Span {
	c.t.Helper()
	spans := c.Named(name)
	if len(spans) != 1 {
		c.t.Fatalf("%d spans %q, want one; there are:\n%s", len(spans), name, c)
	}
	return spans[0]
}

// String shows all traces as trees.
func (c *Collector) String() string {
	spans := c.Spans()
	known := map[string]bool{}
	for _, s := range spans {
		known[s.Ref()] = true
	}
	var b strings.Builder
	var show func(s *Span, depth int)
	show = func(s *Span, depth int) {
		fmt.Fprintf(&b, "%s%s [%s]\n", strings.Repeat("  ", depth), s.Name, s.Service)
		for _, child := range spans {
			if child.Parent == s.ID && child.Trace == s.Trace {
				show(child, depth+1)
			}
		}
	}
	for _, s := range spans {
		if s.Parent == "" || !known[s.Trace+"/"+s.Parent] {
			show(s, 0)
		}
	}
	return b.String()
}
