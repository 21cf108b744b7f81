package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

// scheduleFlags are a schedule on the command line.
type scheduleFlags struct {
	clock clockFlags
	run   runFlags // of a flow

	cron, at, start, end, phase string
	every, delay                time.Duration
	kind, args, metadata, flow  string
	tags                        []string
	maxAttempts                 int
	missed, afterPause, overlap string
	grace, spread, jitter       time.Duration
	description, queue          string
	priority                    int
}

func (s *scheduleFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&s.cron, "cron", "", "`expression`: cron with 5 fields, or 6 with seconds first, @daily and the like, or Quartz with 6 or 7 fields")
	f.DurationVar(&s.every, "every", 0, "fixed rate: a tick every so often, whatever is restarted when")
	f.StringVar(&s.phase, "phase", "", "a `time` of a tick of --every (default: when the schedule was first stored)")
	f.DurationVar(&s.delay, "delay", 0, "time from the end of the last run to the next")
	f.StringVar(&s.at, "at", "", "run once at this `time`")
	s.clock.flags(f, "--cron, and of times without one")
	f.StringVar(&s.start, "start", "", "no tick before this `time`")
	f.StringVar(&s.end, "end", "", "no tick after this `time`")
	f.StringVar(&s.kind, "kind", "", "enqueue a job of this kind")
	f.StringVar(&s.args, "args", "", "its args as `JSON`, or @FILE, or @- for stdin (default {})")
	f.StringVar(&s.metadata, "metadata", "", "its metadata, a `JSON` object")
	f.StringArrayVar(&s.tags, "tag", nil, "a tag of it; may be repeated")
	f.IntVar(&s.maxAttempts, "max-attempts", 0, "its attempts before it becomes a dead letter (default 25)")
	f.StringVar(&s.flow, "flow", "", "run this flow: `PROJECT/FLOW`")
	s.run.ofRun(f)
	f.StringVar(&s.queue, "queue", "", "queue of the job, or of the flow's jobs that have none of their own (default \"default\")")
	f.IntVar(&s.priority, "priority", 0, "of a job 1 (first) to 4 (default 1); of a flow among waiting runs, higher first (default 5)")
	f.StringVar(&s.missed, "missed", "", "ticks that nobody fired in time: `RULE` skip, latest, all:N or all:N:DURATION (default latest)")
	f.StringVar(&s.afterPause, "after-pause", "", "ticks of a pause, when it ends: the same `RULE`s (default skip)")
	f.DurationVar(&s.grace, "grace", 0, "how late a tick may be and still count as in time (default 1m)")
	f.StringVar(&s.overlap, "overlap", "", "a tick while the last run goes on: allow, skip, queue or cancel (default allow)")
	f.DurationVar(&s.spread, "spread", 0, "start later by a time below this, always the same for the schedule")
	f.DurationVar(&s.jitter, "jitter", 0, "start later by a time below this, another for each tick")
	f.StringVar(&s.description, "description", "", "words for people")
}

// schedule is what the flags say.
func (s *scheduleFlags) schedule(a *app, name string) (periodic.Schedule, error) {
	p := periodic.Schedule{
		Name: name, Description: s.description, Cron: s.cron, Every: periodic.Duration(s.every), Delay: periodic.Duration(s.delay),
		Grace: periodic.Duration(s.grace), Overlap: periodic.Overlap(s.overlap), Spread: periodic.Duration(s.spread), Jitter: periodic.Duration(s.jitter),
	}
	if err := s.clock.set(&p); err != nil {
		return p, err
	}
	if err := textFlag("missed", s.missed, &p.Missed); err != nil {
		return p, err
	}
	if err := textFlag("after-pause", s.afterPause, &p.AfterPause); err != nil {
		return p, err
	}
	if s.overlap != "" {
		if err := oneOf("--overlap", s.overlap, []string{"allow", "skip", "queue", "cancel"}); err != nil {
			return p, err
		}
	}
	for flag, t := range map[string]struct {
		text string
		into **time.Time
	}{"at": {s.at, &p.At}, "start": {s.start, &p.StartAt}, "end": {s.end, &p.EndAt}, "phase": {s.phase, &p.Phase}} {
		at, err := parseMoment(flag, t.text, s.clock.zone)
		if err != nil {
			return p, err
		}
		*t.into = at
	}
	return p, s.target(a, &p)
}

// target puts in what is to be started.
func (s *scheduleFlags) target(a *app, p *periodic.Schedule) error {
	switch {
	case s.kind != "" && s.flow != "":
		return usagef("--kind and --flow: a schedule starts one of them")
	case s.kind != "":
		job := &periodic.JobTarget{Kind: s.kind, Queue: s.queue, Priority: s.priority, MaxAttempts: s.maxAttempts, Tags: s.tags}
		if s.args != "" {
			args, err := a.readArgs(s.args)
			if err != nil {
				return err
			}
			job.Args = args
		}
		if err := document.CheckBuiltIn(s.kind, job.Args); err != nil {
			return usage(err)
		}
		if s.metadata != "" {
			if !json.Valid([]byte(s.metadata)) {
				return usagef("--metadata is not JSON: %s", s.metadata)
			}
			job.Metadata = json.RawMessage(s.metadata)
		}
		p.Job = job
	case s.flow != "":
		project, name, err := parseFlow(s.flow)
		if err != nil {
			return err
		}
		options, err := s.run.options()
		if err != nil {
			return err
		}
		options.Queue, options.Priority = s.queue, s.priority
		p.Flow = &periodic.FlowTarget{Project: project, Flow: name, Version: s.run.version, Options: options}
	default:
		return usagef("what is to be started? Name a job with --kind, or a flow with --flow PROJECT/FLOW")
	}
	return nil
}

