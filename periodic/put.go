package periodic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic/internal/plan"
)

// Change says what a put did.
type Change string

// What a put does.
const (
	Created   Change = "created"
	Changed   Change = "changed"
	Unchanged Change = "unchanged"
)

// PutResult is the answer to a put.
type PutResult struct {
	Change   Change `json:"change"`
	Schedule Entry  `json:"schedule"`
}

// InvalidScheduleError says everything that is wrong with a schedule. Nothing was stored.
type InvalidScheduleError struct {
	Name string
	Err  error
}

func (e *InvalidScheduleError) Error() string {
	text := e.Err.Error()
	if strings.Contains(text, "\n") {
		return fmt.Sprintf("schedule %q:\n  %s", e.Name, strings.ReplaceAll(text, "\n", "\n  "))
	}
	return fmt.Sprintf("schedule %q: %s", e.Name, text)
}

func (e *InvalidScheduleError) Unwrap() error { return e.Err }

// Check tells everything that is wrong with a schedule, an *InvalidScheduleError, as far as that can be told without the database.
func (c *Client) Check(s Schedule) error {
	s.normalize()
	_, err := c.compileNew(&s, 0, time.Now(), time.Now(), nil)
	return err
}

// Put stores a schedule, or changes the one of its name. Ticks that are due by then follow the old rules; the next tick is counted from now on. If nothing is
// different, nothing is changed. A schedule that is paused stays so; its ticks up to now are skipped if it is changed. Errors:
// *InvalidScheduleError, also if the flow's project is there and has no such flow, version or node; ErrOwned for a schedule that a service declares.
func (c *Client) Put(ctx context.Context, s Schedule) (*PutResult, error) {
	return c.putOf(ctx, s, nil)
}

// PutIf is Put for who has looked at the schedule before: seen is the edition of the Entry they saw, the zero Edition if there was none. If it is another one by
// now, nothing is stored and the error is an *EditionError.
func (c *Client) PutIf(ctx context.Context, s Schedule, seen Edition) (*PutResult, error) {
	return c.putOf(ctx, s, &seen)
}

func (c *Client) putOf(ctx context.Context, s Schedule, seen *Edition) (*PutResult, error) {
	if err := c.changeFirst(ctx, s, nil, seen); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		result, err := answer(ctx, c.operate, func(v *verb) (*PutResult, error) { return v.put(ctx, s, seen) })
		if !errors.Is(err, errTaken) || try == putTries {
			return result, err
		}
	}
}

// putTries bounds how often a put begins anew because others are quicker to store a schedule of the name.
const putTries = 10

var errTaken = errors.New("it was stored by somebody else just now; try again")

// PutTx is Put in the caller's transaction, which should be short: firers pass over the schedule until it ends.
func (c *Client) PutTx(ctx context.Context, tx pgx.Tx, s Schedule) (*PutResult, error) {
	return answer(ctx, c.within(tx), func(v *verb) (*PutResult, error) { return v.put(ctx, s, nil) })
}

// settleFirst settles what is due of a schedule in transactions of its own, so that not all of it is in that of the change.
func (c *Client) settleFirst(ctx context.Context, name string) error {
	return c.first(ctx, name, func(v *verb, s *held) (again bool, err error) {
		_, again, err = v.settleSome(ctx, s)
		return again, err
	})
}

// changeFirst is settleFirst for a change, which also has the ticks of a pause skipped. If there is nothing to change, or the change is refused, it
// skips none.
func (c *Client) changeFirst(ctx context.Context, to Schedule, code *coded, seen *Edition) error {
	to.normalize()
	return c.first(ctx, to.Name, func(v *verb, s *held) (again bool, err error) {
		if !s.Paused {
			_, again, err = v.settleSome(ctx, s)
			return again, err
		}
		_, same, err := s.compare(to, code)
		if err != nil || same || c.checkOwner(to.Name, s.schedule.owner) != nil || seen != nil && *seen != s.edition() {
			return false, err
		}
		if _, err := c.compileNew(&to, s.schedule.id, s.schedule.createdAt, s.now, code); err != nil {
			return false, nil //nolint:nilerr // the change itself says so
		}
		_, again, err = v.skipSome(ctx, s)
		return again, err
	})
}

