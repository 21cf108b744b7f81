package duty

import (
	"context"
	"log/slog"
	"time"

	"github.com/peltonq/pelton/internal/service"
)

// Bounds of the pause after a failed step.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// stepTimeout bounds one step, so that a dead connection cannot hold a duty for ever.
const stepTimeout = 2 * time.Minute

// loop repeats a step.
type loop struct {
	*service.Service
	name    string
	log     *slog.Logger
	step    func(ctx context.Context) (time.Duration, error) // returns when to come again
	hint    chan struct{}
	hinted  time.Duration                                     // the longest wait after a hint
	stepped func(duty string, again time.Duration, err error) // is told of the end of each step; nil: nobody is
}

func newLoop(name string, log *slog.Logger, step func(ctx context.Context) (time.Duration, error)) *loop {
	l := &loop{name: name, log: log, step: step, hint: make(chan struct{}, 1)}
	l.Service = service.New(l.run)
	return l
}

// Hint makes the loop come again soon. It never blocks.
func (l *loop) Hint() {
	select {
	case l.hint <- struct{}{}:
	default:
	}
}

func (l *loop) run(ctx context.Context) {
	var pause time.Duration // after failures
	for {
		wait, err := l.once(ctx)
		if ctx.Err() != nil {
			return
		}
		l.tell(wait, err)
		switch {
		case err != nil:
			if pause == 0 {
				l.log.WarnContext(ctx, "a duty fails and is repeated", "duty", l.name, "error", err)
			}
			pause = min(maxPause, max(firstPause, 2*pause))
			if !service.Sleep(ctx, pause) {
				return
			}
			continue
		case pause > 0:
			l.log.InfoContext(ctx, "a duty works again", "duty", l.name)
			pause = 0
		}
		if !l.wait(ctx, wait) {
			return
		}
	}
}

func (l *loop) tell(again time.Duration, err error) {
	if l.stepped != nil {
		l.stepped(l.name, again, err)
	}
}

func (l *loop) once(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return l.step(ctx)
}

// wait waits for d, or less after a hint; it tells whether to go on.
func (l *loop) wait(ctx context.Context, d time.Duration) bool {
	start := time.Now()
	timer := time.NewTimer(service.Jitter(d))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-l.hint:
			if d <= l.hinted {
				continue
			}
			timer.Reset(max(0, l.hinted-time.Since(start)))
		}
	}
}
