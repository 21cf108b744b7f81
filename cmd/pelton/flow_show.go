package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/internal/suggest"
	"github.com/peltonq/pelton/jobs/flow"
)

func (a *app) flowShow() *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Short: "Show a run and its nodes", Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			run, err := parseRun(args[0])
			if err != nil {
				return err
			}
			return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, _ database, flows *flow.Client) error {
				r, err := flows.Get(ctx, run)
				if err != nil {
					return err
				}
				return a.document(r, func(w io.Writer) { showRun(w, r) })
			})
		}),
	}
}

func showRun(w io.Writer, r *flow.RunDetail) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(t, "%s\t%s\n", name, value) }
	row("run", strconv.FormatInt(r.ID, 10))
	row("flow", fmt.Sprintf("%s/%s, version %d", r.Project, r.Flow, r.Version))
	row("status", r.Status)
	if r.Reason != nil {
		row("reason", oneLine(*r.Reason))
	}
	row("asked", moment(r.CreatedAt)+" by "+r.CreatedBy)
	row("started", optionalMoment(r.StartedAt))
	row("ended", optionalMoment(r.EndedAt))
	from, since := r.StartedAt, ""
	if r.ResumedAt != nil {
		row("went on", moment(*r.ResumedAt))
		from, since = r.ResumedAt, " since it went on"
	}
	if from != nil {
		row("took", took(from, r.EndedAt)+since)
	}
	if r.Before != nil {
		row("follows", fmt.Sprintf("run %d, pipeline %d", *r.Before, r.Pipeline))
	}
	if options := asked(r.Options); options != "" {
		row("options", options)
	}
	_ = t.Flush()
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSTATUS\tATTEMPT\tSTARTED\tENDED\tTOOK\tJOB\tREASON")
	for i := range r.Nodes {
		showNode(t, &r.Nodes[i])
	}
	_ = t.Flush()
}

// showNode prints a node, and below it what was tried of a job that is tried again.
func showNode(w io.Writer, n *flow.NodeRow) {
	line := func(name, status, attempt string, from, to *time.Time, job, reason string) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, status, attempt, optionalMoment(from), optionalMoment(to), took(from, to), job, reason)
	}
	job, reason := "-", "-"
	if n.JobID != nil {
		job = strconv.FormatInt(*n.JobID, 10)
	}
	switch {
	case n.Reason != nil:
		reason = oneLine(*n.Reason)
	case n.Held != nil:
		reason = "held by " + *n.Held
	case n.RetryAt != nil:
		reason = "to be tried again at " + moment(*n.RetryAt)
	}
	attempt := strconv.Itoa(n.Attempt)
	if n.Try > 0 {
		attempt = fmt.Sprintf("%d (try %d)", n.Attempt, n.Try)
	}
	indent := strings.Repeat("  ", strings.Count(n.Path, ":"))
	line(indent+oneLine(n.Path), n.Status, attempt, n.StartedAt, n.EndedAt, job, reason)
	for _, a := range n.Tried {
		fault := "-"
		if a.Error != nil {
			fault = oneLine(*a.Error)
		}
		line(indent+"  tried", strings.ToUpper(a.Outcome), strconv.Itoa(a.Attempt), a.StartedAt, &a.EndedAt, "-", fault)
	}
}

// took is the time from one moment to another, or until now.
func took(from, to *time.Time) string {
	switch {
	case from == nil:
		return "-"
	case to == nil:
		return max(0, time.Since(*from)).Round(time.Second).String() + " so far"
	}
	return to.Sub(*from).Round(time.Millisecond).String()
}

// asked are a run's options, if there are any.
func asked(options json.RawMessage) string {
	if text := string(options); text != "{}" {
		return oneLine(text)
	}
	return ""
}

func (a *app) flowWhy() *cobra.Command {
	return &cobra.Command{
		Use: "why RUN [NODE]", Short: "Say why a node has not started, or why it, or the run, ended as it did", Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: brief(func(ctx context.Context, args []string) error {
			run, err := parseRun(args[0])
			if err != nil {
				return err
			}
			return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, _ database, flows *flow.Client) error {
				answer := map[string]any{"run": run}
				var why string
				if len(args) == 2 {
					answer["node"] = args[1]
					why, err = flows.Why(ctx, run, args[1])
				} else {
					why, err = flows.WhyRun(ctx, run)
				}
				if err != nil {
					return err
				}
				answer["why"] = why
				return a.document(answer, func(w io.Writer) { fmt.Fprintln(w, why) })
			})
		}),
	}
}

func (a *app) flowRuns() *cobra.Command {
	var f flow.RunFilter
	var limit int
	cmd := &cobra.Command{
		Use: "runs [PROJECT[/FLOW]]", Short: "List runs, the newest first", Args: arguments(cobra.MaximumNArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				f.Project, f.Flow, _ = strings.Cut(args[0], "/")
			}
			f.Status = strings.ToUpper(f.Status)
			if f.Status != "" && !slices.Contains(flow.RunStatuses(), f.Status) {
				return usagef("--status %s is no status of a run%s", f.Status, suggest.Near(f.Status, flow.RunStatuses()))
			}
			return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, _ database, flows *flow.Client) error {
				runs, err := flows.Runs(ctx, f, limit)
				if err != nil {
					return err
				}
				return list(a, "RUN FLOW VERSION STATUS ASKED STARTED ENDED BY", runs, func(r flow.RunRow) []any {
					return []any{
						r.ID, r.Project + "/" + r.Flow, r.Version, r.Status, moment(r.CreatedAt), optionalMoment(r.StartedAt), optionalMoment(r.EndedAt), r.CreatedBy,
					}
				})
			})
		}),
	}
	cmd.Flags().StringVar(&f.Status, "status", "", "only with this status")
	cmd.Flags().BoolVar(&f.Live, "live", false, "only those that have not ended")
	cmd.Flags().Int64Var(&f.Before, "before", 0, "only with numbers below this one")
	cmd.Flags().IntVar(&limit, "limit", 50, "at most so many")
	return cmd
}
