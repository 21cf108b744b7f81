package periodic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/periodic/internal/store"
)

// Declared is a schedule that a service's code declares: it is in Config.Schedules, and Start keeps the database in step with it.
type Declared struct {
	// Schedule is what is stored. Without times, Next gives them; without a target, Job makes the job.
	Schedule Schedule

	// Next gives times, instead of Schedule's: River's PeriodicSchedule, which robfig/cron's schedules are too. It is asked for the first time after a
	// given one, and must give the same answer in all processes. Only processes of the owner can fire such a schedule.
	Next river.PeriodicSchedule

	// Job makes the job of a tick, instead of Schedule's target: its args, and options or nil. It is called in a transaction that other schedules wait for, so
	// it must not block. Nil args: the tick is skipped, with the reason "none".
	Job river.PeriodicJobConstructor

	// RunOnStart starts a run beside the ticks whenever the client is started.
	RunOnStart bool

	fault error // found when it was made
}

// NewPeriodicJob is a twin of River's: what has been given to that can be given to this, and the result to Config.Schedules. The schedule's name is opts.ID, or
// the kind of what the constructor gives.
func NewPeriodicJob(schedule river.PeriodicSchedule, constructor river.PeriodicJobConstructor, opts *river.PeriodicJobOpts) *Declared {
	d := &Declared{Next: schedule, Job: constructor}
	if opts != nil {
		d.Schedule.Name, d.RunOnStart = opts.ID, opts.RunOnStart
	}
	switch {
	case schedule == nil:
		d.fault = errors.New("new periodic job: the schedule is nil")
	case constructor == nil:
		d.fault = errors.New("new periodic job: the constructor is nil")
	case d.Schedule.Name == "":
		args, _ := constructor()
		if args == nil {
			d.fault = errors.New("new periodic job: it has no ID, and the constructor gives no args whose kind could be its name")
			return d
		}
		d.Schedule.Name = args.Kind()
	}
	return d
}

// coded is what of it is in code alone; nil: nothing.
func (d *Declared) coded() *coded {
	if d.Next == nil && d.Job == nil {
		return nil
	}
	code := &coded{}
	if d.Next != nil {
		code.next = func(after time.Time) time.Time { return storable(after, d.Next.Next(after)) }
	}
	if d.Job != nil {
		code.target = func(time.Time) (*job, error) {
			args, opts := d.Job()
			if args == nil {
				return nil, nil //nolint:nilnil // nothing to start
			}
			return &job{args, opts}, nil
		}
	}
	return code
}

// storable is a function's answer, or the time that it was asked about, which means that there is none, if the answer is past all that can be stored: that is
// how River's NeverSchedule says never.
func storable(after, next time.Time) time.Time {
	if next.Year() > 9999 || next.Year() < 0 {
		return after
	}
	return next
}

// declare takes the schedules of the config. It joins all that is wrong with them.
func (c *Client) declare() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(c.config.Schedules) > 0 && c.config.Owner == "" {
		fault("schedules are declared without an owner: set Config.Owner to the service's name")
	}
	known := map[string]bool{}
	for i, d := range c.config.Schedules {
		switch {
		case d == nil:
			fault("declared schedule %d is nil", i)
			continue
		case d.fault != nil:
			faults = append(faults, d.fault)
			continue
		case known[d.Schedule.Name]:
			fault("schedule %q is declared twice", d.Schedule.Name)
			continue
		}
		known[d.Schedule.Name] = true
		s := d.Schedule
		s.normalize()
		code := d.coded()
		if _, err := c.compileNew(&s, 0, time.Now(), noTime, code); err != nil {
			faults = append(faults, err)
			continue
		}
		if code != nil {
			c.coded[codeKey(c.config.Owner, s.Name)] = code
		}
	}
	return errors.Join(faults...)
}

