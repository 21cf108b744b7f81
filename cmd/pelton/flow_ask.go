package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/jobs/flow"
)

// flowVerb makes a command that asks something of a run; a scheduler does it.
func (a *app) flowVerb(use, short string, done func(was *flow.RunDetail, nodes []string) string, args cobra.PositionalArgs, do func(ctx context.Context, flows *flow.Client, run int64, nodes []string) error) *cobra.Command {
	wait := false
	cmd := &cobra.Command{
		Use: use, Short: short, Args: arguments(args),
		RunE: brief(func(ctx context.Context, args []string) error {
			run, err := parseRun(args[0])
			if err != nil {
				return err
			}
			return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, _ database, flows *flow.Client) error {
				was, unknown := flows.Get(ctx, run)
				if err := do(ctx, flows, run, args[1:]); err != nil {
					return err
				}
				if unknown != nil {
					return unknown
				}
				if wait {
					return a.waitForRun(ctx, flows, run, was)
				}
				what := done(was, args[1:])
				return a.document(map[string]any{"run": run, "asked": what}, func(w io.Writer) { fmt.Fprintf(w, "run %d: %s\n", run, what) })
			})
		}),
	}
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait for the end; exit with 0 only if it SUCCEEDED")
	return cmd
}

// just says the same of every run.
func just(text string) func(*flow.RunDetail, []string) string {
	return func(*flow.RunDetail, []string) string { return text }
}

func pausing(was *flow.RunDetail, _ []string) string {
	if was.Status == "PAUSED" {
		return "is PAUSED already"
	}
	return "is being paused"
}

func counting(_ *flow.RunDetail, nodes []string) string { return nodes[0] + " counts as succeeded" }

func (a *app) flowKill() *cobra.Command {
	return a.flowVerb("kill RUN", "Kill a run: end what runs, start nothing more", just("is being killed"), cobra.ExactArgs(1),
		func(ctx context.Context, flows *flow.Client, run int64, _ []string) error {
			return flows.Kill(ctx, run)
		})
}

func (a *app) flowPause() *cobra.Command {
	return a.flowVerb("pause RUN", "Have no more nodes of a run start; what runs goes on, with its retries", pausing, cobra.ExactArgs(1),
		func(ctx context.Context, flows *flow.Client, run int64, _ []string) error {
			return flows.Pause(ctx, run)
		})
}

func (a *app) flowResume() *cobra.Command {
	return a.flowVerb("resume RUN", "End a pause", just("goes on"), cobra.ExactArgs(1),
		func(ctx context.Context, flows *flow.Client, run int64, _ []string) error {
			return flows.Resume(ctx, run)
		})
}

func (a *app) flowRetry() *cobra.Command {
	return a.flowVerb("retry RUN [NODE...]", "Run what failed once more, in a run that has ended; with an embedded flow or an instance of a for_each, all of that", just("is being retried"),
		cobra.MinimumNArgs(1), func(ctx context.Context, flows *flow.Client, run int64, nodes []string) error {
			return flows.Retry(ctx, run, nodes...)
		})
}

func (a *app) flowRerun() *cobra.Command {
	return a.flowVerb("rerun RUN NODE...", "Run nodes, and all that depends on them, once more, in a run that has ended", just("is being run again"),
		cobra.MinimumNArgs(2), func(ctx context.Context, flows *flow.Client, run int64, nodes []string) error {
			return flows.Rerun(ctx, run, nodes...)
		})
}

func (a *app) flowSucceed() *cobra.Command {
	return a.flowVerb("succeed RUN NODE", "Have a node that failed, was killed or cancelled, or has not started, count as succeeded", counting, cobra.ExactArgs(2),
		func(ctx context.Context, flows *flow.Client, run int64, nodes []string) error {
			return flows.MarkSucceeded(ctx, run, nodes[0])
		})
}
