package main

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/jobs/trace"
)

// tracesPath is where collectors take traces by OTLP/HTTP.
const tracesPath = "/v1/traces"

// flushTimeout is how long the last spans may take when a program stops.
const flushTimeout = 2 * time.Second

// traceSettings say where spans go. OpenTelemetry's environment variables count where the command line says nothing.
type traceSettings struct {
	endpoint string
	sample   string
}

func (s *traceSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.endpoint, "otlp-endpoint", "", "`URL` of an OpenTelemetry collector that takes OTLP by HTTP, as http://127.0.0.1:4318 (env OTEL_EXPORTER_OTLP_ENDPOINT; default: no traces)")
	f.StringVar(&s.sample, "trace-sample", "", "`part` of the traces that are kept of those that begin here, 0 to 1 (env OTEL_TRACES_SAMPLER_ARG; default 1)")
}

// tracerStop stops the program's tracer.
type tracerStop struct{ a *app }

// startTracer makes the program's tracer, if spans are to go anywhere.
func (a *app) startTracer(ctx context.Context, s traceSettings) (tracerStop, error) {
	stop := tracerStop{a}
	ratio, err := s.ratio(a.env)
	if err != nil {
		return stop, err
	}
	endpoint, err := s.url(a.env)
	if err != nil || endpoint == "" {
		return stop, err
	}
	a.tracer, err = trace.New(ctx, trace.Config{Endpoint: endpoint, Service: "pelton", Version: version(), Ratio: ratio, Logger: a.logger(levelServe)})
	if err != nil {
		return stop, usage(err)
	}
	a.note("traces go to %s", endpoint)
	return stop, nil
}

// stop sends the last spans.
func (s tracerStop) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := s.a.tracer.Stop(ctx); err != nil {
		s.a.note("%v", err)
	}
}

// traced wraps a command that enqueues: it goes on with the trace of TRACEPARENT, if there is one.
func (a *app) traced(s *traceSettings, do func(ctx context.Context, args []string) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		tracer, err := a.startTracer(ctx, *s)
		if err != nil {
			return err
		}
		defer tracer.stop(ctx)
		return do(trace.Extract(ctx, a.env("TRACEPARENT"), a.env("TRACESTATE")), args)
	}
}

// tracedRequests wraps what answers requests: it goes on with the trace that their headers name. Nil if nothing is traced.
func (a *app) tracedRequests() func(http.Handler) http.Handler {
	if a.tracer == nil {
		return nil
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := trace.Extract(r.Context(), r.Header.Get("traceparent"), r.Header.Get("tracestate"))
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// url is where spans go; empty: nowhere.
func (s *traceSettings) url(env func(string) string) (string, error) {
	from, text := "--otlp-endpoint", s.endpoint
	if text == "" {
		protocol := cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
		exporter := cmp.Or(env("OTEL_TRACES_EXPORTER"), "otlp")
		if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || exporter == "none" {
			return "", nil
		}
		if from, text = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); text == "" {
			from, text = "OTEL_EXPORTER_OTLP_ENDPOINT", env("OTEL_EXPORTER_OTLP_ENDPOINT")
		}
		switch {
		case text == "":
			return "", nil
		case exporter != "otlp":
			return "", usagef("OTEL_TRACES_EXPORTER is %q, want otlp or none", exporter)
		case protocol != "http/protobuf":
			return "", usagef("the protocol of OpenTelemetry's exporter is %q, want http/protobuf; --otlp-endpoint names a collector that takes it", protocol)
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", usagef("%s %q: want a URL, as http://127.0.0.1:4318", from, text)
	}
	if from != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" && !strings.HasSuffix(u.Path, tracesPath) {
		u = u.JoinPath(tracesPath)
	}
	return u.String(), nil
}

// ratio is the part of traces that are kept, as trace.Config has it.
func (s *traceSettings) ratio(env func(string) string) (float64, error) {
	from, text := "--trace-sample", s.sample
	if text == "" {
		from = "OTEL_TRACES_SAMPLER_ARG"
		switch sampler := strings.TrimPrefix(env("OTEL_TRACES_SAMPLER"), "parentbased_"); sampler {
		case "traceidratio":
			text = env(from)
		case "always_off":
			text = "0"
		}
	}
	if text == "" {
		return 1, nil
	}
	ratio, err := strconv.ParseFloat(text, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, usagef("%s %q: want a part of the traces, 0 to 1, as 0.1", from, text)
	}
	if ratio == 0 {
		return -1, nil
	}
	return ratio, nil
}
