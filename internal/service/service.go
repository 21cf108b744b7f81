package service

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// ErrStopped is the cause of the context that a stopped service's loop sees.
var ErrStopped = errors.New("service is stopping")

// Service runs one loop in a goroutine of its own. The zero value is not ready: use New.
type Service struct {
	run func(ctx context.Context)

	mu     sync.Mutex
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// New makes a service of a loop that returns when its context ends.
func New(run func(ctx context.Context)) *Service {
	return &Service{run: run}
}

// Start starts the loop unless it runs already. The loop keeps ctx's values, not its cancellation: only Stop ends it.
func (s *Service) Start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil {
		return
	}
	ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	s.done = done
	go func() {
		defer close(done)
		s.run(ctx)
	}()
}

// Stop ends the loop and waits for it.
func (s *Service) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		return
	}
	s.cancel(ErrStopped)
	<-s.done
	s.done, s.cancel = nil, nil
}

// Sleep waits for d, give or take a tenth, or until ctx ends; it tells whether the loop should go on.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(Jitter(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Jitter returns d give or take a tenth, so that many processes do not march in step.
func Jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d - d/10 + rand.N(d/5+1)
}
