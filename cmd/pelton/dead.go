package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs"
)

func (a *app) dead() *cobra.Command {
	return parent(&cobra.Command{Use: "dead", Short: "Look at dead letters, redrive or discard them", GroupID: groupOperate},
		a.deadList(), a.deadShow(), a.deadRedrive(), a.deadDiscard())
}

// deadFlags say which dead letters are meant.
type deadFlags struct {
	kinds, queues        []string
	reason, since, until string
	all                  bool
}

func (f *deadFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.kinds, "kind", nil, "only letters of these kinds")
	flags.StringSliceVar(&f.queues, "queue", nil, "only letters of these queues")
	flags.StringVar(&f.reason, "reason", "", "exhausted (out of attempts) or poison (lost with its process again and again)")
	flags.StringVar(&f.since, "since", "", "only letters that died since: RFC 3339, a date in UTC, or a duration back as 2h or 3d")
	flags.StringVar(&f.until, "until", "", "only letters that died before: the same")
}

func (f *deadFlags) filter() (*jobs.DeadFilter, error) {
	if f.reason != "" {
		if err := oneOf("reason", f.reason, []string{jobs.DeadExhausted, jobs.DeadPoison}); err != nil {
			return nil, err
		}
	}
	since, err := parsePast(f.since)
	if err != nil {
		return nil, err
	}
	until, err := parsePast(f.until)
	if err != nil {
		return nil, err
	}
	return &jobs.DeadFilter{Kinds: f.kinds, Queues: f.queues, Reason: f.reason, Since: since, Until: until}, nil
}

func (a *app) deadList() *cobra.Command {
	var f deadFlags
	limit := 100
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters, newest death first", Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			if err := checkLimit(limit); err != nil {
				return err
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				letters, err := db.client.DeadList(ctx, &jobs.DeadListParams{DeadFilter: *filter, Limit: limit})
				if err != nil {
					return err
				}
				rows := make([]document.Dead, len(letters))
				for i, l := range letters {
					rows[i] = document.NewDead(l)
				}
				err = list(a, "JOB KIND QUEUE REASON DIED ATTEMPT ERROR", rows, func(d document.Dead) []any {
					first, _, _ := strings.Cut(d.Error, "\n")
					return []any{d.JobID, d.Kind, d.Queue, d.Reason, moment(d.DiedAt), fmt.Sprintf("%d/%d", d.Attempt, d.MaxAttempts), first}
				})
				if err == nil && len(rows) == limit { // letters that died in the same moment are listed again
					a.mayBeMore("until", rows[limit-1].DiedAt.Add(time.Microsecond).Format(time.RFC3339Nano))
				}
				return err
			})
		}),
	}
	f.add(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", limit, "at most so many, 1 to 10,000")
	return cmd
}

func (a *app) deadShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show a dead letter with all its attempts", Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				letter, err := db.client.DeadGet(ctx, ids[0])
				if err != nil {
					return err
				}
				d := document.NewDead(letter)
				return a.document(d, func(w io.Writer) { printDead(w, d) })
			})
		}),
	}
}

func printDead(w io.Writer, d document.Dead) {
	fmt.Fprintf(w, "job %d of kind %s in queue %s died at %s: %s, attempt %d of %d\n",
		d.JobID, d.Kind, d.Queue, moment(d.DiedAt), d.Reason, d.Attempt, d.MaxAttempts)
	fmt.Fprintf(w, "args      %s\nmetadata  %s\ntags      %s\ncreated   %s\n", d.Args, d.Metadata,
		cmp.Or(strings.Join(d.Tags, ", "), "-"), moment(d.CreatedAt))
	for _, t := range d.Attempts {
		fmt.Fprintf(w, "\nrun %d: %s, attempt %d, started %s, ended %s, by %s\n", t.Run, t.Outcome, t.Attempt,
			optionalMoment(t.StartedAt), moment(t.EndedAt), orDash(t.Executor))
		for _, text := range []string{t.Error, t.Trace} {
			if text != "" {
				fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
			}
		}
	}
}

func (a *app) deadRedrive() *cobra.Command {
	return a.deadVerb("redrive", "Make new jobs of dead letters, but for those of flows' nodes",
		`Make new jobs of dead letters. Those of flows' nodes are refused, or left out by a filter: their runs decide when they run again. Use
pelton flow retry.`,
		func(ctx context.Context, client *jobs.Client, id int64) (document.DeadChanged, error) {
			job, err := client.DeadRedrive(ctx, id)
			if err != nil {
				return document.DeadChanged{}, err
			}
			return document.DeadChanged{JobID: id, Done: document.Redriven, NewJobID: job.ID}, nil
		},
		func(ctx context.Context, client *jobs.Client, filter *jobs.DeadFilter) ([]document.DeadChanged, error) {
			made, err := client.DeadRedriveMany(ctx, filter, deadPage)
			return document.NewRedriven(made), err
		})
}

