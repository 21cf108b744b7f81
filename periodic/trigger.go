package periodic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/periodic/internal/plan"
	"github.com/peltonq/pelton/periodic/internal/store"
)

// Triggered is what became of a trigger.
type Triggered struct {
	Tick  *Tick     `json:"tick"`            // nil: the run waits
	Waits bool      `json:"waits"`           // for the end of the run before, or for a process of the schedule's owner
	Owner string    `json:"owner,omitempty"` // the owner, if it waits for a process of it
	At    time.Time `json:"at"`              // the tick's time
}

// Trigger starts a run of a schedule now, beside its ticks, paused or not. Its rule for overlaps holds.
func (c *Client) Trigger(ctx context.Context, name string) (*Triggered, error) {
	return answer(ctx, c.operate, func(v *verb) (*Triggered, error) { return v.trigger(ctx, name) })
}

// TriggerTx starts a run when the caller's transaction commits. The run of a flow begins within a minute then; flow.Client.Hint after the commit makes it begin at
// once.
func (c *Client) TriggerTx(ctx context.Context, tx pgx.Tx, name string) (*Triggered, error) {
	return answer(ctx, c.within(tx), func(v *verb) (*Triggered, error) { return v.trigger(ctx, name) })
}

func (v *verb) trigger(ctx context.Context, name string) (*Triggered, error) {
	s, err := v.find(ctx, name)
	var t *Triggered
	if unreadable, ok := errors.AsType[*unreadableError](err); ok {
		t, err = v.triggerElsewhere(ctx, name, unreadable.due)
	} else if err == nil {
		t, err = v.triggerNow(ctx, s)
	}
	if errors.Is(err, ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("trigger schedule %q: %w", name, err)
	}
	var after any = t.Tick
	if t.Waits {
		after = map[string]any{"waits": t.At}
	}
	return t, v.audit(ctx, "trigger", name, nil, after)
}

// triggerNow decides of a tick by hand at the time that it is.
func (v *verb) triggerNow(ctx context.Context, s *held) (*Triggered, error) {
	at := handTime(s.now)
	step := plan.Trigger(&s.schedule.spec, s.due.State, at, s.now)
	if s.Paused {
		if !step.State.Waiting.IsZero() && step.State.Waiting.Equal(at) {
			return nil, fmt.Errorf("%w: it is paused, and its last run has not ended: what waits for that waits for the end of the pause too", ErrRefused)
		}
		step = withoutWake(step)
	}
	d := &decided{subject: s.subject, step: step, actor: v.c.jobs.Actor(ctx)}
	if _, err := v.apply(ctx, d); err != nil {
		return nil, err
	}
	for i := range d.ticks {
		if t := &d.ticks[i]; t.Source == store.SourceTrigger && t.At.Equal(at) {
			return &Triggered{Tick: tickOf(t, s.now), At: at.UTC()}, nil
		}
	}
	return &Triggered{Waits: true, At: at.UTC()}, nil
}

// triggerElsewhere has a process of the schedule's owner start the run: only its code can.
func (v *verb) triggerElsewhere(ctx context.Context, name string, due store.Due) (*Triggered, error) {
	entry, err := v.c.get(ctx, v.tx, name)
	if err != nil {
		return nil, err
	}
	facts, err := v.c.store.Facts(ctx, v.tx, due.ID)
	switch {
	case err != nil:
		return nil, err
	case facts.Paused:
		return nil, fmt.Errorf("%w: it is paused, and only its owner's code can start a run", ErrRefused)
	case !due.State.Waiting.IsZero():
		return nil, fmt.Errorf("%w: a tick of it waits already", ErrRefused)
	}
	now, err := v.c.store.Now(ctx, v.tx)
	if err != nil {
		return nil, err
	}
	due.State.Waiting = handTime(now)
	if err := v.c.store.WriteDue(ctx, v.tx, []store.Written{{Due: due, Wake: now}}); err != nil {
		return nil, err
	}
	return &Triggered{Waits: true, Owner: entry.Owner, At: due.State.Waiting.UTC()}, nil
}

// handTime is a time that no tick of a clock has: those are of whole seconds.
func handTime(now time.Time) time.Time {
	now = now.Truncate(time.Microsecond)
	if now.Nanosecond() == 0 {
		return now.Add(time.Microsecond)
	}
	return now
}

// tickOf is a row that was written just now, as users see it.
func tickOf(t *store.Tick, now time.Time) *Tick {
	tick := &Tick{
		At: t.At.UTC(), N: t.N, Source: Source(t.Source), Outcome: Outcome(t.Outcome), Reason: t.Reason, Note: t.Note, DecidedAt: now.UTC(), Actor: t.Actor,
	}
	if t.Job != 0 {
		tick.JobID = &t.Job
	}
	if t.Run != 0 {
		tick.RunID = &t.Run
	}
	if t.Backfill != 0 {
		tick.BackfillID = &t.Backfill
	}
	return tick
}
