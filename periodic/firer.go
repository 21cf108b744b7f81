package periodic

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic/internal/store"
)

const (
	fireBatch   = 1000                   // schedules in one transaction
	fireTicks   = 10_000                 // about as many ticks in one
	fewestTicks = 10                     // of one schedule
	mostTicks   = 20_000                 // after which no further schedule is decided in a transaction
	fireLook    = 15 * time.Second       // the longest time between two looks
	fireBusy    = 25 * time.Millisecond  // until the next look when others hold what is due
	fireRefresh = 200 * time.Millisecond // between two looks at the floor while schedules fire
	fireTimeout = 2 * time.Minute        // of one step, so that a dead connection cannot hold the loop for ever
	firstPause  = 100 * time.Millisecond // after a failed step, doubled up to
	lastPause   = 2 * time.Second
	putOffBy    = time.Second // a schedule that could not be fired, doubled with every failure in a row
	maxCancels  = 10_000      // runs that wait for being cancelled; what is more is found by the next look at their schedules
)

// fireLock is the longest wait for a lock that somebody else's transaction holds.
const fireLock = 200 * time.Millisecond

// firer fires what is due. Any number of them may work at once.
type firer struct {
	c       *Client
	loop    *service.Service
	marking *service.Service
	ending  *service.Service
	hint    chan struct{}
	cancels chan cancel
	codes   []string // of schedules that only this process can fire

	// Of the loop's goroutine alone:
	floor     *floor.Tracker
	batch     int       // schedules in the next transaction
	refreshed time.Time // the floor
	checked   time.Time // below it
	unchecked bool      // something was fired since

	moved atomic.Int64 // schedules that have moved since the marker last asked
	mark  chan struct{}
}

func newFirer(c *Client) *firer {
	f := &firer{
		c: c, hint: make(chan struct{}, 1), cancels: make(chan cancel, maxCancels), batch: fireBatch, checked: time.Now(),
		mark: make(chan struct{}, 1),
		floor: floor.NewTracker(c.store.Schema, floor.Schedules, func(n int) {
			c.log.Error("due schedules were below the floor: please report this", "keys", n)
		}),
	}
	f.loop, f.marking, f.ending = service.New(f.run), service.New(f.runMarker), service.New(f.runCancels)
	return f
}

func (f *firer) start(ctx context.Context) {
	f.codes = f.codes[:0]
	for key := range f.c.coded {
		f.codes = append(f.codes, key)
	}
	slices.Sort(f.codes)
	f.ending.Start(ctx)
	f.marking.Start(ctx)
	f.loop.Start(ctx)
}

func (f *firer) stop() {
	f.loop.Stop()
	f.marking.Stop()
	f.ending.Stop()
}

// nudge ends the firer's rest.
func (f *firer) nudge() { tell(f.hint) }

// tell wakes the owner of a channel, once for any number of calls.
func tell(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (f *firer) run(ctx context.Context) {
	var pause time.Duration // after failures
	for ctx.Err() == nil {
		wait, err := f.once(ctx)
		f.c.config.Observer.DutyStepped(dutyFire, wait, err)
		switch {
		case err != nil && pause == 0:
			f.c.log.WarnContext(ctx, "schedules cannot be fired; trying again", "error", err)
			fallthrough
		case err != nil:
			pause = min(lastPause, max(firstPause, 2*pause))
			wait = service.Jitter(pause)
		case pause > 0:
			f.c.log.InfoContext(ctx, "schedules are fired again")
			pause = 0
		}
		rest(ctx, wait, f.hint)
	}
}

// rest waits for a time, a hint, or the end.
func rest(ctx context.Context, wait time.Duration, hint <-chan struct{}) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-hint:
	case <-timer.C:
	}
}

// once does a step. A stop waits for its end.
func (f *firer) once(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fireTimeout)
	defer cancel()
	return f.step(ctx)
}

// step fires one batch, if something is due, and returns when to come again.
func (f *firer) step(ctx context.Context) (time.Duration, error) {
	next, err := f.c.store.NextDue(ctx, f.floor.Floor(), f.codes)
	if err != nil {
		return 0, err
	}
	if err := f.keepFloor(ctx, next.Newest); err != nil {
		return 0, err
	}
	if !next.Any {
		return f.c.config.look, nil
	}
	if next.In > 0 {
		return min(next.In, f.c.config.look), nil
	}
	n, err := f.fire(ctx)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return fireBusy, nil
	}
	f.unchecked = true
	f.moved.Add(int64(n))
	tell(f.mark)
	return 0, nil
}

// keepFloor reads the floor when a row was published, or while schedules fire, and looks below it about once a minute after some did.
func (f *firer) keepFloor(ctx context.Context, newest int64) error {
	now := time.Now()
	if newest != f.floor.Newest() || f.unchecked && now.Sub(f.refreshed) >= fireRefresh {
		f.refreshed = now
		if err := f.floor.Refresh(ctx, f.c.store.Pool); err != nil {
			return err
		}
	}
	if f.unchecked && now.Sub(f.checked) >= time.Minute {
		f.checked, f.unchecked = now, false
		if _, err := f.floor.CheckBelow(ctx, f.c.store.Pool); err != nil {
			return err
		}
	}
	return nil
}

