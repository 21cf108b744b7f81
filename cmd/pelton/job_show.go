package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/quantity"
)

func (a *app) jobShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a job, its runs and how much it printed",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error { return a.show(ctx, db, ids[0]) })
		}),
	}
}

func (a *app) show(ctx context.Context, db database, id int64) error {
	shown, err := document.ReadJobDetail(ctx, db.pool, db.client, id)
	if err != nil {
		return err
	}
	return a.document(shown, func(w io.Writer) { printJob(w, shown) })
}

func printJob(out io.Writer, j document.JobDetail) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	line("job", j.ID)
	line("kind", j.Kind)
	line("state", j.State)
	if j.Waits != "" {
		line("waits", j.Waits)
	}
	line("queue", fmt.Sprintf("%s, priority %d", j.Queue, j.Priority))
	line("attempt", fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts))
	line("created", moment(j.CreatedAt))
	line("scheduled", moment(j.ScheduledAt))
	line("attempted", optionalMoment(j.AttemptedAt))
	line("finalized", optionalMoment(j.FinalizedAt))
	if j.RedrivenFrom != 0 {
		line("redriven from", j.RedrivenFrom)
	}
	for _, id := range j.RedrivenAs {
		line("redriven as", id)
	}
	line("tags", orDash(strings.Join(j.Tags, ", ")))
	line("args", string(j.Args))
	line("metadata", string(j.Metadata))
	if j.Output != nil {
		line("output", string(j.Output))
	}
	_ = w.Flush() // a terminal that is gone is told nothing
	if j.RunsLeftOut > 0 {
		fmt.Fprintf(out, "\n%s left out\n", quantity.Say(j.RunsLeftOut, "1 run before these is", "%d runs before these are"))
	}
	for _, r := range j.Runs {
		fmt.Fprintf(out, "\nrun %d: %s, attempt %d", r.Run, r.Outcome, r.Attempt)
		if r.StartedAt != nil {
			fmt.Fprintf(out, ", started %s", moment(*r.StartedAt))
		}
		if r.EndedAt != nil {
			fmt.Fprintf(out, ", ended %s", moment(*r.EndedAt))
		}
		if r.Executor != "" {
			fmt.Fprintf(out, ", by %s", r.Executor)
		}
		fmt.Fprintln(out)
		if r.Error != "" {
			fmt.Fprintf(out, "  %s\n", strings.ReplaceAll(r.Error, "\n", "\n  "))
		}
	}
	for _, l := range j.Logs {
		fmt.Fprintf(out, "\nlog of run %d, %s: %s, %d kept (pelton job logs %d --run %d)\n",
			l.Run, l.Stream, quantity.Of(l.Printed, "byte"), l.Stored, j.ID, l.Run)
	}
}
