package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

// triggerFlags say what a push does with the schedules of flows' triggers.
type triggerFlags struct {
	with bool
	zone string
}

func (t *triggerFlags) flags(f *pflag.FlagSet) {
	f.BoolVar(&t.with, "with-schedule", false, "make a schedule PROJECT/FLOW of the schedule that a flow's trigger names, and keep it in step")
	f.StringVar(&t.zone, "tz", "", "with --with-schedule: time `zone` of these schedules (default: that which they have, or UTC)")
}

func (t *triggerFlags) validate() error {
	if t.zone != "" && !t.with {
		return usagef("--tz goes with --with-schedule")
	}
	if _, err := time.LoadLocation(t.zone); err != nil {
		return usagef("--tz: unknown time zone %q: want an IANA name as Europe/Berlin", t.zone)
	}
	return nil
}

// pushJSON is the answer to a push.
type pushJSON struct {
	*flow.PushReport

	Schedules []pushedSchedule `json:"schedules,omitempty"`
}

// pushedSchedule is what a push did to a schedule.
type pushedSchedule struct {
	Name   string     `json:"name"`
	Change string     `json:"change"` // created, changed, unchanged, paused, resumed
	NextAt *time.Time `json:"next_at"`
	Note   string     `json:"note,omitempty"` // what of a person's it has replaced

	entry *periodic.Entry
}

func (p *pushedSchedule) words() string {
	words := p.Change
	switch {
	case strings.HasPrefix(p.Change, pausedByPush):
	case p.entry.PausedAt != nil:
		words += "; it is paused"
	case p.NextAt != nil:
		words += ", next " + nextWords(p.entry)
	}
	if p.Note != "" {
		words += "; " + p.Note
	}
	return words
}

// ofTrigger is the description of schedules that a push makes; pausedByPush begins its word for one that it pauses; byPush ends the name of who paused one.
const (
	ofTrigger    = "from the trigger of the flow"
	pausedByPush = "paused: "
	byPush       = ", by flow push"
)

// pushWithSchedules pushes a project and keeps the schedules of its flows' triggers in step. Nothing is stored if one of these is wrong.
func (a *app) pushWithSchedules(ctx context.Context, db database, flows *flow.Client, t triggerFlags, project, path string) error {
	schedules, err := periodic.NewClient(db.pool, db.client, flows, &periodic.Config{Logger: a.logger(levelQuiet), SchedulerOff: true})
	if err != nil {
		return err
	}
	checked, err := flows.Check(ctx, path)
	if err != nil {
		return a.printPush(project, checked, nil, err)
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(checked.Triggers)) {
		s := periodic.Schedule{Name: project + "/" + name, Cron: triggerCron(checked.Triggers[name]), Flow: &periodic.FlowTarget{Project: project, Flow: name}}
		if err := schedules.Check(s); err != nil {
			faults = append(faults, fmt.Errorf("the trigger of flow %s, %q: %w", name, checked.Triggers[name], err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return usage(err)
	}
	report, err := flows.Push(ctx, project, path)
	if err != nil {
		return a.printPush(project, report, nil, err)
	}
	dropTriggerNotes(report)
	changes, err := syncTriggers(jobs.WithActor(ctx, db.client.Actor(ctx)+byPush), schedules, t, project, report)
	if err != nil {
		err = scheduleError(fmt.Errorf("the project was pushed, but not all of its schedules are in step: %w", err))
	}
	return errors.Join(a.printPush(project, report, changes, nil), err)
}

// checkTrigger says what is wrong with a trigger's expression.
func checkTrigger(expression string) error {
	_, err := periodic.Preview(periodic.Schedule{Cron: triggerCron(expression)}, time.Now(), 1)
	return err
}

// dropTriggerNotes drops the notes that a trigger starts nothing without a flag that was given.
func dropTriggerNotes(report *flow.PushReport) {
	report.Notes = slices.DeleteFunc(report.Notes, func(n flow.Fault) bool { return strings.Contains(n.Reason, "--with-schedule") })
}

// triggerCron is a trigger's expression: Azkaban's are Quartz.
func triggerCron(text string) string {
	if strings.HasPrefix(text, "quartz:") || strings.HasPrefix(text, "cron:") {
		return text
	}
	return "quartz:" + text
}

// syncTriggers makes the schedules of a project's triggers those that it has now.
func syncTriggers(ctx context.Context, c *periodic.Client, t triggerFlags, project string, report *flow.PushReport) ([]pushedSchedule, error) {
	var changes []pushedSchedule
	for _, name := range slices.Sorted(maps.Keys(report.Triggers)) {
		change, err := putTrigger(ctx, c, t, project, name, triggerCron(report.Triggers[name]))
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	var people string
	there, err := c.List(ctx, periodic.ListParams{Prefix: project + "/", Flow: project, Owner: &people, Limit: 10_000})
	if err != nil {
		return changes, err
	}
	for i := range there {
		e := &there[i]
		if _, has := report.Triggers[e.Flow.Flow]; has || e.TriggerCron == "" || e.PausedAt != nil || e.Name != project+"/"+e.Flow.Flow {
			continue
		}
		paused, err := c.Pause(ctx, e.Name)
		if err != nil {
			return changes, err
		}
		changes = append(changes, pushedSchedule{Name: e.Name, Change: pausedByPush + "the flow has no trigger any more", entry: paused})
	}
	return changes, nil
}

// putTrigger stores the schedule of a flow's trigger. Of one that is there it changes the times, and leaves what people have set; one that a push has paused goes on.
func putTrigger(ctx context.Context, c *periodic.Client, t triggerFlags, project, name, cron string) (pushedSchedule, error) {
	s := periodic.Schedule{Name: project + "/" + name, Description: ofTrigger, Flow: &periodic.FlowTarget{Project: project, Flow: name}}
	note := ""
	there, err := c.Get(ctx, s.Name)
	switch {
	case err == nil && (there.Flow == nil || there.Flow.Project != project || there.Flow.Flow != name):
		return pushedSchedule{}, refused(fmt.Errorf("schedule %q is there already and starts something else: rename or delete it", s.Name))
	case err == nil:
		note = replaced(there, cron)
		s = there.Schedule
		s.Every, s.Delay, s.At, s.Phase = 0, 0, nil, nil
	case !errors.Is(err, periodic.ErrNotFound):
		return pushedSchedule{}, err
	}
	s.Cron = cron
	if t.zone != "" {
		s.TimeZone = t.zone
	}
	result, err := c.PutTrigger(ctx, s)
	if err != nil {
		return pushedSchedule{}, err
	}
	change, entry := string(result.Change), &result.Schedule
	if entry.PausedAt != nil && strings.HasSuffix(entry.PausedBy, byPush) {
		if entry, err = c.Resume(ctx, s.Name); err != nil {
			return pushedSchedule{}, err
		}
		change = "resumed"
	}
	return pushedSchedule{Name: s.Name, Change: change, NextAt: entry.NextAt, Note: note, entry: entry}, nil
}

// replaced says which times of a person's a trigger's take the place of; empty: of none.
func replaced(e *periodic.Entry, cron string) string {
	if e.Cron == cron || e.TriggerCron != "" && e.Cron == e.TriggerCron {
		return ""
	}
	return "the trigger's times take the place of those that somebody has put: " + whenWords(e)
}
