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

// Logger returns a logger to the log of the run in ctx, from Info on; it discards if there is none.
func Logger(ctx context.Context) *slog.Logger {
	return slog.New(NewHandler(FromContext(ctx), nil))
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
