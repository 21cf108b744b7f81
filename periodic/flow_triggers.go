package periodic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

// TriggerChange is what became of the schedule of a flow's trigger.
type TriggerChange struct {
	Name   string     `json:"name"`
	Change string     `json:"change"` // created, changed, unchanged, resumed, or paused and why
	NextAt *time.Time `json:"next_at"`
	Note   string     `json:"note,omitempty"` // what of a person's it has replaced
	Entry  *Entry     `json:"-"`              // as it is now
	Paused bool       `json:"-"`              // this has paused it
}

// ofTrigger is the description of schedules that a push makes; byPush ends the name of who paused one.
const (
	ofTrigger = "from the trigger of the flow"
	byPush    = ", by flow push"
)

// CheckTrigger says what is wrong with the expression of a flow's trigger.
func CheckTrigger(expression string) error {
	_, err := Preview(Schedule{Cron: triggerCron(expression)}, time.Now(), 1)
	return err
}

// triggerCron is a trigger's expression: Azkaban's are Quartz.
func triggerCron(text string) string {
	if strings.HasPrefix(text, "quartz:") || strings.HasPrefix(text, "cron:") {
		return text
	}
	return "quartz:" + text
}

// triggerSchedule is the schedule PROJECT/FLOW of a flow's trigger.
func triggerSchedule(project, name string) Schedule {
	return Schedule{Name: project + "/" + name, Description: ofTrigger, Flow: &FlowTarget{Project: project, Flow: name}}
}

// CheckTriggers says what is wrong with the triggers of a project's flows, expressions by flow: those that a push with InPush would refuse.
func (c *Client) CheckTriggers(project string, triggers map[string]string) error {
	var f faults
	for _, name := range slices.Sorted(maps.Keys(triggers)) {
		s := triggerSchedule(project, name)
		s.Cron = triggerCron(triggers[name])
		if err := c.Check(s); err != nil {
			f.add("the trigger of flow %s, %q: %w", name, triggers[name], err)
		}
	}
	return errors.Join(f...)
}

// InPush makes the schedules of a project's triggers those that it has now, in the transaction of a push of it: all of it is stored, or nothing. Each
// is named PROJECT/FLOW. One that is there keeps what people have set but for its times, and with zone its time zone; one whose trigger is gone is paused
// until it comes back. A name that is taken by a schedule of something else is ErrRefused. What becomes of them is put into changes.
func (c *Client) InPush(project, zone string, changes *[]TriggerChange) flow.InPush {
	return flow.InPush{
		Lock: func(ctx context.Context, tx pgx.Tx, _ *flow.PushReport) error {
			return c.lockTriggers(ctx, tx, project)
		},
		Then: func(ctx context.Context, tx pgx.Tx, report *flow.PushReport) (err error) {
			ctx = jobs.WithActor(ctx, c.jobs.Actor(ctx)+byPush)
			*changes, err = answer(ctx, c.within(tx), func(v *verb) ([]TriggerChange, error) { return v.syncTriggers(ctx, project, zone, report.Triggers) })
			return err
		},
	}
}

// ofProject lists the schedules of a project's flows that people keep and a push may change.
func (c *Client) ofProject(ctx context.Context, tx pgx.Tx, project string) ([]Entry, error) {
	var people string
	return c.list(ctx, tx, ListParams{Prefix: project + "/", Flow: project, Owner: &people, Limit: maxLimit})
}

// lockTriggers locks them.
func (c *Client) lockTriggers(ctx context.Context, tx pgx.Tx, project string) error {
	there, err := c.ofProject(ctx, tx, project)
	if err != nil {
		return err
	}
	ids := make([]int64, len(there))
	for i := range there {
		ids[i] = there[i].ID
	}
	_, err = c.store.Lock(ctx, tx, ids...)
	return err
}

func (v *verb) syncTriggers(ctx context.Context, project, zone string, triggers map[string]string) ([]TriggerChange, error) {
	var changes []TriggerChange
	for _, name := range slices.Sorted(maps.Keys(triggers)) {
		change, err := v.putTrigger(ctx, triggerSchedule(project, name), zone, triggerCron(triggers[name]))
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	there, err := v.c.ofProject(ctx, v.tx, project)
	if err != nil {
		return nil, err
	}
	for i := range there {
		e := &there[i]
		if _, has := triggers[e.Flow.Flow]; has || e.TriggerCron == "" || e.PausedAt != nil || e.Name != project+"/"+e.Flow.Flow {
			continue
		}
		paused, err := v.pause(ctx, e.Name)
		if err != nil {
			return nil, err
		}
		changes = append(changes, TriggerChange{Name: e.Name, Change: "paused: the flow has no trigger any more", Entry: paused, Paused: true})
	}
	return changes, nil
}

// putTrigger stores the schedule of a flow's trigger. Of one that is there it changes the times, and leaves what people have set; one that a push has paused
// goes on. The expression is noted beside the schedule, as its TriggerCron, where no other put changes it: so the next push knows its schedule, and whether
// somebody has changed the times since.
func (v *verb) putTrigger(ctx context.Context, s Schedule, zone, cron string) (TriggerChange, error) {
	note := ""
	there, err := v.c.get(ctx, v.tx, s.Name)
	switch {
	case err == nil && (there.Flow == nil || there.Flow.Project != s.Flow.Project || there.Flow.Flow != s.Flow.Flow):
		return TriggerChange{}, fmt.Errorf("%w: schedule %q is there already and starts something else: rename or delete it", ErrRefused, s.Name)
	case err == nil:
		note = replaced(there, cron)
		s = there.Schedule
		s.Every, s.Delay, s.At, s.Phase = 0, 0, nil, nil
	case !errors.Is(err, ErrNotFound):
		return TriggerChange{}, err
	}
	s.Cron, s.TimeZone = cron, cmp.Or(zone, s.TimeZone)
	result, err := v.put(ctx, s, nil)
	if err != nil {
		return TriggerChange{}, err
	}
	change, entry := string(result.Change), &result.Schedule
	if err := v.c.store.MarkTrigger(ctx, v.tx, entry.ID, cron); err != nil {
		return TriggerChange{}, err
	}
	entry.TriggerCron = cron
	if entry.PausedAt != nil && strings.HasSuffix(entry.PausedBy, byPush) {
		if entry, err = v.resume(ctx, s.Name); err != nil {
			return TriggerChange{}, err
		}
		change = "resumed"
	}
	return TriggerChange{Name: s.Name, Change: change, NextAt: entry.NextAt, Note: note, Entry: entry}, nil
}

// replaced says which times of a person's a trigger's take the place of; empty: of none.
func replaced(e *Entry, cron string) string {
	if e.Cron == cron || e.TriggerCron != "" && e.Cron == e.TriggerCron {
		return ""
	}
	return "the trigger's times take the place of those that somebody has put: " + e.When()
}