// Flags of scheduleFlags that mean something to one target only.
var (
	jobOnly  = []string{"args", "metadata", "tag", "max-attempts"}
	flowOnly = []string{
		"version", "param", "node-param", "disable", "on-failure", "on-cancelled-end", "concurrent", "max-parallel", "job-priority", "sla",
		"notify-success", "notify-failure", "notify-first-failure",
	}
)

// checkTimes refuses flags that mean nothing to what gives the times.
func (s *scheduleFlags) checkTimes(f *pflag.FlagSet) error {
	if elapsed := s.every != 0 || strings.Contains(s.cron, "@every"); f.Changed("phase") && !elapsed {
		return usagef("--phase goes with --every; other times are what they say")
	}
	for _, name := range []string{"dst-gap", "dst-overlap"} {
		if f.Changed(name) && s.cron == "" {
			return usagef("--%s goes with --cron: to other times clock changes mean nothing", name)
		}
	}
	return nil
}

// checkTarget refuses flags of the other target.
func (s *scheduleFlags) checkTarget(f *pflag.FlagSet) error {
	for _, name := range jobOnly {
		if s.flow != "" && f.Changed(name) {
			return usagef("--%s goes with --kind; parameters of a flow are --param NAME=VALUE", name)
		}
	}
	for _, name := range flowOnly {
		if s.kind != "" && f.Changed(name) {
			return usagef("--%s goes with --flow; a job has --args", name)
		}
	}
	return nil
}

func (a *app) schedulePut() *cobra.Command {
	var s scheduleFlags
	cmd := &cobra.Command{
		Use:   "put NAME",
		Short: "Store a schedule, or change it",
		Long: `Store a schedule under a name, or change the one that has it: what is not given has its default, so the flags say all that there is to it.
Ticks that were due before the change follow the old rules, the next tick is counted from now on. Putting the same again changes nothing.

docs/schedules.md has the rules in full.`,
		Example: `  pelton schedule put nightly --cron "30 2 * * *" --tz America/New_York --flow etl/nightly --param day=today --overlap skip
  pelton schedule put heartbeat --every 30s --kind command --args '{"command":"curl -fsS https://example.com/up"}' --missed skip
  pelton schedule put report --cron "0 0 18 L * ?" --kind report --missed all:3:72h`,
		Args: arguments(cobra.ExactArgs(1)),
	}
	s.flags(cmd.Flags())
	cmd.RunE = brief(func(ctx context.Context, args []string) error {
		if err := positive(cmd.Flags(), "every", "delay", "grace", "spread", "jitter", "max-attempts", "version", "max-parallel"); err != nil {
			return err
		}
		if err := s.checkTarget(cmd.Flags()); err != nil {
			return err
		}
		if err := s.checkTimes(cmd.Flags()); err != nil {
			return err
		}
		p, err := s.schedule(a, args[0])
		if err != nil {
			return err
		}
		return a.withTargets(ctx, func(ctx context.Context, db database, flows *flow.Client, schedules *periodic.Client) error {
			result, err := schedules.Put(ctx, p)
			if err != nil {
				return err
			}
			if !a.json {
				a.hintTarget(ctx, db, flows, &p)
			}
			return a.document(result, func(w io.Writer) { fmt.Fprintln(w, putWords(result)) })
		})
	})
	return cmd
}

// hintTarget says so if what a schedule starts is not there yet. What cannot be looked up is not said.
func (a *app) hintTarget(ctx context.Context, db database, flows *flow.Client, s *periodic.Schedule) {
	if s.Job != nil {
		a.hintWorked(ctx, db.client, s.Job.Kind)
		return
	}
	if _, err := flows.Flows(ctx, s.Flow.Project); errors.Is(err, flow.ErrNotFound) {
		fmt.Fprintf(a.stderr, "pelton: there is no project %s: until it is pushed, the schedule's ticks fail\n", s.Flow.Project)
	}
}

// putWords says what a put did.
func putWords(r *periodic.PutResult) string {
	words := fmt.Sprintf("schedule %s %s", r.Schedule.Name, r.Change)
	if r.Change == periodic.Unchanged {
		words = fmt.Sprintf("schedule %s is unchanged", r.Schedule.Name)
	}
	switch {
	case r.Schedule.PausedAt != nil:
		return words + "; it is paused"
	case r.Schedule.NextAt != nil:
		return words + ", next " + nextWords(&r.Schedule) + startsWords(&r.Schedule)
	}
	return words
}

// startsWords is when a schedule's next tick starts, if that is later.
func startsWords(e *periodic.Entry) string {
	if e.StartsAt == nil {
		return ""
	}
	return ", starts " + periodic.InZone(*e.StartsAt, e.TimeZone)
}

// nextWords is a schedule's next tick.
func nextWords(e *periodic.Entry) string {
	if e.NextAt == nil {
		return "-"
	}
	return periodic.InZone(*e.NextAt, e.TimeZone)
}
