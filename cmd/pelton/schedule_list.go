package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/periodic"
)

func (a *app) scheduleList() *cobra.Command {
	p := periodic.ListParams{Limit: 100}
	var owner string
	var paused, active bool
	cmd := &cobra.Command{
		Use:     "list [PREFIX]",
		Short:   "List schedules by name, those whose names begin so",
		Example: "  pelton schedule list etl/ --paused",
		Args:    arguments(cobra.MaximumNArgs(1)),
	}
	cmd.RunE = brief(func(ctx context.Context, args []string) error {
		if err := checkLimit(p.Limit); err != nil {
			return err
		}
		if paused && active {
			return usagef("--paused and --active: no schedule is both")
		}
		if paused || active {
			p.Paused = &paused
		}
		if cmd.Flags().Changed("owner") {
			p.Owner = &owner
		}
		p.Prefix = strings.Join(args, "")
		return a.withSchedules(ctx, func(ctx context.Context, schedules *periodic.Client) error {
			entries, err := schedules.List(ctx, p)
			if err != nil {
				return err
			}
			if err := list(a, "NAME WHEN TARGET NEXT LAST STATE OWNER", entries, scheduleCells); err != nil {
				return err
			}
			if len(entries) == p.Limit {
				a.mayBeMore("after", shellWord(entries[len(entries)-1].Name))
			}
			return nil
		})
	})
	f := cmd.Flags()
	f.StringVar(&owner, "owner", "", "only those that this service declares; empty: only those of people")
	f.StringVar(&p.Kind, "kind", "", "only those that enqueue jobs of this kind")
	f.StringVar(&p.Flow, "flow", "", "only those that run this flow, `PROJECT/FLOW`, or flows of this project")
	f.BoolVar(&paused, "paused", false, "only those that are paused")
	f.BoolVar(&active, "active", false, "only those that are not")
	f.StringVar(&p.After, "after", "", "continue a list: the last `NAME` of it")
	f.IntVar(&p.Limit, "limit", p.Limit, "at most so many, 1 to 10,000")
	return cmd
}

func scheduleCells(e periodic.Entry) []any {
	last := "-"
	if t := e.LastTick; t != nil {
		last = periodic.InZone(t.At, e.TimeZone) + " " + outcomeWords(t)
	}
	return []any{e.Name, e.When(), e.What(), nextWords(&e), last, stateWords(&e), orDash(e.Owner)}
}

func stateWords(e *periodic.Entry) string {
	switch {
	case e.PausedAt != nil && e.PausedWhy == periodic.PausedRemoved:
		return "paused (removed)"
	case e.PausedAt != nil:
		return "paused"
	case e.Failures > 0:
		return fmt.Sprintf("failing (%d)", e.Failures)
	case e.Over():
		return "ended"
	}
	return "active"
}

func outcomeWords(t *periodic.Tick) string {
	if t.Reason == "" {
		return string(t.Outcome)
	}
	return string(t.Outcome) + " (" + t.Reason + ")"
}

func (a *app) scheduleShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a schedule, where it is, and what is to come", Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withSchedules(ctx, func(ctx context.Context, schedules *periodic.Client) error {
				e, err := schedules.Get(ctx, args[0])
				if err != nil {
					return err
				}
				return a.document(e, func(w io.Writer) { showSchedule(w, e) })
			})
		}),
	}
}

func showSchedule(w io.Writer, e *periodic.Entry) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, oneLine(value))
		}
	}
	at := func(t time.Time) string { return periodic.InZone(t, e.TimeZone) }
	row("schedule", e.Name)
	row("description", e.Description)
	row("when", e.When())
	row("starts", e.What())
	row("target", targetJSON(e))
	row("rules", rulesWords(e))
	row("owner", e.Owner)
	row("stored", fmt.Sprintf("%s, changed %s, version %d", at(e.CreatedAt), at(e.ChangedAt), e.Version))
	state := stateWords(e)
	if e.PausedAt != nil {
		state = fmt.Sprintf("%s since %s by %s", state, at(*e.PausedAt), orDash(e.PausedBy))
	}
	row("state", state)
	row("next", nextWords(e)+startsWords(e))
	if e.Waiting != nil {
		row("waits", at(*e.Waiting)+", "+waitWords(e))
	}
	switch {
	case e.LiveJob != nil:
		row("last run", "job "+strconv.FormatInt(*e.LiveJob, 10))
	case e.LiveRun != nil:
		row("last run", "run "+strconv.FormatInt(*e.LiveRun, 10))
	}
	if l := e.LastTick; l != nil {
		words := outcomeWords(l)
		if l.Note != "" {
			words += ": " + l.Note
		}
		row("last tick", at(l.At)+" "+words)
	}
	_ = t.Flush()
	if e.PausedAt != nil || e.NextAt == nil {
		return
	}
	if ticks, err := periodic.Preview(e.Schedule, *e.NextAt, showTicks); err == nil && len(ticks) > 0 {
		fmt.Fprintln(w, "\nto come:")
		printTicks(w, ticks)
	}
}

// waitWords is what a tick that waits may wait for.
func waitWords(e *periodic.Entry) string {
	if e.Code && (e.LiveJob == nil || e.Overlap == "") {
		return "for a process of " + e.Owner
	}
	return "for the end of the last run"
}

// showTicks is how many ticks to come show shows.
const showTicks = 5

func targetJSON(e *periodic.Entry) string {
	var target any = e.Job
	if e.Flow != nil {
		target = e.Flow
	}
	encoded, err := json.Marshal(target)
	if err != nil || string(encoded) == "null" {
		return ""
	}
	return string(encoded)
}

// rulesWords are the rules that are not the defaults.
func rulesWords(e *periodic.Entry) string {
	var words []string
	add := func(is bool, name string, value any) {
		if is {
			words = append(words, fmt.Sprintf("%s %v", name, value))
		}
	}
	add(e.Missed != (periodic.Missed{}), "missed", e.Missed)
	add(e.AfterPause != (periodic.Missed{}), "after-pause", e.AfterPause)
	add(e.Overlap != "", "overlap", e.Overlap)
	add(e.DSTGap != periodic.GapNext, "dst-gap", e.DSTGap)
	add(e.DSTOverlap != periodic.OverlapFirst, "dst-overlap", e.DSTOverlap)
	add(e.Grace != 0, "grace", e.Grace.Short())
	add(e.Spread != 0, "spread", e.Spread.Short())
	add(e.Jitter != 0, "jitter", e.Jitter.Short())
	if e.StartAt != nil {
		add(true, "start", periodic.InZone(*e.StartAt, e.TimeZone))
	}
	if e.EndAt != nil {
		add(true, "end", periodic.InZone(*e.EndAt, e.TimeZone))
	}
	return strings.Join(words, ", ")
}
