package executor

import (
	"context"
	"sync"
	"time"
)

// slots counts how many more jobs a queue may run, and runs them on goroutines that live on.
//
// The goroutine that was idle last takes the next task, and there are only as many goroutines as tasks really need at
// once: a thousand short jobs pass through a handful of warm stacks. One goroutine at a time is the scout, on its way to the
// tasks that wait; when it takes one and more are left, it sends the next scout. So a task that blocks holds up nobody.
type slots struct {
	size int
	run  func(ctx context.Context, t *Task)

	mu       sync.Mutex
	free     int
	waiting  []*Task // from next on
	next     int
	idle     []chan struct{} // of goroutines, the last one idle at the end
	scouting bool
	closed   bool
	changed  chan struct{} // one signal when slots became free
	group    sync.WaitGroup
}

func newSlots(size int, run func(ctx context.Context, t *Task)) *slots {
	return &slots{size: size, run: run, free: size, changed: make(chan struct{}, 1)}
}

// linger is how long a claim waits for more slots to become free once one is: it trades that time for larger claims.
const linger = 2 * time.Millisecond

// wait waits until slots are free and returns how many: at once if a quarter is, else after a short while.
func (s *slots) wait(ctx context.Context) int {
	enough := s.enough()
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

// enough is how many free slots are worth a claim at once.
func (s *slots) enough() int { return max(1, s.size/4) }

func (s *slots) available() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// start hands tasks to goroutines. Their number must not be above what wait returned.
func (s *slots) start(ctx context.Context, tasks []*Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free -= len(tasks)
	s.waiting = append(append(s.waiting[:0], s.waiting[s.next:]...), tasks...)
	s.next = 0
	s.scout(ctx)
}

// scout sends a goroutine to the waiting tasks, unless one is on its way. The lock is held.
func (s *slots) scout(ctx context.Context) {
	if s.scouting || s.next == len(s.waiting) {
		return
	}
	s.scouting = true
	if n := len(s.idle); n > 0 {
		s.idle[n-1] <- struct{}{}
		s.idle = s.idle[:n-1]
		return
	}
	s.group.Go(func() { s.work(ctx) })
}

// work is the life of a goroutine; it begins as a scout.
func (s *slots) work(ctx context.Context) {
	woken := make(chan struct{}, 1)
	s.mu.Lock()
	s.scouting = false
	for {
		for s.next < len(s.waiting) {
			t := s.waiting[s.next]
			s.waiting[s.next] = nil
			s.next++
			s.scout(ctx)
			s.mu.Unlock()
			s.runOne(ctx, t)
			s.mu.Lock()
		}
		if s.closed {
			s.mu.Unlock()
			return
		}
		s.idle = append(s.idle, woken)
		s.mu.Unlock()
		<-woken
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return
		}
		s.scouting = false
	}
}

// runOne runs a task and frees its slot, also when the worker ends this goroutine by runtime.Goexit.
func (s *slots) runOne(ctx context.Context, t *Task) {
	lives := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.release(1)
		if !lives { // somebody else must look after the waiting tasks
			s.scout(ctx)
		}
	}()
	s.run(ctx, t)
	lives = true
}

// release frees slots, and tells when a claim may be worth while. The lock is held.
func (s *slots) release(n int) {
	before := s.free
	s.free += n
	if enough := s.enough(); before == 0 || before < enough && s.free >= enough {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// unstarted takes back the tasks that no goroutine has taken yet.
func (s *slots) unstarted() []*Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append([]*Task(nil), s.waiting[s.next:]...)
	s.waiting, s.next = nil, 0
	s.release(len(list))
	return list
}

// close waits for the goroutines to end their tasks. Nothing may be started until the next open.
func (s *slots) close() {
	s.mu.Lock()
	s.closed = true
	for _, woken := range s.idle {
		close(woken)
	}
	s.idle = nil
	s.mu.Unlock()
	s.group.Wait()
}

// open makes the slots ready after a close.
func (s *slots) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.scouting = false, false
}
