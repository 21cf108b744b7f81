package executor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// Causes of the end of a task's context.
var (
	ErrStopped   = errors.New("client is stopping")
	ErrCancelled = errors.New("job was cancelled")
	ErrTaken     = errors.New("job was taken away: this client was taken for dead")
)

// Config of an executor. All fields are needed.
type Config struct {
	Name         string // of the client
	Queues       map[string]int
	Kinds        []string
	Heartbeat    time.Duration
	PollInterval time.Duration
	AgeAfter     time.Duration
	PollOnly     bool
	NotifyOff    bool // sends no hints at runs that go back into the line
	Runner       Runner
	Marks        *floor.Tracker // of the line
	Log          *slog.Logger

	OnClaim  func(queue string, jobs int, took time.Duration)
	OnFinish func(tasks []*Task, refused map[*Task]bool, took time.Duration) // after a batch was recorded
	OnCancel func() error                                                    // the cause to end a cancelled task's context with
	OnPause  func(queue string, paused bool)
	OnFlow   func(ctx context.Context) error // ends of flows' jobs were reported
	TellDue  func(due time.Time) bool        // whether to hint at a run that was scheduled for then
	RetryAt  func(t *Task) *time.Time        // when an errored run is to be repeated
}

// Executor claims runs of its queues and has them worked.
type Executor struct {
	config Config
	store  *store.Store
	log    *slog.Logger

	id     atomic.Int64 // of the current incarnation
	claims atomic.Int64 // jobs claimed so far
	leases *leases
	finish *finisher
	queues map[string]*queue
	tasks  *tasks

	upkeep   *service.Service // heartbeat
	lifeline lifeline         // of the heartbeat
	beatNow  chan struct{}
	poller   *service.Service
	tally    tally
	tallies  *service.Service // stores what was counted

	mu       sync.Mutex
	stopping context.CancelCauseFunc // ends claiming
	hard     context.CancelCauseFunc // ends the tasks' contexts
	stopped  chan struct{}
	endTasks atomic.Pointer[context.CancelCauseFunc] // hard, for those who do not wait for mu
	started  bool
}

// New makes an executor. It does nothing before Start.
func New(st *store.Store, config Config) *Executor {
	e := &Executor{
		config: config, store: st, log: config.Log, leases: newLeases(), tasks: newTasks(), queues: map[string]*queue{},
		beatNow: make(chan struct{}, 1), lifeline: lifeline{pool: st.Pool},
	}
	e.finish = newFinisher(e)
	for name, slots := range config.Queues {
		e.queues[name] = newQueue(e, name, slots)
	}
	e.upkeep = service.New(e.beat)
	e.poller = service.New(e.poll)
	e.tallies = service.New(e.storeTallies)
	return e
}

// Start registers the executor and starts to claim. ctx's values reach the workers; its end does not stop anything.
func (e *Executor) Start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		return nil
	}
	if err := e.register(ctx, e.store.Pool); err != nil {
		return err
	}
	base := context.WithoutCancel(ctx)
	claiming, stopping := context.WithCancelCause(base)
	working, hard := context.WithCancelCause(base)
	e.stopping, e.hard, e.started, e.stopped = stopping, hard, true, make(chan struct{})
	e.endTasks.Store(&hard)
	e.config.Marks.Use(e.lines()...)
	e.upkeep.Start(base)
	e.poller.Start(base)
	e.tallies.Start(base)
	e.finish.start(base)
	var claims sync.WaitGroup
	for _, q := range e.queues {
		q.slots.open()
		claims.Go(func() { q.loop(claiming, working) })
	}
	go e.drain(base, &claims)
	return nil
}

// drain follows a stop: claiming has ended, then the tasks, then their results are recorded.
func (e *Executor) drain(ctx context.Context, claims *sync.WaitGroup) {
	defer close(e.stopped)
	claims.Wait()
	for _, q := range e.queues {
		q.close()
	}
	e.finish.stop() //nolint:contextcheck // the finisher has had its context since it started
	e.poller.Stop()
	e.tallies.Stop()
	e.upkeep.Stop()
	e.lifeline.close(ctx)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	e.handBackRest(ctx)
	e.storeTally(ctx)
	if err := e.store.Unregister(ctx, e.id.Load()); err != nil {
		e.log.WarnContext(ctx, "executor could not say goodbye; its row will be found dead", "error", err)
	}
	e.tasks.clear()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hard(ErrStopped)
	e.started = false
}

// Stop ends claiming, hands unstarted jobs back, and waits for the running ones until ctx ends. It may be called again, also
// with hard: then the contexts of running tasks end.
func (e *Executor) Stop(ctx context.Context, hard bool) error {
	e.mu.Lock()
	if !e.started {
		e.mu.Unlock()
		return nil
	}
	stopped := e.stopped
	e.stopping(ErrStopped)
	if hard {
		e.hard(ErrStopped)
	}
	e.mu.Unlock()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// EndTasks ends the contexts of running tasks and does not wait for anything: whoever calls it goes on to Stop.
func (e *Executor) EndTasks() {
	if end := e.endTasks.Load(); end != nil {
		(*end)(ErrStopped)
	}
}

// Wake tells a queue that there may be work in one of its lines.
func (e *Executor) Wake(line string) {
	if q, ok := e.queues[queueOf(line)]; ok {
		if line != q.name {
			q.addKindLine(line)
		}
		q.nudge()
	}
}

// WakeAll tells all queues to look once, after hints may have been missed.
func (e *Executor) WakeAll() {
	for _, q := range e.queues {
		q.nudge()
	}
}

// Cancel ends the context of a job's task, if it runs here.
func (e *Executor) Cancel(jobID int64) {
	if t := e.tasks.get(jobID); t != nil {
		t.voidSeen.Store(true)
		t.end(e.config.OnCancel())
	}
}

// Running counts the tasks at work.
func (e *Executor) Running() int { return e.tasks.len() }