func (a *app) deadDiscard() *cobra.Command {
	return a.deadVerb("discard", "Remove dead letters for good", "",
		func(ctx context.Context, client *jobs.Client, id int64) (document.DeadChanged, error) {
			return document.DeadChanged{JobID: id, Done: document.Discarded}, client.DeadDiscard(ctx, id)
		},
		func(ctx context.Context, client *jobs.Client, filter *jobs.DeadFilter) ([]document.DeadChanged, error) {
			ids, err := client.DeadDiscardMany(ctx, filter, deadPage)
			return document.NewDiscarded(ids), err
		})
}

// deadPage is how many letters one transaction changes.
const deadPage = 1000

// deadVerb makes a command that works on the letters named, or on all that a filter finds.
func (a *app) deadVerb(
	name, short, long string, one func(context.Context, *jobs.Client, int64) (document.DeadChanged, error),
	many func(context.Context, *jobs.Client, *jobs.DeadFilter) ([]document.DeadChanged, error),
) *cobra.Command {
	var f deadFlags
	cmd := &cobra.Command{
		Use: name + " ID... | " + name + " --all", Short: short, Long: long, Args: arguments(cobra.ArbitraryArgs),
		RunE: brief(func(ctx context.Context, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			filter, err := f.filter()
			if err != nil {
				return err
			}
			filtered := len(f.kinds)+len(f.queues) > 0 || f.reason+f.since+f.until != ""
			switch {
			case len(ids) > 0 && (filtered || f.all):
				return usagef("ids and a filter: want one of them")
			case len(ids) == 0 && !filtered && !f.all:
				return usagef("which dead letters? Name their ids, or a filter, or say --all")
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				if len(ids) == 0 {
					err := a.deadMany(ctx, name, func() ([]document.DeadChanged, error) { return many(ctx, db.client, filter) })
					if err == nil && name == "redrive" {
						err = a.deadLeftOut(ctx, db.client, filter)
					}
					return err
				}
				var faults []error
				for _, id := range ids {
					changed, err := one(ctx, db.client, id)
					if err == nil {
						err = a.printDeadChanged(changed)
					}
					if err != nil {
						faults = append(faults, err)
					}
				}
				return errors.Join(faults...)
			})
		}),
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters")
	return cmd
}

func (a *app) deadMany(ctx context.Context, name string, page func() ([]document.DeadChanged, error)) error {
	total := 0
	for ctx.Err() == nil {
		changed, err := page()
		if err != nil {
			return fmt.Errorf("%s after %s: %w", name, quantity.Of(total, "letter"), err)
		}
		if len(changed) == 0 {
			break
		}
		total += len(changed)
		for _, c := range changed {
			if err := a.printDeadChanged(c); err != nil {
				return err
			}
		}
	}
	if !a.json {
		fmt.Fprintf(a.stderr, "pelton: %s\n", quantity.Of(total, "letter"))
	}
	return context.Cause(ctx)
}

// deadLeftJSON says what a redrive by a filter left out.
type deadLeftJSON struct {
	LeftOut int    `json:"left_out"`
	Reason  string `json:"reason"`
}

// deadLeftOut tells of the letters that a redrive by a filter left out.
func (a *app) deadLeftOut(ctx context.Context, client *jobs.Client, filter *jobs.DeadFilter) error {
	n, err := client.DeadFlowNodes(ctx, filter)
	if err != nil || n == 0 {
		return err
	}
	if a.json {
		return a.document(deadLeftJSON{n, "of flows' nodes: use pelton flow retry"}, nil)
	}
	fmt.Fprintf(a.stderr, "pelton: letters left out: %d, which are of flows' nodes: use pelton flow retry\n", n)
	return nil
}

func (a *app) printDeadChanged(c document.DeadChanged) error {
	return a.document(c, func(w io.Writer) {
		if c.NewJobID != 0 {
			fmt.Fprintf(w, "dead letter %d is redriven as job %d\n", c.JobID, c.NewJobID)
			return
		}
		fmt.Fprintf(w, "dead letter %d is %s\n", c.JobID, c.Done)
	})
}