// first does some of what has to be done before a change, in one transaction after the other, until there is no more.
func (c *Client) first(ctx context.Context, name string, some func(v *verb, s *held) (again bool, err error)) error {
	for again := true; again; {
		err := c.operate(ctx, func(v *verb) error {
			again = false
			s, err := v.seek(ctx, name)
			if _, unreadable := errors.AsType[*unreadableError](err); unreadable || s == nil {
				return nil // the verb itself says so
			}
			if err == nil {
				again, err = some(v, s)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// put is a put by people: what a service declares is not theirs. seen is the edition that it changes; nil: whichever there is.
func (v *verb) put(ctx context.Context, s Schedule, seen *Edition) (*PutResult, error) {
	s.normalize()
	there, err := v.c.get(ctx, v.tx, s.Name)
	if err == nil {
		err = v.c.checkOwner(s.Name, there.Owner)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	if err := v.checkFlow(ctx, &s); err != nil {
		return nil, err
	}
	found, err := v.seek(ctx, s.Name)
	if err != nil {
		return nil, fmt.Errorf("put schedule %q: %w", s.Name, err)
	}
	if is := found.edition(); seen != nil && is != *seen {
		return nil, &EditionError{s.Name, *seen, is}
	}
	_, change, err := v.store(ctx, found, s, "", nil)
	if err != nil {
		return nil, err
	}
	entry, err := v.c.get(ctx, v.tx, s.Name)
	if err != nil {
		return nil, err
	}
	return &PutResult{change, *entry}, nil
}

// checkFlow refuses what a project that is there does not have. One that is not there yet may be pushed before the first tick.
func (v *verb) checkFlow(ctx context.Context, s *Schedule) error {
	if v.c.flows == nil || s.Flow == nil || s.Flow.Project == "" || s.Flow.Flow == "" || s.Flow.Version < 0 {
		return nil
	}
	t := s.Flow
	_, err := v.c.flows.CheckRunTx(ctx, v.tx, flow.RunParams{Project: t.Project, Flow: t.Flow, Version: t.Version, Options: t.Options})
	_, invalid := errors.AsType[*flow.InvalidOptionsError](err)
	if invalid || errors.Is(err, flow.ErrNotFound) {
		return &InvalidScheduleError{s.Name, flowFaults(err)}
	}
	return err
}

// store stores a schedule under its name. found is the one that has it, and is locked; nil: there is none.
func (v *verb) store(ctx context.Context, found *held, s Schedule, owner string, code *coded) (*held, Change, error) {
	if found == nil {
		return v.create(ctx, s, owner, code)
	}
	return v.change(ctx, found, s, code)
}

// normalize leaves out what is the default anyway, so that schedules can be compared.
func (s *Schedule) normalize() {
	if s.Missed == MissedLatest {
		s.Missed = Missed{}
	}
	if s.AfterPause == MissedSkip {
		s.AfterPause = Missed{}
	}
	if s.Overlap == OverlapAllow {
		s.Overlap = ""
	}
	if s.TimeZone == "UTC" {
		s.TimeZone = ""
	}
	if time.Duration(s.Grace) == defaultGrace {
		s.Grace = 0
	}
	for _, at := range []**time.Time{&s.Phase, &s.At, &s.StartAt, &s.EndAt} {
		if *at != nil {
			t := (*at).UTC().Truncate(time.Microsecond)
			*at = &t
		}
	}
}

// compileNew checks a schedule that is to be stored.
func (c *Client) compileNew(s *Schedule, id int64, createdAt, now time.Time, code *coded) (*compiled, error) {
	made, err := s.compile(id, createdAt, now, code)
	if err == nil {
		err = made.check(c.jobs)
	}
	if err != nil {
		return nil, &InvalidScheduleError{s.Name, err}
	}
	made.code = code
	return made, nil
}

// begin is where a schedule starts that is new or was changed. One that would never fire is refused.
func begin(s *subject, made *compiled) (plan.Step, error) {
	var first time.Time
	if made.schedule.StartAt != nil {
		first = *made.schedule.StartAt
	}
	step, err := func() (step plan.Step, err error) {
		defer s.recover(&err)
		return plan.Renew(&made.spec, s.due.State, first, s.now), nil
	}()
	if err == nil && made.spec.Ticks != nil && step.State.Next.IsZero() && (made.code == nil || made.code.next == nil) {
		err = &InvalidScheduleError{made.name, made.never(s.now)}
	}
	return step, err
}

// never says why a schedule would never fire.
func (c *compiled) never(now time.Time) error {
	s := &c.schedule
	switch {
	case s.At != nil && !s.At.After(now):
		return fmt.Errorf("at: %s has passed", s.At.Format(time.RFC3339))
	case s.EndAt != nil && s.EndAt.Before(now):
		return fmt.Errorf("end: %s has passed", s.EndAt.Format(time.RFC3339))
	case s.EndAt != nil:
		return fmt.Errorf("end: no tick comes before %s", s.EndAt.Format(time.RFC3339))
	}
	return errors.New("no tick of it is to come")
}

// create stores a new schedule.
func (v *verb) create(ctx context.Context, s Schedule, owner string, code *coded) (*held, Change, error) {
	if _, err := v.c.compileNew(&s, 0, time.Now(), noTime, code); err != nil { // before a row is there
		return nil, "", err
	}
	spec, err := s.encode()
	if err != nil {
		return nil, "", err
	}
	id, added, err := v.c.store.Add(ctx, v.tx, s.Name, owner, codeOf(owner, s.Name, code), spec)
	if err != nil {
		return nil, "", fmt.Errorf("put schedule %q: %w", s.Name, err)
	}
	if !added { // somebody else was quicker
		return nil, "", fmt.Errorf("put schedule %q: %w", s.Name, errTaken)
	}
	dues, err := v.c.store.Lock(ctx, v.tx, id)
	if err != nil {
		return nil, "", err
	}
	found, err := v.read(ctx, dues[0])
	if err != nil {
		return nil, "", err
	}
	if _, err := v.c.compileNew(&s, id, found.schedule.createdAt, found.now, code); err != nil { // by the database's clock
		return nil, "", err
	}
	step, err := begin(found.subject, found.schedule)
	if err != nil {
		return nil, "", err
	}
	if err := v.place(ctx, found, step); err != nil {
		return nil, "", err
	}
	return found, Created, v.audit(ctx, "put", s.Name, nil, s)
}

// codeOf is what schedule_due.code says of a schedule.
func codeOf(owner, name string, code *coded) *string {
	if code == nil {
		return nil
	}
	key := codeKey(owner, name)
	return &key
}

// compare gives the spec of another schedule of this name, and tells whether that is the one that is stored.
func (h *held) compare(s Schedule, code *coded) (spec []byte, same bool, err error) {
	old := h.schedule.schedule
	old.Name = s.Name
	before, err := old.encode()
	if err != nil {
		return nil, false, err
	}
	spec, err = s.encode()
	return spec, err == nil && bytes.Equal(before, spec) && (code != nil) == h.Code, err
}

// change changes a schedule that is locked.
func (v *verb) change(ctx context.Context, found *held, s Schedule, code *coded) (*held, Change, error) {
	spec, same, err := found.compare(s, code)
	if err != nil {
		return nil, "", err
	}
	if same {
		return found, Unchanged, nil
	}
	old := found.schedule.schedule
	old.Name = s.Name
	made, err := v.c.compileNew(&s, found.schedule.id, found.schedule.createdAt, found.now, code)
	if err != nil {
		return nil, "", err
	}
	if found.Paused {
		found, err = v.skipPause(ctx, found)
	} else {
		found, err = v.settle(ctx, found)
	}
	if err != nil {
		return nil, "", err
	}
	step, err := begin(found.subject, made)
	if err != nil {
		return nil, "", err
	}
	if err := v.c.store.Change(ctx, v.tx, found.schedule.id, codeOf(found.schedule.owner, s.Name, code), spec); err != nil {
		return nil, "", fmt.Errorf("put schedule %q: %w", s.Name, err)
	}
	if err := v.place(ctx, found, step); err != nil {
		return nil, "", err
	}
	return found, Changed, v.audit(ctx, "put", s.Name, old, s)
}
