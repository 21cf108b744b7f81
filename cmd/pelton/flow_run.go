package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/internal/suggest"
	"github.com/peltonq/pelton/jobs/flow"
)

// runFlags are the options of a run on the command line.
type runFlags struct {
	given                              *pflag.FlagSet
	version                            int
	params, nodeParams, disable        []string
	onFailure, concurrent, queue       string
	onCancelledEnd                     string
	maxParallel, priority, jobPriority int
	notifySuccess, notifyFailure       []string
	notifyFirst, slas                  []string
	wait                               bool
}

func (a *app) flowRun() *cobra.Command {
	var f runFlags
	var traces traceSettings
	cmd := &cobra.Command{
		Use:   "run PROJECT/FLOW",
		Short: "Start a run of a flow",
		Long: `Start a run of a flow and print its number. With --wait the command goes on until the run has ended, shows on a terminal
what its nodes do, and exits with 0 only if the run SUCCEEDED.`,
		Example: `  pelton flow run etl/nightly --param date=2026-01-31 --wait
  pelton flow run etl/nightly --disable cleanup --node-param load:batch=500 --on-failure finish_possible`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(a.traced(&traces, func(ctx context.Context, args []string) error {
			project, name, err := parseFlow(args[0])
			if err != nil {
				return err
			}
			options, err := f.options()
			if err != nil {
				return err
			}
			return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, _ database, flows *flow.Client) error {
				run, err := flows.Run(ctx, flow.RunParams{Project: project, Flow: name, Version: f.version, Options: options})
				if errors.Is(err, flow.ErrNotFound) {
					return fmt.Errorf("%w%s", err, otherFlows(ctx, flows, project, name))
				}
				if err != nil {
					return runError(err)
				}
				if f.wait {
					return a.waitForRun(ctx, flows, run, nil)
				}
				return a.document(map[string]int64{"run": run}, func(w io.Writer) { fmt.Fprintln(w, run) })
			})
		})),
	}
	flags := cmd.Flags()
	f.ofRun(flags)
	traces.flags(flags)
	flags.IntVar(&f.priority, "priority", 0, "among waiting runs of the flow, higher first (default: the flow's, then 5)")
	flags.StringVar(&f.queue, "queue", "", "queue of jobs that have none of their own")
	flags.BoolVarP(&f.wait, "wait", "w", false, "wait for the end; exit with 0 only if it SUCCEEDED")
	return cmd
}

// otherFlows names the flow of a project that somebody may have meant, or all that there are; empty: it has that one or none, or they cannot be read.
func otherFlows(ctx context.Context, flows *flow.Client, project, name string) string {
	const most = 20
	entries, err := flows.Flows(ctx, project)
	if err != nil || len(entries) == 0 {
		return ""
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Flow
	}
	if slices.Contains(names, name) { // it is the version that there is none of
		return ""
	}
	if near := suggest.Near(name, names); len(entries) <= most || strings.HasPrefix(near, "; did you mean") {
		return near
	}
	return "; pelton flow list --project " + shellWord(project) + " lists those that there are"
}

// ofRun are the flags that say how a run goes.
func (f *runFlags) ofRun(flags *pflag.FlagSet) {
	f.given = flags
	flags.IntVar(&f.version, "version", 0, "of the project (default: the newest)")
	flags.StringArrayVar(&f.params, "param", nil, "parameter `NAME=VALUE` of the run; may be repeated")
	flags.StringArrayVar(&f.nodeParams, "node-param", nil, "parameter `NODE:NAME=VALUE` of one node; may be repeated")
	flags.StringArrayVar(&f.disable, "disable", nil, "`node` to pass over; may be repeated")
	flags.StringVar(&f.onFailure, "on-failure", "", "finish_current, cancel_all or finish_possible (default: the flow's, then finish_current)")
	flags.StringVar(&f.onCancelledEnd, "on-cancelled-end", "", "status if an end node was cancelled by its condition: killed or succeeded (default: the flow's)")
	flags.StringVar(&f.concurrent, "concurrent", "", "while another run of the flow is live: allow, skip, queue, pipeline-1, pipeline-2 or pipeline-3 (default allow)")
	flags.IntVar(&f.maxParallel, "max-parallel", 0, "most jobs of the run at a time (default: the flow's, then 10)")
	flags.IntVar(&f.jobPriority, "job-priority", 0, "priority, 1 to 4, of jobs that have none of their own")
	flags.StringArrayVar(&f.slas, "sla", nil, "limit `[NODE:]DURATION[:succeed]:ACTION` with ACTION alert, kill or alert+kill, as 2h:alert or load:30m:succeed:kill")
	flags.StringArrayVar(&f.notifySuccess, "notify-success", nil, "e-mail `address` or webhook to tell of success; may be repeated")
	flags.StringArrayVar(&f.notifyFailure, "notify-failure", nil, "e-mail `address` or webhook to tell of failure; may be repeated")
	flags.StringArrayVar(&f.notifyFirst, "notify-first-failure", nil, "e-mail `address` or webhook to tell of the first failed node; may be repeated")
}

// runError has bad options exit as wrong usage.
func runError(err error) error {
	if _, invalid := errors.AsType[*flow.InvalidOptionsError](err); invalid {
		return usage(err)
	}
	return err
}

