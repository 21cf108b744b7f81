package periodic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/periodic/internal/plan"
	"github.com/peltonq/pelton/periodic/internal/store"
	"github.com/peltonq/pelton/periodic/internal/tick"
)

// Errors of this package. The messages around them say which.
var (
	ErrNotFound = errors.New("not found")                      // no such schedule or backfill
	ErrOwned    = errors.New("the schedule belongs to others") // to a service's code, which alone may change it
	ErrRefused  = errors.New("the schedule refuses that")      // as it is now
)

// operateLimits are those of a transaction that a person waits for.
var operateLimits = store.Limits{Lock: 10 * time.Second}

// settleTicks is how many ticks of one schedule a transaction decides.
const settleTicks = 1000

// verb is what one verb does in a transaction, and what is to be done when that has been committed.
type verb struct {
	c     *Client
	tx    pgx.Tx
	after aftermath
}

// operate runs a verb in a transaction of its own.
func (c *Client) operate(ctx context.Context, do func(v *verb) error) error {
	v := &verb{c: c}
	err := c.store.Tx(ctx, operateLimits, func(tx pgx.Tx) error {
		v.tx, v.after = tx, aftermath{}
		return do(v)
	})
	if err != nil {
		return err
	}
	c.firer.finish(ctx, v.after)
	c.hint(ctx)
	return nil
}

// within has a verb run under a savepoint of the caller's transaction, so that a refusal does not spoil it.
func (c *Client) within(tx pgx.Tx) func(ctx context.Context, do func(v *verb) error) error {
	return func(ctx context.Context, do func(v *verb) error) error {
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			if err := do(&verb{c: c, tx: tx}); err != nil {
				return err
			}
			return c.jobs.HintSchedulesTx(ctx, tx)
		})
	}
}