// sync makes the owner's schedules those that the code declares: it stores new ones, changes those that are different, pauses those that are not declared
// any more, and resumes those that had been paused for that. It touches nobody else's.
func (c *Client) sync(ctx context.Context) error {
	if c.config.Owner == "" {
		return nil
	}
	for _, d := range c.config.Schedules {
		if err := c.changeFirst(ctx, d.Schedule, c.coded[codeKey(c.config.Owner, d.Schedule.Name)], nil); err != nil {
			return fmt.Errorf("keep the schedules of %q in step: %w", c.config.Owner, err)
		}
	}
	err := c.operate(ctx, func(v *verb) error {
		if err := c.store.LockOwner(ctx, v.tx, c.config.Owner); err != nil {
			return err
		}
		owned, err := c.store.OwnedBy(ctx, v.tx, c.config.Owner)
		if err != nil {
			return err
		}
		declared := map[string]bool{}
		for _, d := range c.config.Schedules {
			declared[d.Schedule.Name] = true
			if err := v.syncOne(ctx, d); err != nil {
				return err
			}
		}
		for _, o := range owned {
			if declared[o.Name] || o.PausedWhy != "" {
				continue
			}
			if err := v.remove(ctx, o.Name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep the schedules of %q in step: %w", c.config.Owner, err)
	}
	return nil
}

// syncOne brings one declared schedule into step.
func (v *verb) syncOne(ctx context.Context, d *Declared) error {
	s := d.Schedule
	s.normalize()
	code := v.c.coded[codeKey(v.c.config.Owner, s.Name)]
	if err := v.checkName(ctx, s.Name); err != nil {
		return err
	}
	found, err := v.seek(ctx, s.Name)
	var change Change
	if unreadable, ok := errors.AsType[*unreadableError](err); ok {
		found, err = v.replace(ctx, unreadable.due, s, code)
	} else if err == nil {
		found, change, err = v.store(ctx, found, s, v.c.config.Owner, code)
	}
	if err != nil {
		return err
	}
	if found.PausedWhy == string(PausedRemoved) {
		if err := v.endPause(ctx, found); err != nil {
			return err
		}
	}
	if change == Unchanged && code != nil && !found.Paused {
		if err := v.lookAgain(ctx, found); err != nil {
			return err
		}
	}
	if !d.RunOnStart || found.PausedWhy == string(PausedByPerson) {
		return nil
	}
	_, err = v.trigger(ctx, s.Name)
	return err
}

// checkName refuses a name that others have.
func (v *verb) checkName(ctx context.Context, name string) error {
	rows, err := v.c.store.Schedules(ctx, v.tx, store.ScheduleFilter{Name: &name, Limit: 1})
	if err != nil || len(rows) == 0 || rows[0].Owner == v.c.config.Owner {
		return err
	}
	whose := "people"
	if rows[0].Owner != "" {
		whose = fmt.Sprintf("service %q", rows[0].Owner)
	}
	return fmt.Errorf("schedule %q is there already and belongs to %s: give this one another name: %w", name, whose, ErrOwned)
}

// replace puts a schedule in the place of one that other code had declared: its functions are gone, so nothing of it can be settled.
func (v *verb) replace(ctx context.Context, due store.Due, s Schedule, code *coded) (*held, error) {
	spec, err := s.encode()
	if err != nil {
		return nil, err
	}
	if err := v.c.store.Change(ctx, v.tx, due.ID, codeOf(v.c.config.Owner, s.Name, code), spec); err != nil {
		return nil, err
	}
	found, err := v.read(ctx, due)
	if err != nil {
		return nil, err
	}
	step, err := begin(found.subject, found.schedule)
	if err != nil {
		return nil, err
	}
	if err := v.place(ctx, found, step); err != nil {
		return nil, err
	}
	return found, v.audit(ctx, "put", s.Name, nil, s)
}

// lookAgain has a firer look at a schedule at once: its function may be another one than before, and name a sooner time.
func (v *verb) lookAgain(ctx context.Context, s *held) error {
	d, err := s.decide(settleTicks)
	if err != nil {
		return err
	}
	_, err = v.apply(ctx, d)
	return err
}

// remove pauses a schedule that is not declared any more.
func (v *verb) remove(ctx context.Context, name string) error {
	entry, err := v.c.get(ctx, v.tx, name)
	if err != nil {
		return err
	}
	if !entry.Code {
		s, err := v.find(ctx, name)
		if err != nil {
			return err
		}
		return v.pauseFor(ctx, s, PausedRemoved)
	}
	// What its function named is not known any more: nothing can be settled.
	dues, err := v.c.store.Lock(ctx, v.tx, entry.ID)
	if err != nil || len(dues) == 0 {
		return err
	}
	return v.pauseRow(ctx, dues[0], name, PausedRemoved, nil)
}
