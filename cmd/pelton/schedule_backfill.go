package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/periodic"
)

func (a *app) scheduleBackfill() *cobra.Command {
	var from, to, zone string
	var noWait bool
	p := periodic.BackfillParams{Parallel: 1}
	cmd := &cobra.Command{
		Use:   "backfill NAME --from TIME --to TIME",
		Short: "Have a schedule's ticks of the past run, in order",
		Long: `Have the ticks of a schedule between two times of the past run, in order, at most --parallel at a time: by default those that did not run when
their time was, with --all those that did too. A scheduler does it; the command shows how far it is and waits for the end, which goes on without it,
and exits with 0 only if every run succeeded.`,
		Example: `  pelton schedule backfill nightly --from 2026-11-01 --to 2026-11-07
  pelton schedule backfill nightly --from 2026-11-01 --to 2026-11-07 --all --parallel 4 --no-wait
  pelton schedule backfill list nightly
  pelton schedule backfill cancel 3`,
		Args: arguments(cobra.ExactArgs(1)),
	}
	cmd.AddCommand(a.backfillList(), a.backfillShow(), a.backfillCancel())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("which schedule? Usage: pelton schedule backfill NAME --from TIME --to TIME")
		}
		return brief(func(ctx context.Context, args []string) error {
			if err := positive(cmd.Flags(), "parallel"); err != nil {
				return err
			}
			if from == "" || to == "" {
				return usagef("--from and --to are needed: the first and the last time whose ticks are to run")
			}
			return a.withSchedules(ctx, func(ctx context.Context, schedules *periodic.Client) error {
				if zone == "" {
					e, err := schedules.Get(ctx, args[0])
					if err != nil {
						return err
					}
					zone = e.TimeZone
				}
				for flag, text := range map[string]string{"from": from, "to": to} {
					parse := parseMoment
					if flag == "to" {
						parse = parseLast
					}
					at, err := parse(flag, text, zone)
					if err != nil {
						return err
					}
					if flag == "from" {
						p.From = *at
					} else {
						p.To = *at
					}
				}
				b, err := schedules.Backfill(ctx, args[0], p)
				if err != nil {
					return err
				}
				if noWait {
					return a.document(b, func(w io.Writer) { fmt.Fprintln(w, b.ID) })
				}
				return a.waitForBackfill(ctx, schedules, b)
			})
		})(cmd, args)
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "first `time`: RFC 3339, or as 2026-11-01 or 2026-11-01T02:00 in the schedule's time zone")
	f.StringVar(&to, "to", "", "last `time`, itself included; a date is the end of that day")
	f.StringVar(&zone, "tz", "", "time `zone` of --from and --to (default: the schedule's)")
	f.BoolVar(&p.All, "all", false, "also ticks that have run")
	f.IntVar(&p.Parallel, "parallel", p.Parallel, "at most so many runs at a time")
	f.BoolVar(&noWait, "no-wait", false, "print the backfill's number and return")
	return cmd
}

// waitForBackfill shows how far a backfill is until it has ended.
func (a *app) waitForBackfill(ctx context.Context, schedules *periodic.Client, b *periodic.Backfill) error {
	fmt.Fprintf(a.stderr, "backfill %d\n", b.ID)
	bar := a.backfillProgress(b)
	b, err := schedules.BackfillEnded(ctx, b.ID, bar.show)
	bar.done()
	if err != nil {
		if ctx.Err() != nil && b != nil {
			return fmt.Errorf("backfill %d goes on without this command: %w", b.ID, err)
		}
		return err
	}
	if err := a.document(b, func(w io.Writer) { fmt.Fprintln(w, backfillWords(b)) }); err != nil {
		return err
	}
	if b.Failed > 0 || b.Status == periodic.BackfillCancelled {
		return fmt.Errorf("backfill %d is %s, %d of its runs did not succeed; see pelton schedule ticks %s --backfill %d", b.ID, b.Status, b.Failed, shellWord(b.Schedule), b.ID)
	}
	if b.NotStarted > 0 {
		return fmt.Errorf("%s of backfill %d could not be started; see pelton schedule ticks %s --backfill %d", quantity.Of(b.NotStarted, "tick"), b.ID, shellWord(b.Schedule), b.ID)
	}
	return nil
}

