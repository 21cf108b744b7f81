package executor

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// register makes a new incarnation.
func (e *Executor) register(ctx context.Context, on store.DB) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	me := store.Executor{Name: e.config.Name, Host: host, PID: os.Getpid(), Kinds: e.config.Kinds}
	for name, slots := range e.config.Queues {
		me.Queues = append(me.Queues, name)
		me.Slots += slots
	}
	slices.Sort(me.Queues)
	id, err := e.store.Register(ctx, on, me)
	if err != nil {
		return err
	}
	e.id.Store(id)
	return nil
}

// beat gives signs of life and takes note of what they bring back.
func (e *Executor) beat(ctx context.Context) {
	for {
		err := e.beatOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			e.lifeline.close(ctx) // another connection may reach another server
			e.log.WarnContext(ctx, "heartbeat", "error", err)
		}
		if !e.restBeat(ctx) {
			return
		}
	}
}

func (e *Executor) beatOnce(ctx context.Context) error {
	on, err := e.lifeline.open(ctx)
	if err != nil {
		return err
	}
	executor := e.id.Load()
	r, err := e.store.Beat(ctx, on, executor, e.tasks.keys(), slices.Sorted(maps.Keys(e.queues)), e.config.Kinds)
	switch {
	case err != nil:
		return err
	case !r.Known:
		return e.reborn(ctx, on)
	}
	return e.heed(ctx, on, executor, r)
}

// BeatNow asks for a heartbeat now, because there is news in the database.
func (e *Executor) BeatNow() {
	select {
	case e.beatNow <- struct{}{}:
	default:
	}
}

func (e *Executor) restBeat(ctx context.Context) bool {
	timer := time.NewTimer(service.Jitter(e.config.Heartbeat))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-e.beatNow:
	}
	return true
}

// reborn takes a new incarnation after this one was taken for dead. Its runs are others' now.
// A claim that was asked for before either finds the new incarnation after it added its tasks, or its tasks are ended here.
func (e *Executor) reborn(ctx context.Context, on store.DB) error {
	if err := e.register(ctx, on); err != nil {
		return fmt.Errorf("register again after being taken for dead: %w", err)
	}
	id := e.id.Load()
	e.log.WarnContext(ctx, "this executor was taken for dead; its running jobs are cancelled, others run them", "executor", id)
	e.leases.forget(id)
	e.tasks.endBefore(id, ErrTaken)
	e.WakeAll() // what sleeps, sleeps under the old name
	return nil
}

func (e *Executor) heed(ctx context.Context, on store.Session, executor int64, r store.BeatResult) error {
	for _, id := range r.Cancelled {
		e.Cancel(id)
	}
	for name, q := range e.queues {
		q.pause(slices.Contains(r.Paused, name) || slices.Contains(r.Paused, "*"))
	}
	e.setKindLines(r.KindLines)
	return e.handBackLeases(ctx, on, executor, e.leases.strangers(executor, r.Leases))
}

// handBackLeases hands back leases of claims whose answer was lost.
func (e *Executor) handBackLeases(ctx context.Context, on store.Session, executor int64, numbers []int64) error {
	if len(numbers) == 0 {
		return nil
	}
	lines, err := e.store.HandBackLeases(ctx, on, executor, numbers)
	if err != nil {
		return err
	}
	return e.wakeSleepers(ctx, on, lines)
}

// wakeSleepers tells this executor and all that sleep that lines have got work by other ways than an enqueue.
func (e *Executor) wakeSleepers(ctx context.Context, on store.DB, lines []string) error {
	for _, line := range lines {
		e.Wake(line)
	}
	if len(lines) == 0 || e.config.NotifyOff {
		return nil
	}
	return e.store.WakeSleepers(ctx, on, lines)
}

// handBackRest hands back what is still leased when nothing runs any more: claims whose answer was lost.
func (e *Executor) handBackRest(ctx context.Context) {
	id := e.id.Load()
	r, err := e.store.Beat(ctx, e.store.Pool, id, nil, nil, nil)
	if err == nil {
		err = e.handBackLeases(ctx, e.store.Pool, id, r.Leases)
	}
	if err != nil {
		e.log.WarnContext(ctx, "hand back what is left; the reaper will", "error", err)
	}
}

// pause stops or resumes claiming.
func (q *queue) pause(paused bool) {
	if q.paused.Swap(paused) == paused {
		return
	}
	q.e.config.OnPause(q.name, paused)
	q.nudge()
}

// setKindLines tells the queues which lines of kinds they know hold something.
func (e *Executor) setKindLines(lines []string) {
	byQueue := map[string][]string{}
	for _, line := range lines {
		byQueue[queueOf(line)] = append(byQueue[queueOf(line)], line)
	}
	for name, q := range e.queues {
		q.setKindLines(byQueue[name])
	}
}

func (q *queue) setKindLines(lines []string) {
	if slices.Equal(q.knownKindLines(), lines) {
		return
	}
	q.kindLines.Store(&lines)
	q.e.config.Marks.Use(q.e.lines()...)
	if len(lines) > 0 {
		q.nudge()
	}
}

func (q *queue) knownKindLines() []string {
	if lines := q.kindLines.Load(); lines != nil {
		return *lines
	}
	return nil
}

// addKindLine takes a hint at a line of a single kind.
func (q *queue) addKindLine(line string) {
	_, kind, _ := strings.Cut(line, kindLine)
	if known := q.knownKindLines(); q.e.knows(kind) && !slices.Contains(known, line) {
		q.setKindLines(append(slices.Clip(known), line))
	}
}

// lines are all lines of all queues.
func (e *Executor) lines() []string {
	var lines []string
	for _, q := range e.queues {
		lines = append(lines, q.lines()...)
	}
	return lines
}