// fire fires one batch in one transaction, and returns how many schedules it was. If the transaction fails as a whole, the next one takes half as
// many schedules, and one that is at fault alone is put off.
func (f *firer) fire(ctx context.Context) (n int, err error) {
	var claimed []store.Due
	var after aftermath
	began := time.Now()
	err = f.c.store.Tx(ctx, store.Limits{Lock: fireLock, Head: true}, func(tx pgx.Tx) error {
		claimed, err = f.c.store.Claim(ctx, tx, f.floor.Floor(), f.codes, f.batch)
		if err != nil || len(claimed) == 0 {
			return err
		}
		after, err = f.c.settle(ctx, tx, claimed, max(fewestTicks, fireTicks/len(claimed)))
		return err
	})
	if err != nil {
		f.finish(ctx, aftermath{flows: after.flows}) // if only the answer to the commit was lost, they have begun
		return 0, f.halve(ctx, claimed, err)
	}
	f.batch = min(fireBatch, 2*f.batch)
	if len(claimed) > 0 {
		f.c.config.Observer.Fired(len(claimed), time.Since(began))
	}
	f.finish(ctx, after)
	return len(claimed), nil
}

// halve has the next batch be half of one that failed. One that was alone is put off; that it could be shows that the database is there.
func (f *firer) halve(ctx context.Context, claimed []store.Due, err error) error {
	if len(claimed) == 0 || f.lost(ctx, err) {
		return err
	}
	f.batch = max(1, len(claimed)/2)
	if len(claimed) > 1 {
		f.c.log.DebugContext(ctx, "a batch of schedules could not be fired; trying with fewer", "schedules", len(claimed), "error", err)
		return nil
	}
	f.c.log.WarnContext(ctx, "a schedule could not be fired and is put off", "schedule_id", claimed[0].ID, "error", err)
	return f.c.store.PutOff(ctx, f.c.store.Pool, []int64{claimed[0].ID}, f.c.config.putOff)
}

// lost tells whether an error says nothing about what was to be done, but that the server cannot be reached or is going away.
func (f *firer) lost(ctx context.Context, err error) bool {
	state := store.SQLState(err)
	if state == "" {
		return f.c.store.Pool.Ping(ctx) != nil
	}
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P")
}

// settle decides what is due of locked schedules, at most about limit ticks each, and stores it. Those that cannot be read are put off. Those for which the
// transaction would grow too large are left to the next one: all ticks that a changed clock drops fall on one time, and are decided together.
func (c *Client) settle(ctx context.Context, tx pgx.Tx, dues []store.Due, limit int) (aftermath, error) {
	subjects, broken, err := c.read(ctx, tx, dues)
	if err != nil {
		return aftermath{}, err
	}
	var list []*decided
	ticks := 0
	for _, s := range subjects {
		if ticks > mostTicks {
			break
		}
		d, err := s.decide(limit)
		if err != nil {
			broken[s.schedule.id] = err
			continue
		}
		ticks += len(d.step.Verdicts)
		list = append(list, d)
	}
	after, err := c.apply(ctx, tx, list)
	if err != nil || len(broken) == 0 {
		return after, err
	}
	var ids []int64
	for id, err := range broken {
		c.log.ErrorContext(ctx, "a schedule cannot be fired and is put off", "error", err)
		ids = append(ids, id)
	}
	return after, c.store.PutOff(ctx, tx, ids, c.config.putOff)
}

// finish does what follows from a transaction that was committed.
func (f *firer) finish(ctx context.Context, after aftermath) {
	if len(after.ticks) > 0 {
		f.c.config.Observer.Decided(after.ticks)
	}
	if after.flows && f.c.flows != nil {
		f.c.flows.Hint(ctx)
	}
	for _, cancel := range after.cancel {
		select {
		case f.cancels <- cancel:
		default: // the next look at its schedule asks again
		}
	}
}

// runCancels cancels runs for newer ticks. What fails is asked for again by the next look at the schedule.
func (f *firer) runCancels(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case cancel := <-f.cancels:
			if err := f.c.cancel(ctx, cancel); err != nil && ctx.Err() == nil {
				f.c.log.WarnContext(ctx, "cancel a run for a newer tick; trying again", "schedule", cancel.schedule, "error", err)
			}
		}
	}
}

// cancel cancels a run, which may have ended meanwhile.
func (c *Client) cancel(ctx context.Context, what cancel) error {
	ctx = jobs.WithActor(ctx, actorOf(what.schedule))
	if what.run.Job != 0 {
		_, err := c.jobs.JobCancel(ctx, what.run.Job)
		if errors.Is(err, rivertype.ErrNotFound) {
			return nil
		}
		return err
	}
	if c.flows == nil {
		return nil
	}
	err := c.flows.Kill(ctx, what.run.Flow)
	if errors.Is(err, flow.ErrNotFound) || errors.Is(err, flow.ErrEnded) {
		return nil
	}
	return err
}

// runMarker publishes the floor of schedule_due.
func (f *firer) runMarker(ctx context.Context) {
	marker := floor.NewMarker(f.c.store.Schema, floor.Schedules, floor.MarkerConfig{})
	for ctx.Err() == nil {
		marker.Moved(int(f.moved.Swap(0)))
		wait, err := marker.Step(ctx, f.c.store.Pool)
		if err != nil && ctx.Err() == nil {
			f.c.log.DebugContext(ctx, "no floor of due schedules; trying again", "error", err)
		}
		pace := min(wait, marker.Pace())
		rest(ctx, service.Jitter(pace), nil)
		rest(ctx, service.Jitter(wait-pace), f.mark)
	}
}