// answer runs a verb that has an answer.
func answer[T any](ctx context.Context, run func(ctx context.Context, do func(v *verb) error) error, do func(v *verb) (T, error)) (T, error) {
	var result T
	err := run(ctx, func(v *verb) (err error) {
		result, err = do(v)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return result, nil
}

// held is a schedule that a verb has locked and read.
type held struct {
	*subject
	store.Facts
}

// find locks a schedule and reads it. ErrNotFound if there is none.
func (v *verb) find(ctx context.Context, name string) (*held, error) {
	s, err := v.seek(ctx, name)
	if err == nil && s == nil {
		err = v.c.notFound(ctx, v.tx, name)
	}
	return s, err
}

// seek is find, with nil if there is none.
func (v *verb) seek(ctx context.Context, name string) (*held, error) {
	id, err := v.c.store.ID(ctx, v.tx, name)
	if err != nil || id == 0 {
		return nil, err
	}
	dues, err := v.c.store.Lock(ctx, v.tx, id)
	if err != nil || len(dues) == 0 {
		return nil, err
	}
	return v.read(ctx, dues[0])
}

// read reads a schedule that is locked.
func (v *verb) read(ctx context.Context, due store.Due) (*held, error) {
	list, broken, err := v.c.read(ctx, v.tx, []store.Due{due})
	if err != nil {
		return nil, err
	}
	if err := broken[due.ID]; err != nil {
		return nil, &unreadableError{due, err}
	}
	facts, err := v.c.store.Facts(ctx, v.tx, due.ID)
	return &held{list[0], facts}, err
}

// unreadableError is of a schedule whose row says nothing to this process, as one that is a function of another one's.
type unreadableError struct {
	due store.Due
	err error
}

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// Is makes it ErrRefused.
func (e *unreadableError) Is(err error) bool { return err == ErrRefused }

// apply stores a decision and reads the schedule anew.
func (v *verb) apply(ctx context.Context, d *decided) (*held, error) {
	after, err := v.c.apply(ctx, v.tx, []*decided{d})
	if err != nil {
		return nil, err
	}
	if d.putOff != nil {
		return nil, fmt.Errorf("a tick of schedule %q is due and cannot be started now; try again: %w", d.schedule.name, d.putOff)
	}
	v.after.flows = v.after.flows || after.flows
	v.after.cancel = append(v.after.cancel, after.cancel...)
	v.after.ticks = append(v.after.ticks, after.ticks...)
	dues, err := v.c.store.Lock(ctx, v.tx, d.schedule.id)
	if err != nil {
		return nil, err
	}
	return v.read(ctx, dues[0])
}

// settle decides what is due by the rules that hold until now.
func (v *verb) settle(ctx context.Context, s *held) (*held, error) {
	for again := true; again; {
		var err error
		if s, again, err = v.settleSome(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// settleSome decides some of what is due, and tells whether there may be more. Nothing is due of a schedule that is paused.
func (v *verb) settleSome(ctx context.Context, s *held) (*held, bool, error) {
	if s.Paused {
		return s, false, nil
	}
	d, err := s.decide(settleTicks)
	if err != nil || len(d.step.Verdicts) == 0 && !d.step.Cancel {
		return s, false, err
	}
	more := len(d.step.Verdicts) > 0 && !d.step.Wake.IsZero() && !d.step.Wake.After(s.now)
	s, err = v.apply(ctx, d)
	return s, more, err
}

// skipPause writes down that the ticks of a pause do not run, because the schedule is not any more what it was in it.
func (v *verb) skipPause(ctx context.Context, s *held) (*held, error) {
	for again := true; again; {
		var err error
		if s, again, err = v.skipSome(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// skipSome writes that down for some of the ticks, and tells whether there may be more.
func (v *verb) skipSome(ctx context.Context, s *held) (*held, bool, error) {
	spec := s.schedule.spec
	if spec.Ticks == nil {
		return s, false, nil
	}
	spec.AfterPause, spec.Spread, spec.Jitter = tick.MissedSkip, 0, 0
	state := plan.Resume(&spec, s.due.State, s.now).State
	if state.Next.IsZero() || state.Next.After(s.now) {
		return s, false, nil
	}
	step := plan.Decide(&spec, state, s.now, settleTicks)
	after, err := v.apply(ctx, &decided{subject: s.subject, step: withoutWake(step)})
	if err == nil && after.due.State.Decided.Equal(s.due.State.Decided) {
		err = fmt.Errorf("schedule %q: the ticks of its pause do not end", s.schedule.name)
	}
	return after, true, err
}

// withoutWake has nobody look at a schedule that is paused.
func withoutWake(step plan.Step) plan.Step {
	step.Wake = time.Time{}
	return step
}

// place stores where a schedule is, if nothing of it was decided.
func (v *verb) place(ctx context.Context, s *held, step plan.Step) error {
	if s.Paused {
		step = withoutWake(step)
	}
	return v.c.store.WriteDue(ctx, v.tx, []store.Written{{Due: store.Due{ID: s.schedule.id, State: step.State}, Wake: step.Wake}})
}

// audit records a verb.
func (v *verb) audit(ctx context.Context, action, name string, before, after any) error {
	return v.c.store.Audit(ctx, v.tx, v.c.jobs.AuditedActor(ctx), "schedule."+action, "schedule "+name, before, after)
}

// Pause has no more ticks of a schedule run until Resume. Ticks that are due are settled first; runs that were started go on. Pausing one that is paused
// by its owner's code makes it a person's pause, which that code does not end.
func (c *Client) Pause(ctx context.Context, name string) (*Entry, error) {
	return answer(ctx, c.operate, func(v *verb) (*Entry, error) { return v.pause(ctx, name) })
}

// PauseTx pauses a schedule when the caller's transaction commits.
func (c *Client) PauseTx(ctx context.Context, tx pgx.Tx, name string) (*Entry, error) {
	return answer(ctx, c.within(tx), func(v *verb) (*Entry, error) { return v.pause(ctx, name) })
}

func (v *verb) pause(ctx context.Context, name string) (*Entry, error) {
	s, err := v.find(ctx, name)
	if unreadable, ok := errors.AsType[*unreadableError](err); ok { // then nothing of it can be settled
		if err := v.pauseRow(ctx, unreadable.due, name, PausedByPerson, nil); err != nil {
			return nil, fmt.Errorf("pause schedule %q: %w", name, err)
		}
		return v.c.get(ctx, v.tx, name)
	}
	if err != nil {
		return nil, err
	}
	if err := v.pauseFor(ctx, s, PausedByPerson); err != nil {
		return nil, fmt.Errorf("pause schedule %q: %w", name, err)
	}
	return v.c.get(ctx, v.tx, name)
}

// pauseFor pauses a schedule for a reason, unless it is paused for it.
func (v *verb) pauseFor(ctx context.Context, s *held, why PauseWhy) error {
	if s.Paused && s.PausedWhy == string(why) {
		return nil
	}
	var before any = map[string]any{"paused": s.PausedWhy}
	if !s.Paused {
		before = nil
		var err error
		if s, err = v.settle(ctx, s); err != nil {
			return err
		}
	}
	return v.pauseRow(ctx, s.due, s.schedule.name, why, before)
}

// pauseRow notes a pause. Where the schedule is stays as it is, but nobody looks at it any more.
func (v *verb) pauseRow(ctx context.Context, due store.Due, name string, why PauseWhy, before any) error {
	if err := v.c.store.Pause(ctx, v.tx, due.ID, string(why), v.c.jobs.Actor(ctx)); err != nil {
		return err
	}
	if err := v.c.store.WriteDue(ctx, v.tx, []store.Written{{Due: due}}); err != nil {
		return err
	}
	return v.audit(ctx, "pause", name, before, map[string]any{"paused": why})
}

// Resume ends a pause. The schedule's rule for the end of pauses says what becomes of the ticks in between; the next tick of the answer is the first that is to
// run. ErrRefused if it is not paused.
func (c *Client) Resume(ctx context.Context, name string) (*Entry, error) {
	return answer(ctx, c.operate, func(v *verb) (*Entry, error) { return v.resume(ctx, name) })
}

// ResumeTx ends a pause when the caller's transaction commits.
func (c *Client) ResumeTx(ctx context.Context, tx pgx.Tx, name string) (*Entry, error) {
	return answer(ctx, c.within(tx), func(v *verb) (*Entry, error) { return v.resume(ctx, name) })
}

func (v *verb) resume(ctx context.Context, name string) (*Entry, error) {
	s, err := v.find(ctx, name)
	if unreadable, ok := errors.AsType[*unreadableError](err); ok {
		if err := v.resumeUnread(ctx, unreadable, name); err != nil {
			return nil, err
		}
		return v.c.get(ctx, v.tx, name)
	}
	if err != nil {
		return nil, err
	}
	if !s.Paused {
		return nil, notPaused(name)
	}
	if err := v.endPause(ctx, s); err != nil {
		return nil, fmt.Errorf("resume schedule %q: %w", name, err)
	}
	entry, err := v.c.get(ctx, v.tx, name)
	if err != nil || s.schedule.spec.Ticks == nil {
		return entry, err
	}
	first, err := s.firstAfterPause()
	entry.setNext(first)
	return entry, err
}

func notPaused(name string) error {
	return fmt.Errorf("resume schedule %q: %w: it is not paused", name, ErrRefused)
}

// firstAfterPause is the first tick that runs if a pause ends now; nil: none is to come.
func (s *subject) firstAfterPause() (at *time.Time, err error) {
	defer s.recover(&err)
	spec := &s.schedule.spec
	state := plan.Resume(spec, s.due.State, s.now).State
	first := state.Decided
	if cut := state.Cut.Add(-time.Microsecond); cut.After(first) {
		first = cut
	}
	t, ok := spec.Ticks.NextRun(first)
	if !ok || !spec.End.IsZero() && t.At.After(spec.End) {
		return nil, nil
	}
	return utc(&t.At), nil
}

func (v *verb) endPause(ctx context.Context, s *held) error {
	if !s.Paused {
		return nil
	}
	step := plan.Resume(&s.schedule.spec, s.due.State, s.now)
	if err := v.c.store.Resume(ctx, v.tx, s.schedule.id); err != nil {
		return err
	}
	err := v.c.store.WriteDue(ctx, v.tx, []store.Written{{Due: store.Due{ID: s.schedule.id, State: step.State}, Wake: step.Wake}})
	if err != nil {
		return err
	}
	return v.audit(ctx, "resume", s.schedule.name, map[string]any{"paused": s.PausedWhy}, nil)
}

// resumeUnread ends the pause of a schedule whose ticks only its owner's processes know, if what becomes of those of the pause needs no look at them.
func (v *verb) resumeUnread(ctx context.Context, unread *unreadableError, name string) error {
	entry, err := v.c.get(ctx, v.tx, name)
	if err != nil {
		return err
	}
	if entry.PausedAt == nil {
		return notPaused(name)
	}
	if entry.AfterPause != (Missed{}) && entry.AfterPause != MissedSkip {
		return fmt.Errorf("resume schedule %q: %w: which ticks of its pause run says %q, and what they are only the code of %q knows: resume it there",
			name, ErrRefused, entry.AfterPause, entry.Owner)
	}
	now, err := v.c.store.Now(ctx, v.tx)
	if err != nil {
		return err
	}
	due := unread.due
	due.State.Cut, due.State.CutUntil, due.State.Pause = now.Add(time.Microsecond), now, true
	if err := v.c.store.Resume(ctx, v.tx, due.ID); err != nil {
		return err
	}
	if err := v.c.store.WriteDue(ctx, v.tx, []store.Written{{Due: due, Wake: now}}); err != nil {
		return err
	}
	return v.audit(ctx, "resume", name, map[string]any{"paused": entry.PausedWhy}, nil)
}

// Deleted is a schedule as it was.
type Deleted struct {
	Entry

	Backfills int `json:"backfills_ended"` // that were running, and have ended with it
}

// Delete deletes a schedule, with its backfills, and returns what it was. Runs that were started go on; its ticks stay in the table until retention drops
// them. One that a service declares cannot be deleted by others: the service would make it anew.
func (c *Client) Delete(ctx context.Context, name string) (*Deleted, error) {
	return answer(ctx, c.operate, func(v *verb) (*Deleted, error) { return v.delete(ctx, name) })
}

// DeleteTx deletes a schedule when the caller's transaction commits.
func (c *Client) DeleteTx(ctx context.Context, tx pgx.Tx, name string) (*Deleted, error) {
	return answer(ctx, c.within(tx), func(v *verb) (*Deleted, error) { return v.delete(ctx, name) })
}

func (v *verb) delete(ctx context.Context, name string) (*Deleted, error) {
	id, err := v.c.store.ID(ctx, v.tx, name)
	if err != nil {
		return nil, err
	}
	dues, err := v.c.store.Lock(ctx, v.tx, id) // also one that cannot be read
	if err != nil {
		return nil, err
	}
	entry, err := v.c.get(ctx, v.tx, name)
	if err != nil {
		return nil, err
	}
	if entry.PausedWhy != PausedRemoved {
		if err := v.c.checkOwner(name, entry.Owner); err != nil {
			return nil, fmt.Errorf("delete schedule %q: %w", name, err)
		}
	}
	if len(dues) == 1 && !dues[0].State.Waiting.IsZero() {
		t := store.Tick{
			Schedule: entry.ID, At: dues[0].State.Waiting, Source: store.SourceClock, Outcome: store.Skipped, Reason: reasonDeleted,
			Actor: v.c.jobs.Actor(ctx),
		}
		if n, err := v.c.store.LastN(ctx, v.tx, t.Schedule, t.At); err != nil {
			return nil, err
		} else if n > 0 {
			t.N = n + 1
		}
		if err := v.c.store.WriteTicks(ctx, v.tx, []store.Tick{t}); err != nil {
			return nil, fmt.Errorf("delete schedule %q: %w", name, err)
		}
		v.after.add(&t, t.At)
	}
	deleted := &Deleted{Entry: *entry}
	backfills, err := v.c.store.Backfills(ctx, v.tx, name, 0, 0, maxLimit)
	if err != nil {
		return nil, fmt.Errorf("delete schedule %q: %w", name, err)
	}
	for i := range backfills {
		if backfills[i].Status == store.BackfillRunning {
			deleted.Backfills++
		}
	}
	if err := v.c.store.Delete(ctx, v.tx, entry.ID); err != nil {
		return nil, fmt.Errorf("delete schedule %q: %w", name, err)
	}
	return deleted, v.audit(ctx, "delete", name, entry.Schedule, nil)
}

// checkOwner refuses a change of what a service declares to all but that service.
func (c *Client) checkOwner(name, owner string) error {
	if owner == "" || owner == c.config.Owner {
		return nil
	}
	return &OwnedError{Name: name, Owner: owner}
}

// OwnedError is ErrOwned with the owner.
type OwnedError struct{ Name, Owner string }

func (e *OwnedError) Error() string {
	return fmt.Sprintf("schedule %q belongs to service %q: its code declares it, and there it is changed; it can be paused, resumed and triggered", e.Name, e.Owner)
}

// Is makes it ErrOwned.
func (e *OwnedError) Is(err error) bool { return err == ErrOwned }

// encode is how a schedule is stored.
func (s *Schedule) encode() ([]byte, error) {
	spec, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode schedule %q: %w", s.Name, err)
	}
	return spec, nil
}
