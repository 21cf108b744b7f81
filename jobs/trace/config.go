package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/flow/follow"
)

// Config says where spans go and which are made. One of Provider, Exporter and Endpoint is required.
type Config struct {
	// Provider makes the spans, and stays the caller's. One that is to have flows in its traces is made with Options.
	Provider oteltrace.TracerProvider

	// Exporter takes the spans of a provider that New makes, in the background. Stop shuts it down.
	Exporter sdktrace.SpanExporter

	// Endpoint is the URL of an OTLP/HTTP collector: "http://127.0.0.1:4318/v1/traces". What else there is to say (headers, certificates,
	// timeouts) is taken from the standard variables OTEL_EXPORTER_OTLP_...
	Endpoint string

	// Service names the program in its traces. Defaults to "pelton"; OTEL_SERVICE_NAME beats it. Of no use with a Provider.
	Service string

	// Version is the program's. May be empty.
	Version string

	// Ratio is the part of the traces that are kept of those that begin here, above 0 up to 1. Defaults to 1; -1: none. What comes with a trace
	// is kept if that trace is.
	Ratio float64

	// Logger is told when spans cannot be exported, at most once a minute. Defaults to slog.Default().
	Logger *slog.Logger
}

// Tracer makes spans of what a client enqueues and works, and of flows and ticks. It is River middleware for jobs.Config.Middleware, and,
// by Flows, the observer for flow.Config. Safe for concurrent use.
type Tracer struct {
	tracer oteltrace.Tracer
	ratio  float64
	root   sdktrace.Sampler // decides on traces that begin here
	flush  func(context.Context) error
	stop   func(context.Context) error
	away   func() bool // the collector cannot be reached
	log    *slog.Logger

	ended   chan *follow.Ended
	waiting atomic.Int64 // nodes of runs in ended
	flows   *service.Service
	hurry   chan struct{} // closed when Stop waits no longer
	hurried sync.Once
}

const scope = "github.com/peltonq/pelton/jobs/trace"

// New makes a tracer. Nothing is sent before there are spans: a collector that is away is no error.
func New(ctx context.Context, config Config) (*Tracer, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("new tracer: %w", err)
	}
	config.withDefaults()
	t := &Tracer{
		ratio: max(0, config.Ratio), log: config.Logger, ended: make(chan *follow.Ended, endedRuns), hurry: make(chan struct{}),
		flush: nothing, stop: nothing, away: func() bool { return false },
	}
	t.root = sdktrace.TraceIDRatioBased(t.ratio)
	provider := config.Provider
	if provider == nil {
		own, err := t.newProvider(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("new tracer: %w", err)
		}
		provider = own
	} else if flusher, ok := provider.(interface{ ForceFlush(context.Context) error }); ok {
		t.flush = flusher.ForceFlush
	}
	t.tracer = provider.Tracer(scope)
	t.flows = service.New(t.emitEnded)
	t.flows.Start(context.WithoutCancel(ctx))
	return t, nil
}

func nothing(context.Context) error { return nil }

func (c *Config) check() error {
	given := 0
	for _, is := range []bool{c.Provider != nil, c.Exporter != nil, c.Endpoint != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return errors.New("want one of Provider, Exporter and Endpoint")
	}
	if c.Ratio != -1 && !(c.Ratio >= 0 && c.Ratio <= 1) {
		return fmt.Errorf("ratio is %v, want above 0 up to 1, or -1 for none", c.Ratio)
	}
	return nil
}

func (c *Config) withDefaults() {
	if c.Service == "" {
		c.Service = "pelton"
	}
	if c.Ratio == 0 {
		c.Ratio = 1
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}

// newProvider makes a provider that exports in the background.
func (t *Tracer) newProvider(ctx context.Context, config Config) (*sdktrace.TracerProvider, error) {
	out := config.Exporter
	if out == nil {
		var err error
		out, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(config.Endpoint), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: 10 * time.Second,
		}))
		if err != nil {
			return nil, fmt.Errorf("exporter to %s: %w", config.Endpoint, err)
		}
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", config.Service)}
	if config.Version != "" {
		attributes = append(attributes, attribute.String("service.version", config.Version))
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this program: %w", err)
	}
	calm := &exporter{SpanExporter: out, log: config.Logger}
	provider := sdktrace.NewTracerProvider(append(Options(t.ratio), sdktrace.WithBatcher(calm), sdktrace.WithResource(about))...)
	t.flush, t.stop, t.away = provider.ForceFlush, provider.Shutdown, calm.away.Load
	return provider, nil
}

// Middleware is what jobs.Config.Middleware takes. A nil tracer has none.
func (t *Tracer) Middleware() []rivertype.Middleware {
	if t == nil {
		return nil
	}
	return []rivertype.Middleware{t}
}

// IsMiddleware makes it River middleware.
func (*Tracer) IsMiddleware() bool { return true }

// Flows is what flow.Config.Observer takes. A nil tracer has none.
func (t *Tracer) Flows() follow.Observer {
	if t == nil {
		return nil
	}
	return flows{t}
}

// Stop sends what is left until ctx ends. Stop the clients first. Stopping a nil tracer does nothing.
func (t *Tracer) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	release := context.AfterFunc(ctx, func() { t.hurried.Do(func() { close(t.hurry) }) })
	defer release()
	t.flows.Stop()
	if err := errors.Join(t.flush(ctx), t.stop(ctx)); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}

// off tells whether nothing is to be made: no trace begins here, and there is none that is kept.
func (t *Tracer) off(parent oteltrace.SpanContext) bool { return t.ratio == 0 && !parent.IsSampled() }
