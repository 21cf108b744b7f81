package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
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
byte, and of an embedded flow or a for_each those in it; of all attempts. --follow goes on until the run, or the node, has ended, and prints nodes that run side by side as they print
their lines.`,
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
				p := &nodeLogs{a: a, db: db, flows: flows, run: run, node: node, several: node == "", flags: f, options: options, printed: map[jobRun]bool{}, over: map[int64]bool{}, followed: map[int64]bool{}}
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

// nodeLogs prints the logs of a run's nodes, those of each run of their jobs once. Of all nodes those that run are followed side by side.
type nodeLogs struct {
	a       *app
	db      database
	flows   *flow.Client
	run     int64
	node    string // empty: all; of an embedded flow or a for_each: whatever is in it
	several bool   // there may be more nodes than one
	flags   logFlags
	options joblog.Options
	printed map[jobRun]bool
	over    map[int64]bool // jobs that have no more to print

	followers sync.WaitGroup
	mu        sync.Mutex     // guards what follows, and the output
	followed  map[int64]bool // jobs of which somebody follows a run
	last      origin         // what was printed last
}

// mostFollowed is how many nodes are followed at once: each looks again every two seconds or more often. Others wait for one to end.
const mostFollowed = 100

func (p *nodeLogs) print(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	err := p.rounds(ctx, cancel)
	cancel(err) // the first cause stays, if a follower had one
	p.followers.Wait()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// rounds prints what there is, time and again until nothing more can come. Followers end it by fail.
func (p *nodeLogs) rounds(ctx context.Context, fail context.CancelCauseFunc) error {
	for {
		r, err := p.flows.Get(ctx, p.run)
		if err != nil {
			return err
		}
		nodes, ended, err := p.chosen(r)
		if err != nil {
			return err
		}
		if ended {
			p.followers.Wait()
		}
		for _, n := range nodes {
			if err := p.jobs(ctx, n, fail); err != nil {
				return err
			}
		}
		if ended || !p.flags.follow {
			if len(p.printed) == 0 && !p.a.json {
				what := "nothing"
				if p.node != "" {
					what = "nothing of node " + p.node
				}
				fmt.Fprintf(p.a.stderr, "pelton: %s of run %d has a job that began\n", what, p.run)
			}
			return context.Cause(ctx)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// chosen are the nodes to print now, in the order in which they started, and whether no more will come.
func (p *nodeLogs) chosen(r *flow.RunDetail) (nodes []flow.NodeRow, ended bool, err error) {
	ended = r.EndedAt != nil
	found := p.node == ""
	for _, n := range r.Nodes {
		itself := n.Path == p.node
		if p.node != "" && !itself && !strings.HasPrefix(n.Path, p.node+":") && !strings.HasPrefix(n.Path, p.node+"[") {
			continue
		}
		found = found || itself
		ended = ended || itself && n.EndedAt != nil
		if !itself {
			p.mu.Lock()
			p.several = true // only the rounds write it, so they read it without the lock
			p.mu.Unlock()
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
func (p *nodeLogs) jobs(ctx context.Context, n flow.NodeRow, fail context.CancelCauseFunc) error {
	for _, id := range append(slices.Clone(n.Jobs), *n.JobID) {
		busy, full := p.following(id)
		if p.over[id] || busy {
			continue
		}
		runs, err := p.db.client.JobRuns(ctx, id)
		if err != nil {
			return err
		}
		for i, r := range runs {
			from := origin{jobRun{id, r.Run}, p.run, n.Path}
			if r.StartedAt == nil || p.printed[from.jobRun] {
				continue
			}
			live := p.flags.follow && i == len(runs)-1 && r.EndedAt == nil
			beside := live && p.several
			if beside && full {
				return nil
			}
			p.printed[from.jobRun] = true
			if !beside {
				if err := p.show(ctx, from, live, p.several); err != nil {
					return err
				}
				continue
			}
			busy = true
			p.follow(ctx, from, fail)
		}
		p.over[id] = !busy && (id != *n.JobID || n.EndedAt != nil)
	}
	return nil
}

// following tells whether a run of a job is being followed, and whether no more can be.
func (p *nodeLogs) following(job int64) (busy, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.followed[job], len(p.followed) >= mostFollowed
}

// follow prints a run of a job until its end, beside others.
func (p *nodeLogs) follow(ctx context.Context, from origin, fail context.CancelCauseFunc) {
	p.mu.Lock()
	p.followed[from.job] = true
	p.mu.Unlock()
	p.followers.Go(func() {
		if err := p.show(ctx, from, true, true); err != nil {
			fail(err)
		}
		p.mu.Lock()
		delete(p.followed, from.job)
		p.mu.Unlock()
	})
}

// show prints what a run of a job printed. Of nodes that are followed side by side, one of several, only whole lines are, each under its node's name.
func (p *nodeLogs) show(ctx context.Context, from origin, live, several bool) error {
	f := p.flags
	f.run, f.follow = from.run, live
	var lines lines
	_, printed, err := p.a.logs(ctx, p.db, from.job, f, p.options, func(_ int, c joblog.Chunk) error {
		if !p.flags.follow || !several || p.a.json {
			return p.chunks(from, c)
		}
		return p.chunks(from, lines.add(c)...)
	})
	if err == nil {
		err = p.chunks(from, lines.rest()...)
	}
	if err == nil && !printed {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.head(from)
		if !several {
			return p.a.explainNothing(ctx, p.db, from.jobRun)
		}
		p.a.printedNothing(from.jobRun)
	}
	return err
}

// lines keeps what has no end of line yet, of each stream, so that lines stay whole.
type lines map[byte]joblog.Chunk

// longestLine is how many bytes without an end of line are kept back.
const longestLine = 64 << 10

// add returns what can be printed now that there is more.
func (l *lines) add(c joblog.Chunk) (whole []joblog.Chunk) {
	if *l == nil {
		*l = lines{}
	}
	before, open := (*l)[c.Stream]
	delete(*l, c.Stream)
	switch {
	case c.Skipped > 0: // the line that was open does not go on
		if open {
			whole = append(whole, before)
		}
		whole = append(whole, joblog.Chunk{Stream: c.Stream, Skipped: c.Skipped})
		c.Skipped = 0
	case open:
		c.Data = append(slices.Clone(before.Data), c.Data...)
	}
	end := bytes.LastIndexByte(c.Data, '\n') + 1
	if len(c.Data)-end > longestLine {
		end = len(c.Data)
	}
	if end < len(c.Data) {
		rest := c
		rest.Data = c.Data[end:]
		(*l)[c.Stream] = rest
	}
	c.Data = c.Data[:end]
	return append(whole, c)
}

// rest returns what is kept back.
func (l *lines) rest() (rest []joblog.Chunk) {
	for _, stream := range slices.Sorted(maps.Keys(*l)) {
		rest = append(rest, (*l)[stream])
	}
	return rest
}

func (p *nodeLogs) chunks(from origin, list ...joblog.Chunk) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range list {
		if len(c.Data) == 0 && c.Skipped == 0 {
			continue
		}
		p.head(from)
		if err := p.a.printChunk(from, c); err != nil {
			return err
		}
	}
	return nil
}

// head says what is printed from here on, if that changes.
func (p *nodeLogs) head(from origin) {
	if p.last != from && p.several && !p.a.json {
		fmt.Fprintf(p.a.stderr, "== %s, job %d, run %d\n", from.node, from.job, from.run)
	}
	p.last = from
}