// backfillProgress is a bar on a terminal, and nothing elsewhere.
type backfillProgress struct{ bar *progressbar.ProgressBar }

func (a *app) backfillProgress(b *periodic.Backfill) *backfillProgress {
	if a.json || !isTerminal(a.stderr) {
		return &backfillProgress{}
	}
	return &backfillProgress{progressbar.NewOptions(b.Total,
		progressbar.OptionSetWriter(a.stderr), progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription("backfill"), progressbar.OptionFullWidth())}
}

func (p *backfillProgress) show(b *periodic.Backfill) {
	if p.bar == nil {
		return
	}
	if b.Failed > 0 {
		p.bar.Describe(fmt.Sprintf("backfill, %d failed", b.Failed))
	}
	_ = p.bar.Set(min(b.Total, b.LeftOut+b.Succeeded+b.Failed)) // what a terminal does not take is no reason to stop
}

func (p *backfillProgress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

func backfillWords(b *periodic.Backfill) string {
	words := fmt.Sprintf("backfill %d of %s is %s: %d of %s started, %d succeeded, %d failed, %d left out",
		b.ID, b.Schedule, b.Status, b.Started, quantity.Of(b.Total, "tick"), b.Succeeded, b.Failed, b.LeftOut)
	if b.NotStarted > 0 {
		words += fmt.Sprintf(", of these %d could not be started, the last because: %s", b.NotStarted, b.Why)
	}
	return words
}

func (a *app) backfillList() *cobra.Command {
	limit := 50
	cmd := &cobra.Command{
		Use: "list [NAME]", Short: "List backfills, the newest first", Args: arguments(cobra.MaximumNArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return a.withSchedules(ctx, func(ctx context.Context, schedules *periodic.Client) error {
				backfills, err := schedules.Backfills(ctx, periodic.BackfillListParams{Schedule: name, Limit: limit})
				if err != nil {
					return err
				}
				return list(a, "ID SCHEDULE FROM TO STATUS STARTED TOTAL SUCCEEDED FAILED LEFT-OUT ASKED BY", backfills, func(b periodic.Backfill) []any {
					return []any{
						b.ID, b.Schedule, moment(b.From), moment(b.To), b.Status, b.Started, b.Total, b.Succeeded, b.Failed, b.LeftOut, moment(b.CreatedAt),
						b.CreatedBy,
					}
				})
			})
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most so many, 1 to 10,000")
	return cmd
}

// backfillVerb makes a command of one backfill.
func (a *app) backfillVerb(use, short string, do func(ctx context.Context, schedules *periodic.Client, id int64) (*periodic.Backfill, error)) *cobra.Command {
	return &cobra.Command{
		Use: use + " BACKFILL", Short: short, Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id < 1 {
				return usagef("%q is not a backfill: want a number, as schedule backfill list prints it", args[0])
			}
			return a.withSchedules(ctx, func(ctx context.Context, schedules *periodic.Client) error {
				b, err := do(ctx, schedules, id)
				if err != nil {
					return err
				}
				return a.document(b, func(w io.Writer) { fmt.Fprintln(w, backfillWords(b)) })
			})
		}),
	}
}

func (a *app) backfillShow() *cobra.Command {
	return a.backfillVerb("show", "Show how far a backfill is", func(ctx context.Context, c *periodic.Client, id int64) (*periodic.Backfill, error) {
		return c.BackfillGet(ctx, id)
	})
}

func (a *app) backfillCancel() *cobra.Command {
	return a.backfillVerb("cancel", "Have a backfill start no more runs; those that run go on", func(ctx context.Context, c *periodic.Client, id int64) (*periodic.Backfill, error) {
		return c.BackfillCancel(ctx, id)
	})
}
