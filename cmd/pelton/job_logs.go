package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/internal/span"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
)

type logFlags struct {
	run        int
	follow     bool
	head, tail int64
	streams    []string
	given      *pflag.FlagSet // all flags of the command
}

func (a *app) jobLogs() *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print what a job printed, byte for byte",
		Long: `Print what a run of a job printed, byte for byte on stdout; where bytes were not kept, stderr says how many. Without --run it is
the last run. --follow goes on until the run has ended, and waits for one that has not begun.`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			options, err := f.options()
			if err != nil {
				return err
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				run, printed, err := a.logs(ctx, db, ids[0], f, options, func(run int, c joblog.Chunk) error { return a.printChunk(origin{jobRun: jobRun{ids[0], run}}, c) })
				if err == nil && !printed {
					return a.explainNothing(ctx, db, jobRun{ids[0], run})
				}
				return err
			})
		}),
	}
	flags := cmd.Flags()
	f.given = flags
	flags.IntVar(&f.run, "run", 0, "number of the run (default: the last)")
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on until the run has ended")
	flags.Int64Var(&f.head, "head", 0, "only so many lines from the beginning")
	flags.Int64Var(&f.tail, "tail", 0, "only so many lines from the end")
	flags.StringSliceVar(&f.streams, "stream", []string{"stdout", "stderr", "log"}, "of stdout, stderr, log, progress")
	return cmd
}

func (f logFlags) options() (joblog.Options, error) {
	var o joblog.Options
	for _, wanted := range f.streams {
		if err := oneOf("stream", wanted, document.Streams()); err != nil {
			return o, err
		}
	}
	o.Streams = document.StreamsOf(f.streams)
	if err := positive(f.given, "run", "head", "tail"); err != nil {
		return o, err
	}
	if f.head > 0 && f.tail > 0 {
		return o, usagef("--head and --tail: want one of them")
	}
	o.Head.Lines, o.Tail.Lines = f.head, f.tail
	return o, nil
}

// logs hands on what a run of a job printed, and says which run that is, and whether there was anything.
func (a *app) logs(
	ctx context.Context, db database, id int64, f logFlags, options joblog.Options, show func(run int, c joblog.Chunk) error,
) (run int, printed bool, err error) {
	run, err = document.LogRun(ctx, db.pool, db.client, id, f.run, f.follow)
	if err != nil {
		return 0, false, err
	}
	var chunks iter.Seq2[joblog.Chunk, error]
	if f.follow {
		chunks = joblog.Follow(ctx, db.pool, a.schemaName(), id, run, options, func(ctx context.Context) (bool, error) {
			return joblog.Ended(ctx, db.pool, a.schemaName(), id, run)
		})
	} else {
		chunks = joblog.Read(ctx, db.pool, a.schemaName(), id, run, options)
	}
	for c, err := range chunks {
		if err != nil {
			return run, printed, err
		}
		printed = true
		if err := show(run, c); err != nil {
			return run, printed, err
		}
	}
	return run, printed, nil
}

func (a *app) printedNothing(r jobRun) {
	if !a.json {
		fmt.Fprintf(a.stderr, "pelton: run %d of job %d has printed nothing\n", r.run, r.job)
	}
}

// explainNothing says why there is nothing of a run: it printed nothing, or it has not begun, and what the job waits for.
func (a *app) explainNothing(ctx context.Context, db database, r jobRun) error {
	if a.json {
		return nil
	}
	job, err := db.client.JobGet(ctx, r.job)
	if errors.Is(err, rivertype.ErrNotFound) { // logs outlive their jobs
		a.printedNothing(r)
		return nil
	}
	if err != nil {
		return err
	}
	runs, _, err := db.client.JobRunsPart(ctx, r.job, jobs.JobRunsParams{Before: r.run + 1, Limit: 1})
	if err != nil {
		return err
	}
	waits, err := db.client.JobWaits(ctx, job)
	if err != nil {
		return err
	}
	switch known := len(runs) > 0 && runs[0].Run == r.run; {
	case known && runs[0].StartedAt != nil:
		a.printedNothing(r)
	case job.FinalizedAt != nil:
		fmt.Fprintf(a.stderr, "pelton: run %d of job %d never began: the job is %s\n", r.run, r.job, job.State)
	case known: // it was taken back, and another one waits
		fmt.Fprintf(a.stderr, "pelton: run %d of job %d never began: it was %s\n", r.run, r.job, runs[0].Outcome)
	default:
		fmt.Fprintf(a.stderr, "pelton: run %d of job %d has not begun yet\n", r.run, r.job)
	}
	if next := document.NextRun(job); next != "" {
		fmt.Fprintf(a.stderr, "pelton: job %d %s\n", r.job, next)
	}
	if waits != "" {
		fmt.Fprintf(a.stderr, "pelton: job %d waits: %s\n", r.job, waits)
	}
	return nil
}

// jobRun is a run of a job.
type jobRun struct {
	job int64
	run int
}

// origin is where a piece of a log comes from.
type origin struct {
	jobRun

	flowRun int64
	node    string // empty: of no flow
}

func (a *app) printChunk(from origin, c joblog.Chunk) error {
	if a.json {
		j := document.NewChunk(from.job, from.run, c)
		j.FlowRun, j.Node = from.flowRun, from.node
		encoder := json.NewEncoder(a.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(j)
	}
	if c.Skipped > 0 {
		fmt.Fprintf(a.stderr, "\n[... %s of %s not kept ...]\n", quantity.Of(c.Skipped, "byte"), document.StreamName(string(c.Stream)))
	}
	_, err := a.stdout.Write(c.Data)
	return err
}

// parsePast reads a time: RFC 3339, a date in UTC, or a duration back from now. Empty: zero.
func parsePast(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := span.Parse(strings.TrimPrefix(text, "-")); err == nil {
		return time.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("time %q: want RFC 3339 as 2026-01-02T15:04:05Z, a date, or a duration back from now as 2h or 3d", text)
}
