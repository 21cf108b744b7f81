package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/periodic"
)

// clockFlags say how an expression is read.
type clockFlags struct {
	zone, gap, overlap string
}

func (c *clockFlags) flags(f *pflag.FlagSet, of string) {
	f.StringVar(&c.zone, "tz", "", "time `zone` of "+of+", as Europe/Berlin (default UTC)")
	f.StringVar(&c.gap, "dst-gap", "", "a time that is left out when clocks go forward: next runs it at the first moment after, skip does not run it (default next)")
	f.StringVar(&c.overlap, "dst-overlap", "", "a time that is shown twice when clocks go back runs: first, last or both times (default first)")
}

// set puts the flags into a schedule.
func (c *clockFlags) set(s *periodic.Schedule) error {
	s.TimeZone = c.zone
	if err := textFlag("dst-gap", c.gap, &s.DSTGap); err != nil {
		return err
	}
	return textFlag("dst-overlap", c.overlap, &s.DSTOverlap)
}

// textFlag reads a flag that has a text form of its own; empty leaves the default.
func textFlag(name, text string, into interface{ UnmarshalText(text []byte) error }) error {
	if text == "" {
		return nil
	}
	if err := into.UnmarshalText([]byte(text)); err != nil {
		return usagef("--%s: %w", name, err)
	}
	return nil
}

func (a *app) schedulePreview() *cobra.Command {
	var clock clockFlags
	var from string
	n := 20
	cmd := &cobra.Command{
		Use:   `preview "EXPR"`,
		Short: "Show when an expression's ticks come, and what clock changes do to them",
		Long: `Show the ticks of an expression from a time on: cron with 5 fields, 6 with seconds first, @daily and the like, @every 10m, or Quartz
with 6 or 7 fields. Where a zone's clock is changed, ticks that are moved are marked, and so are those that are dropped: these do not run, but
are listed and counted. No database is asked.`,
		Example: `  pelton schedule preview "30 2 * * *" --tz America/New_York --from 2026-03-06 -n 5
  pelton schedule preview "0 0 18 L * ?" --tz Europe/Berlin --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(_ context.Context, args []string) error {
			s := periodic.Schedule{Cron: args[0]}
			if err := clock.set(&s); err != nil {
				return err
			}
			begin, err := parseMoment("from", from, clock.zone)
			if err != nil {
				return err
			}
			if begin == nil {
				now := time.Now()
				begin = &now
			}
			ticks, err := periodic.Preview(s, *begin, n)
			if err != nil {
				return usage(err)
			}
			return a.printPreview(ticks)
		}),
	}
	clock.flags(cmd.Flags(), "the expression and of --from")
	cmd.Flags().StringVar(&from, "from", "", "first `time` to show: RFC 3339, or as 2026-03-08 or 2026-03-08T02:00 in the time zone (default now)")
	cmd.Flags().IntVarP(&n, "number", "n", n, fmt.Sprintf("how many ticks, 1 to %d", periodic.MaxPreview))
	return cmd
}

func (a *app) printPreview(ticks []periodic.PreviewTick) error {
	answer := document.NewPreview(ticks)
	return a.document(answer, func(w io.Writer) {
		if len(ticks) == 0 {
			fmt.Fprintln(a.stderr, "pelton: no ticks")
		}
		printTicks(w, ticks)
	})
}

// printTicks shows ticks to people: those that do not run stand in brackets.
func printTicks(w io.Writer, ticks []periodic.PreviewTick) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range ticks {
		at := periodic.InZone(t.At, t.At.Location().String())
		if !t.Runs() {
			at = "(" + at + ")"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", at, t.At.Format("Mon"), previewWords(t))
	}
	_ = table.Flush()
}

// previewWords says what a clock change makes of a tick.
func previewWords(t periodic.PreviewTick) string {
	wall := t.Wall.Format(time.TimeOnly)
	switch t.Note {
	case periodic.NoteMoved:
		if t.More > 0 {
			return fmt.Sprintf("moved: the clock leaves out %s; one run, with %d more", wall, t.More)
		}
		return fmt.Sprintf("moved: the clock leaves out %s", wall)
	case periodic.NoteDroppedGap:
		return fmt.Sprintf("dropped (gap): does not run, the clock leaves out %s", wall)
	case periodic.NoteDroppedRepeat:
		return fmt.Sprintf("dropped (repeat): does not run, the clock shows %s more than once", wall)
	case periodic.NoteNone:
	}
	return ""
}

// parseLast is parseMoment for the end of a range: a date is the end of that day, but of today what has passed of it.
func parseLast(flag, text, zone string) (*time.Time, error) {
	at, err := parseMoment(flag, text, zone)
	if err != nil || at == nil {
		return at, err
	}
	if len(text) != len(time.DateOnly) { // none of the others is as short
		return at, nil
	}
	end := at.AddDate(0, 0, 1).Add(-time.Microsecond)
	if passed := time.Now().Add(-time.Second); at.Before(passed) && end.After(passed) { // clocks differ by a little
		end = passed
	}
	return &end, nil
}

// parseMoment reads a time in a zone: RFC 3339, a date, or a date with a time of day; nil if the text is empty.
func parseMoment(flag, text, zone string) (*time.Time, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // not given
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, usagef("--tz: unknown time zone %q: want an IANA name as Europe/Berlin", zone)
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, loc); err == nil {
			return &t, nil
		}
	}
	return nil, usagef("--%s %q: want RFC 3339 as 2026-03-08T02:00:00Z, or a date, or a date and time of day as 2026-03-08T02:00", flag, text)
}
