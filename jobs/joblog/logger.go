package joblog

import (
	"context"
	"log/slog"
)

// NewHandler returns a slog handler whose records go to the run's log as JSON lines, from the given level on (nil: Info).
func NewHandler(run *Run, level slog.Leveler) slog.Handler {
	if run == nil {
		return slog.DiscardHandler
	}
	return slog.NewJSONHandler(run.Stream(LogLines), &slog.HandlerOptions{Level: level})
}

// Logger returns a logger to the log of the run in ctx, from Info on, with the attributes that ContextWithAttrs gives; it discards if
// there is no run.
func Logger(ctx context.Context) *slog.Logger {
	handler := NewHandler(FromContext(ctx), nil)
	if attrs, ok := ctx.Value(attrsKey{}).(func(context.Context) []slog.Attr); ok {
		handler = handler.WithAttrs(attrs(ctx))
	}
	return slog.New(handler)
}

type attrsKey struct{}

// ContextWithAttrs returns a context whose Logger has the attributes that attrs finds in its own context: the ids of a trace, say.
func ContextWithAttrs(ctx context.Context, attrs func(context.Context) []slog.Attr) context.Context {
	return context.WithValue(ctx, attrsKey{}, attrs)
}

type contextKey struct{}

// NewContext returns a context that carries a run's log.
func NewContext(ctx context.Context, run *Run) context.Context {
	return context.WithValue(ctx, contextKey{}, run)
}

// IsContextKey tells whether a context is asked for a run's log: for a context type of one's own that carries one.
func IsContextKey(key any) bool {
	_, is := key.(contextKey)
	return is
}

// FromContext returns the log of the run that ctx belongs to. Without one it returns nil, which discards what is written to it.
func FromContext(ctx context.Context) *Run {
	run, _ := ctx.Value(contextKey{}).(*Run)
	return run
}
