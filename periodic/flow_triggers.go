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

	"github.com/peltonq/pelton/jobs"
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

// CheckTriggers says what is wrong with the triggers of a project's flows, expressions by flow: those that SyncTriggers would refuse.
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

// SyncTriggers makes the schedules of a project's triggers those that it has now, expressions by flow. Each is named PROJECT/FLOW. One that is there
// keeps what people have set but for its times, and with zone its time zone; one whose trigger is gone is paused until it comes back. The error
// leaves those before it in step.
func (c *Client) SyncTriggers(ctx context.Context, project, zone string, triggers map[string]string) ([]TriggerChange, error) {
	ctx = jobs.WithActor(ctx, c.jobs.Actor(ctx)+byPush)
	var changes []TriggerChange
	for _, name := range slices.Sorted(maps.Keys(triggers)) {
		change, err := c.putTrigger(ctx, triggerSchedule(project, name), zone, triggerCron(triggers[name]))
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	var people string
	there, err := c.List(ctx, ListParams{Prefix: project + "/", Flow: project, Owner: &people, Limit: maxLimit})
	if err != nil {
		return changes, err
	}
	for i := range there {
		e := &there[i]
		if _, has := triggers[e.Flow.Flow]; has || e.TriggerCron == "" || e.PausedAt != nil || e.Name != project+"/"+e.Flow.Flow {
			continue
		}
		paused, err := c.Pause(ctx, e.Name)
		if err != nil {
			return changes, err
		}
		changes = append(changes, TriggerChange{Name: e.Name, Change: "paused: the flow has no trigger any more", Entry: paused, Paused: true})
	}
	return changes, nil
}

// putTrigger stores the schedule of a flow's trigger. Of one that is there it changes the times, and leaves what people have set; one that a push has paused
// goes on.
func (c *Client) putTrigger(ctx context.Context, s Schedule, zone, cron string) (TriggerChange, error) {
	note := ""
	there, err := c.Get(ctx, s.Name)
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
	result, err := c.PutTrigger(ctx, s)
	if err != nil {
		return TriggerChange{}, err
	}
	change, entry := string(result.Change), &result.Schedule
	if entry.PausedAt != nil && strings.HasSuffix(entry.PausedBy, byPush) {
		if entry, err = c.Resume(ctx, s.Name); err != nil {
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
