package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/internal/span"
	"github.com/peltonq/pelton/periodic"
)

// scheduleVerb makes a command that does something to a schedule.
func (a *app) scheduleVerb(
	use, short string, do func(ctx context.Context, schedules *periodic.Client, name string) (*periodic.Entry, error), words func(*periodic.Entry) string,
) *cobra.Command {
	return &cobra.Command{
		Use: use + " NAME", Short: short, Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withSchedules(ctx, func(ctx context.Context, schedules *periodic.Client) error {
				e, err := do(ctx, schedules, args[0])
				if err != nil {
					return err
				}
				return a.document(e, func(w io.Writer) { fmt.Fprintf(w, "schedule %s %s\n", e.Name, words(e)) })
			})
		}),
	}
}

func (a *app) schedulePause() *cobra.Command {
	return a.scheduleVerb("pause", "Have no more ticks of a schedule run until it is resumed", func(ctx context.Context, c *periodic.Client, name string) (*periodic.Entry, error) {
		return c.Pause(ctx, name)
	}, func(*periodic.Entry) string { return "is paused" })
}

func (a *app) scheduleResume() *cobra.Command {
	return a.scheduleVerb("resume", "End a pause; --after-pause of the schedule says what becomes of the ticks in between",
		func(ctx context.Context, c *periodic.Client, name string) (*periodic.Entry, error) {
			return c.Resume(ctx, name)
		},
		func(e *periodic.Entry) string { return "goes on, next " + nextWords(e) + startsWords(e) })
}

func (a *app) scheduleDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Delete a schedule, with its backfills; what it started goes on", Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withSchedules(ctx, func(ctx context.Context, schedules *periodic.Client) error {
				d, err := schedules.Delete(ctx, args[0])
				if err != nil {
					return err
				}
				return a.document(d, func(w io.Writer) { fmt.Fprintf(w, "schedule %s is deleted%s\n", d.Name, endedBackfills(d.Backfills)) })
			})
		}),
	}
}

// endedBackfills says how many backfills have ended with their schedule.
func endedBackfills(n int) string {
	if n == 0 {
		return ""
	}
	return "; " + quantity.Say(n, "1 backfill ends with it: what it has started goes on", "%d backfills end with it: what they have started goes on")
}

func (a *app) scheduleTrigger() *cobra.Command {
	return &cobra.Command{
		Use: "trigger NAME", Short: "Have a schedule start a run now, beside its ticks; its rule for overlaps holds", Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withSchedules(ctx, func(ctx context.Context, schedules *periodic.Client) error {
				r, err := schedules.Trigger(ctx, args[0])
				if err != nil {
					return err
				}
				if err := a.document(r, func(w io.Writer) { fmt.Fprintf(w, "schedule %s: %s\n", args[0], triggerWords(r)) }); err != nil {
					return err
				}
				switch {
				case r.Tick == nil:
				case r.Tick.Outcome == periodic.TickFailed:
					return fmt.Errorf("the run could not be started: %s: %s", r.Tick.Reason, r.Tick.Note)
				case r.Tick.Outcome == periodic.TickSkipped:
					return refused(fmt.Errorf("schedule %s starts no run now: %s", args[0], outcomeWords(r.Tick)))
				}
				return nil
			})
		}),
	}
}

func triggerWords(r *periodic.Triggered) string {
	switch {
	case r.Waits && r.Owner != "":
		return "the run waits for a process of " + r.Owner
	case r.Waits:
		return "the run waits for the end of the last one"
	case r.Tick.JobID != nil:
		return fmt.Sprintf("job %d", *r.Tick.JobID)
	case r.Tick.RunID != nil:
		return fmt.Sprintf("run %d", *r.Tick.RunID)
	}
	return outcomeWords(r.Tick)
}

func (a *app) scheduleTicks() *cobra.Command {
	var p periodic.TicksParams
	var outcome, source, since, until string
	limit := 50
	cmd := &cobra.Command{
		Use:     "ticks NAME",
		Short:   "List what became of a schedule's ticks, the latest first",
		Example: "  pelton schedule ticks nightly --outcome skipped --since 72h",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) (err error) {
			if err := checkLimit(limit); err != nil {
				return err
			}
			if err := wordFlag("outcome", outcome, periodic.Outcomes()); err != nil {
				return err
			}
			if err := wordFlag("source", source, periodic.Sources()); err != nil {
				return err
			}
			p.Limit, p.Outcome, p.Source = limit, periodic.Outcome(outcome), periodic.Source(source)
			return a.withSchedules(ctx, func(ctx context.Context, schedules *periodic.Client) error {
				e, err := schedules.Get(ctx, args[0])
				if err != nil {
					return err
				}
				if p.Since, err = parsePastIn("since", since, e.TimeZone); err != nil {
					return err
				}
				if p.Until, err = parsePastIn("until", until, e.TimeZone); err != nil {
					return err
				}
				result, err := schedules.Ticks(ctx, args[0], p)
				if err != nil {
					return err
				}
				ticks, err := schedules.TickStates(ctx, result.Ticks)
				if err != nil {
					return err
				}
				cells := func(t periodic.TickState) []any { return tickCells(t, e.TimeZone) }
				if err := list(a, "AT N SOURCE OUTCOME REASON RUN STATE DECIDED NOTE", ticks, cells); err != nil {
					return err
				}
				if result.Cursor != "" {
					a.mayBeMore("after", result.Cursor)
				}
				return nil
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&outcome, "outcome", "", "only fired, skipped or failed ones")
	f.StringVar(&source, "source", "", "only those of the clock, by trigger, or of a backfill")
	f.Int64Var(&p.Backfill, "backfill", 0, "only those of this backfill")
	f.StringVar(&since, "since", "", "only from this time on: RFC 3339, a date or a date and time in the schedule's time zone, or a duration back as 2h or 10d")
	f.StringVar(&until, "until", "", "only before this time: the same")
	f.StringVar(&p.After, "after", "", "continue a list: the `CURSOR` that it printed on stderr")
	f.IntVar(&limit, "limit", limit, "at most so many, 1 to 10,000")
	return cmd
}

// parsePastIn is parseMoment, and takes a duration back from now too; empty is the zero time.
func parsePastIn(flag, text, zone string) (time.Time, error) {
	if d, err := span.Parse(strings.TrimPrefix(text, "-")); err == nil {
		return time.Now().Add(-d), nil
	}
	at, err := parseMoment(flag, text, zone)
	if err != nil {
		return time.Time{}, usagef("%w, or a duration back from now as 2h or 10d", err)
	}
	if at == nil {
		return time.Time{}, nil
	}
	return *at, nil
}

// wordFlag refuses a word that a flag does not know.
func wordFlag[W ~string](flag, word string, known []W) error {
	if word == "" {
		return nil
	}
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	return oneOf("--"+flag, word, words)
}

func tickCells(t periodic.TickState, zone string) []any {
	run := "-"
	switch {
	case t.JobID != nil:
		run = "job " + strconv.FormatInt(*t.JobID, 10)
	case t.RunID != nil:
		run = "run " + strconv.FormatInt(*t.RunID, 10)
	}
	note := t.Note
	if t.Wall != nil {
		note = "wall " + t.Wall.Format(time.DateTime) + " " + note
	}
	return []any{periodic.InZone(t.At, zone), t.N, t.Source, t.Outcome, orDash(t.Reason), run, orDash(t.State), periodic.InZone(t.DecidedAt, zone), note}
}
