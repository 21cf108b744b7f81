package flow

import (
	"context"
	"sync"
	"time"
)

// hands advance runs, a few at a time, and each run by one of them at most. A run that could not be advanced is put off, so that it
// holds up no other.
type hands struct {
	free    chan struct{} // filled by those at work
	working sync.WaitGroup

	mu       sync.Mutex
	busy     map[int64]bool
	failures map[int64]postponed
}

// postponed is a run that could not be advanced.
type postponed struct {
	times int
	until time.Time
}

func newHands(n int) *hands {
	return &hands{free: make(chan struct{}, n), busy: map[int64]bool{}, failures: map[int64]postponed{}}
}

// do has work done for a run when a hand is free; not if the run is being worked on or put off. The work ends with succeeded, failed or
// release. It returns false if ctx ended before.
func (h *hands) do(ctx context.Context, id int64, work func()) bool {
	if !h.take(id) {
		return true
	}
	select {
	case h.free <- struct{}{}:
	case <-ctx.Done():
		h.release(id)
		return false
	}
	h.working.Go(func() {
		defer func() { <-h.free }()
		work()
	})
	return true
}

func (h *hands) take(id int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy[id] || time.Now().Before(h.failures[id].until) {
		return false
	}
	h.busy[id] = true
	return true
}

// release ends the work for a run, whatever came of it.
func (h *hands) release(id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.busy, id)
}

// succeeded ends the work for a run.
func (h *hands) succeeded(id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.busy, id)
	delete(h.failures, id)
}

// failed ends the work for a run and puts it off. It returns how many times it has failed now.
func (h *hands) failed(id int64) (times int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.busy, id)
	times = h.failures[id].times + 1
	h.failures[id] = postponed{times, time.Now().Add(min(time.Minute, 100*time.Millisecond<<min(times, 10)))}
	return times
}

// next tells when the next run that was put off is to be tried. One whose time has come is told once more, and then forgotten: if nobody
// tried it, nothing waits for it any more.
func (h *hands) next() (left time.Duration, some bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, p := range h.failures {
		if h.busy[id] {
			continue
		}
		if p.until.IsZero() {
			delete(h.failures, id)
			continue
		}
		wait := max(0, time.Until(p.until))
		if wait == 0 {
			h.failures[id] = postponed{times: p.times}
		}
		if !some || wait < left {
			left, some = wait, true
		}
	}
	return left, some
}

// wait returns when all work has ended.
func (h *hands) wait() { h.working.Wait() }