func (f *runFlags) options() (flow.Options, error) {
	o := flow.Options{
		Disabled: f.disable, OnFailure: flow.OnFailure(f.onFailure), OnCancelledEnd: flow.OnCancelledEnd(f.onCancelledEnd),
		Concurrent: flow.Concurrent(f.concurrent), MaxParallel: f.maxParallel, Priority: f.priority, Queue: f.queue, JobPriority: f.jobPriority,
		Notify: flow.Notify{Success: f.notifySuccess, Failure: f.notifyFailure, FirstFailure: f.notifyFirst},
	}
	if err := f.unset(); err != nil {
		return o, err
	}
	for _, text := range f.params {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return o, usagef("--param %q: want NAME=VALUE", text)
		}
		if o.Params == nil {
			o.Params = map[string]string{}
		}
		o.Params[name] = value
	}
	for _, text := range f.nodeParams {
		target, value, ok := strings.Cut(text, "=")
		at := strings.LastIndexByte(target, ':')
		if !ok || at < 1 || at == len(target)-1 {
			return o, usagef("--node-param %q: want NODE:NAME=VALUE; the node of an embedded flow is OUTER:INNER", text)
		}
		node, name := target[:at], target[at+1:]
		if o.NodeParams == nil {
			o.NodeParams = map[string]map[string]string{}
		}
		if o.NodeParams[node] == nil {
			o.NodeParams[node] = map[string]string{}
		}
		o.NodeParams[node][name] = value
	}
	for _, text := range f.slas {
		sla, err := parseSLA(text)
		if err != nil {
			return o, err
		}
		o.SLAs = append(o.SLAs, sla)
	}
	return o, nil
}

// unset refuses flags that were given as what stands for none: whoever gives one wants something else than the default.
func (f *runFlags) unset() error {
	for name, value := range map[string]int{"version": f.version, "max-parallel": f.maxParallel, "job-priority": f.jobPriority} {
		if f.given.Changed(name) && value < 1 {
			return usagef("--%s %d: want 1 or more", name, value)
		}
	}
	for _, name := range []string{"on-failure", "on-cancelled-end", "concurrent", "queue"} {
		if f.given.Changed(name) && f.given.Lookup(name).Value.String() == "" {
			return usagef("--%s is empty: leave it out for the default", name)
		}
	}
	return nil
}

// parseSLA reads [NODE:]DURATION[:succeed]:ACTION.
func parseSLA(text string) (flow.SLA, error) {
	wrong := usagef("--sla %q: want [NODE:]DURATION[:succeed]:ACTION with ACTION alert, kill or alert+kill", text)
	parts := strings.Split(text, ":")
	var s flow.SLA
	switch last := parts[len(parts)-1]; last {
	case "alert":
		s.Alert = true
	case "kill":
		s.Kill = true
	case "alert+kill":
		s.Alert, s.Kill = true, true
	default:
		return s, wrong
	}
	parts = parts[:len(parts)-1]
	if n := len(parts); n > 0 && parts[n-1] == "succeed" {
		s.Succeed, parts = true, parts[:n-1]
	}
	if len(parts) == 0 {
		return s, wrong
	}
	within, err := time.ParseDuration(parts[len(parts)-1])
	if err != nil {
		return s, wrong
	}
	s.Within = flow.Duration(within)
	s.Node = strings.Join(parts[:len(parts)-1], ":")
	return s, nil
}

// notSucceededError is a run that ended otherwise than hoped.
type notSucceededError struct {
	run    int64
	status string
}

func (e *notSucceededError) Error() string {
	return fmt.Sprintf("run %d is %s; see pelton flow show %d", e.run, e.status, e.run)
}

// waitForRun follows a run until its end. Of one that goes on, only what changes from then on is printed.
func (a *app) waitForRun(ctx context.Context, flows *flow.Client, run int64, was *flow.RunDetail) error {
	fmt.Fprintf(a.stderr, "run %d\n", run)
	seen := map[string]nodeSeen{}
	if was != nil {
		for _, n := range was.Nodes {
			seen[n.Path] = nodeSeen{n.Status, n.Try}
		}
	}
	var changed func(*flow.RunDetail)
	if !a.json {
		changed = func(r *flow.RunDetail) { a.printChanges(r, seen) }
	}
	r, err := flows.Ended(ctx, run, changed)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("run %d goes on without this command: %w", run, err)
		}
		return err
	}
	if err := a.document(r, func(w io.Writer) {
		status := r.Status
		if r.Reason != nil {
			status += ": " + oneLine(*r.Reason)
		}
		fmt.Fprintf(w, "run %d of %s/%s: %s\n", run, r.Project, r.Flow, status)
	}); err != nil {
		return err
	}
	if r.Status != "SUCCEEDED" {
		return &notSucceededError{run, r.Status}
	}
	return nil
}

// nodeSeen is what was last seen of a node.
type nodeSeen struct {
	status string
	try    int
}

// printChanges prints what changed since the last time: each node in a line.
func (a *app) printChanges(r *flow.RunDetail, seen map[string]nodeSeen) {
	for i := range r.Nodes {
		n := &r.Nodes[i]
		was, is := seen[n.Path], nodeSeen{n.Status, n.Try}
		seen[n.Path] = is
		if was == is || n.Status == "READY" {
			continue
		}
		took := ""
		if n.StartedAt != nil && n.EndedAt != nil {
			took = "  " + n.EndedAt.Sub(*n.StartedAt).Round(time.Millisecond).String()
		}
		reason := ""
		if n.Reason != nil && *n.Reason != "" {
			reason = "  " + oneLine(*n.Reason)
		}
		fmt.Fprintf(a.stderr, "%s  %-16s %s%s%s\n", time.Now().Format(time.TimeOnly), n.Status, n.Path, took, reason)
	}
}
