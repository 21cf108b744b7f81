package trace

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// warnEvery is the shortest time between two warnings.
const warnEvery = time.Minute

// exporter tells of what cannot be exported now and then, and drops it.
type exporter struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	away   atomic.Bool
	warned time.Time // exports come one at a time
	lost   int       // spans since then
}

// ExportSpans exports.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.away.Store(err != nil)
	if err == nil {
		return nil
	}
	e.lost += len(spans)
	if now := time.Now(); now.Sub(e.warned) >= warnEvery {
		e.log.WarnContext(ctx, "spans cannot be exported and are lost; the next warning is a minute away", "spans", e.lost, "error", err)
		e.warned, e.lost = now, 0
	}
	return nil
}
