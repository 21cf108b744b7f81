package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/joblog"
)

func (a *app) flowLogs() *cobra.Command {
	f := logFlags{streams: []string{"stdout", "stderr", "log"}}
	cmd := &cobra.Command{
		Use:   "logs RUN [NODE]",
		Short: "Print what the nodes of a run printed",
		Long: `Print what the nodes of a run printed, each under its name, in the order in which they started; or that of one node alone, byte for
byte; of all attempts. --follow goes on until the run, or the node, has ended.`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: brief(func(ctx context.Context, args []string) error {
			run, err := parseRun(args[0])
			if err != nil {
				return err
			}
			options, err := f.options()
			if err != nil {
				return err
			}
			node := ""
			if len(args) == 2 {
				node = args[1]
			}
			return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, db database, flows *flow.Client) error {
				p := &nodeLogs{a: a, db: db, flows: flows, run: run, node: node, flags: f, options: options, printed: map[jobRun]bool{}, over: map[int64]bool{}}
				return p.print(ctx)
			})
		}),
	}
	flags := cmd.Flags()
	f.given = flags
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on until the run, or the node, has ended")
	flags.Int64Var(&f.head, "head", 0, "only so many lines from the beginning of each")
	flags.Int64Var(&f.tail, "tail", 0, "only so many lines from the end of each")
	flags.StringSliceVar(&f.streams, "stream", f.streams, "of stdout, stderr, log, progress")
	return cmd
}

// jobRun is a run of a job.
type jobRun struct {
	job int64
	run int
}

// nodeLogs prints the logs of a run's nodes, those of each run of their jobs once.
type nodeLogs struct {
	a       *app
	db      database
	flows   *flow.Client
	run     int64
	node    string // empty: all
	flags   logFlags
	options joblog.Options
	printed map[jobRun]bool
	over    map[int64]bool // jobs that have no more to print
}

func (p *nodeLogs) print(ctx context.Context) error {
	for {
		r, err := p.flows.Get(ctx, p.run)
		if err != nil {
			return err
		}
		nodes, ended, err := p.chosen(r)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if err := p.jobs(ctx, n); err != nil {
				return err
			}
		}
		if ended || !p.flags.follow {
			if len(p.printed) == 0 && !p.a.json {
				fmt.Fprintf(p.a.stderr, "pelton: nothing of run %d has a job that began\n", p.run)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// chosen are the nodes to print now, in the order in which they started, and whether no more will come.
func (p *nodeLogs) chosen(r *flow.RunDetail) (nodes []flow.NodeRow, ended bool, err error) {
	ended = r.EndedAt != nil
	found := p.node == ""
	for _, n := range r.Nodes {
		if p.node != "" && n.Path != p.node {
			continue
		}
		found = true
		if p.node != "" && n.EndedAt != nil {
			ended = true
		}
		if n.JobID != nil {
			nodes = append(nodes, n)
		}
	}
	if !found {
		return nil, false, fmt.Errorf("run %d has no node %q: %w", p.run, p.node, flow.ErrNotFound)
	}
	slices.SortStableFunc(nodes, func(x, y flow.NodeRow) int { return cmp.Compare(*x.JobID, *y.JobID) })
	return nodes, ended, nil
}

// jobs prints what the jobs of a node printed in runs that were not printed yet. One that is to be tried again has some behind it.
func (p *nodeLogs) jobs(ctx context.Context, n flow.NodeRow) error {
	for _, id := range append(slices.Clone(n.Jobs), *n.JobID) {
		if p.over[id] {
			continue
		}
		runs, err := p.db.client.JobRuns(ctx, id)
		if err != nil {
			return err
		}
		for i, r := range runs {
			which := jobRun{id, r.Run}
			if r.StartedAt == nil || p.printed[which] {
				continue
			}
			p.printed[which] = true
			f := p.flags
			f.run, f.follow = r.Run, f.follow && i == len(runs)-1
			if p.node == "" && !p.a.json {
				fmt.Fprintf(p.a.stderr, "== %s, job %d, run %d\n", n.Path, id, r.Run)
			}
			if err := p.a.logs(ctx, p.db, id, f, p.options); err != nil {
				return err
			}
		}
		p.over[id] = id != *n.JobID || n.EndedAt != nil
	}
	return nil
}
