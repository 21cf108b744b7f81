package executor

import (
	"context"
	"sync"
	"time"
)

// slots counts how many more jobs a queue may run, and runs them on goroutines that live on.
type slots struct {
	size int
	run  func(ctx context.Context, t *Task)

	mu      sync.Mutex
	free    int
	workers int
	changed chan struct{} // one signal when slots became free
	queue   chan *Task
	group   sync.WaitGroup
}

func newSlots(size int, run func(ctx context.Context, t *Task)) *slots {
	return &slots{size: size, run: run, free: size, changed: make(chan struct{}, 1), queue: make(chan *Task, size)}
}

// linger is how long a claim waits for more slots to become free once one is: it trades that time for larger claims.
const linger = 2 * time.Millisecond

// wait waits until slots are free and returns how many: at once if a quarter is, else after a short while.
func (s *slots) wait(ctx context.Context) int {
	enough := max(1, s.size/4)
	var late <-chan time.Time
	for {
		free := s.available()
		if free >= enough {
			return free
		}
		if free > 0 && late == nil {
			timer := time.NewTimer(linger)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-ctx.Done():
			return 0
		case <-s.changed:
		case <-late:
			return s.available()
		}
	}
}

func (s *slots) available() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// start hands tasks to goroutines. Their number must not be above what wait returned.
func (s *slots) start(ctx context.Context, tasks []*Task) {
	s.mu.Lock()
	s.free -= len(tasks)
	for s.workers < s.size-s.free {
		s.workers++
		s.group.Go(func() { s.work(ctx) })
	}
	s.mu.Unlock()
	for _, t := range tasks {
		s.queue <- t
	}
}

func (s *slots) work(ctx context.Context) {
	for t := range s.queue {
		s.run(ctx, t)
		s.release(1)
	}
}

func (s *slots) release(n int) {
	s.mu.Lock()
	s.free += n
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// unstarted takes back the tasks that no goroutine has taken yet.
func (s *slots) unstarted() []*Task {
	var list []*Task
	for {
		select {
		case t := <-s.queue:
			list = append(list, t)
		default:
			s.release(len(list))
			return list
		}
	}
}

// close waits for the goroutines. Nothing may be started afterwards.
func (s *slots) close() {
	close(s.queue)
	s.group.Wait()
	s.queue, s.workers = make(chan *Task, s.size), 0
}
