package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

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

// pushed is what became of a push.
type pushed struct {
	*flow.PushReport

	Schedules []periodic.TriggerChange `json:"schedules,omitempty"`
	Stranded  []periodic.Stranded      `json:"stranded,omitempty"`
}

// changeWords says what a push did to a schedule.
func changeWords(c *periodic.TriggerChange) string {
	words := c.Change
	switch {
	case c.Paused:
	case c.Entry.PausedAt != nil:
		words += "; it is paused"
	case c.NextAt != nil:
		words += ", next " + nextWords(c.Entry)
	}
	if c.Note != "" {
		words += "; " + c.Note
	}
	return words
}

// push checks a project, or stores it and keeps the schedules of its flows' triggers in step, or stores nothing.
func (a *app) push(ctx context.Context, db database, flows *flow.Client, t triggerFlags, project, path string, check bool) error {
	schedules, err := periodic.NewClient(db.pool, db.client, flows, &periodic.Config{Logger: a.logger(levelQuiet), SchedulerOff: true})
	if err != nil {
		return err
	}
	var p pushed
	if check || t.with {
		p.PushReport, err = flows.Check(ctx, path)
	}
	if err == nil && check && project != "" {
		p.Stranded, err = schedules.Stranded(ctx, project, p.Flows)
	}
	if err == nil && t.with && !check {
		if err := schedules.CheckTriggers(project, p.Triggers); err != nil {
			return usage(err)
		}
	}
	if err != nil || check {
		return a.printPush(project, t, p, err)
	}
	var with []flow.InPush
	if t.with {
		with = append(with, schedules.InPush(project, t.zone, &p.Schedules))
	}
	p.PushReport, err = flows.Push(ctx, project, path, append(with, schedules.StrandedInPush(project, &p.Stranded))...)
	if _, faults := errors.AsType[*flow.FaultsError](err); err != nil && !faults && t.with {
		return scheduleError(fmt.Errorf("nothing was stored: %w", err))
	}
	return a.printPush(project, t, p, err)
}

// dropTriggerNotes drops the notes that a trigger starts nothing without a flag that was given.
func dropTriggerNotes(report *flow.PushReport) {
	report.Notes = slices.DeleteFunc(report.Notes, func(n flow.Fault) bool { return strings.Contains(n.Reason, "--with-schedule") })
}
