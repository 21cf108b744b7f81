package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
)

// streamNames are the streams of a log by what joblog calls them.
var streamNames = []struct {
	name string
	kind byte
}{{"stdout", joblog.Stdout}, {"stderr", joblog.Stderr}, {"log", joblog.LogLines}, {"progress", joblog.Reports}}

func streamName(kind string) string {
	for _, s := range streamNames {
		if string(s.kind) == kind {
			return s.name
		}
	}
	return kind
}

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
					a.printedNothing(jobRun{ids[0], run})
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
	var names []string
	for _, s := range streamNames {
		names = append(names, s.name)
	}
	for _, wanted := range f.streams {
		if err := oneOf("stream", wanted, names); err != nil {
			return o, err
		}
		for _, s := range streamNames {
			if s.name == wanted {
				o.Streams += string(s.kind)
			}
		}
	}
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
	run, err = a.runOf(ctx, db, id, f)
	if err != nil {
		return 0, false, err
	}
	var chunks iter.Seq2[joblog.Chunk, error]
	if f.follow {
		chunks = joblog.Follow(ctx, db.pool, a.schemaName(), id, run, options, func(ctx context.Context) (bool, error) {
			return runEnded(ctx, db.client, id, run)
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

// runOf finds the run that is meant: the last that began, or, to follow a job that waits, the next. Logs outlive their jobs.
func (a *app) runOf(ctx context.Context, db database, id int64, f logFlags) (int, error) {
	sizes, err := joblog.Sizes(ctx, db.pool, a.schemaName(), id)
	if err != nil {
		return 0, err
	}
	row, err := db.client.JobGet(ctx, id)
	if errors.Is(err, rivertype.ErrNotFound) && len(sizes) > 0 && f.run == 0 {
		return sizes[len(sizes)-1].Run, nil
	}
	if slices.ContainsFunc(sizes, func(s joblog.Size) bool { return s.Run == f.run }) {
		return f.run, nil
	}
	if err != nil {
		return 0, err
	}
	runs, err := db.client.JobRuns(ctx, id)
	if err != nil {
		return 0, err
	}
	if f.run > 0 {
		next := row.FinalizedAt == nil && f.run == len(runs)+1 // it may be waited for
		if next && f.follow || slices.ContainsFunc(runs, func(r jobs.JobRun) bool { return r.Run == f.run }) {
			return f.run, nil
		}
		return 0, fmt.Errorf("run %d of job %d: %w; there were %d", f.run, id, rivertype.ErrNotFound, len(runs))
	}
	last, goesOn := 0, false
	for _, r := range runs {
		if r.StartedAt != nil {
			last, goesOn = r.Run, r.EndedAt == nil
		}
	}
	waits := row.FinalizedAt == nil && row.State != rivertype.JobStateRunning
	switch {
	case waits && f.follow && len(runs) > 0 && !goesOn:
		return runs[len(runs)-1].Run + 1, nil
	case last == 0:
		return 1, nil
	}
	return last, nil
}

// runEnded tells whether nothing more can come from a run: it has ended, or its job is gone.
func runEnded(ctx context.Context, client *jobs.Client, id int64, run int) (bool, error) {
	runs, err := client.JobRuns(ctx, id)
	if err != nil {
		return false, err
	}
	for _, r := range runs {
		if r.Run == run {
			return r.EndedAt != nil, nil
		}
	}
	row, err := client.JobGet(ctx, id)
	if errors.Is(err, rivertype.ErrNotFound) {
		return true, nil
	}
	return err == nil && row.FinalizedAt != nil, err
}

// chunkJSON is a piece of a log. It has text, or base64 where the bytes are not valid UTF-8.
type chunkJSON struct {
	FlowRun int64     `json:"flow_run,omitempty"` // of which the job is a node
	Node    string    `json:"node,omitempty"`
	Job     int64     `json:"job_id"`
	Run     int       `json:"run"`
	Stream  string    `json:"stream"`
	At      time.Time `json:"at"`
	Pos     int64     `json:"pos"`     // of its first byte in its stream
	Skipped int64     `json:"skipped"` // bytes before it that were not kept
	Text    *string   `json:"text,omitempty"`
	Base64  []byte    `json:"base64,omitempty"`
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
		j := chunkJSON{FlowRun: from.flowRun, Node: from.node, Job: from.job, Run: from.run, Stream: streamName(string(c.Stream)), At: c.At.UTC(), Pos: c.Pos, Skipped: c.Skipped}
		if text := string(c.Data); utf8.ValidString(text) {
			j.Text = &text
		} else {
			j.Base64 = c.Data
		}
		encoder := json.NewEncoder(a.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(j)
	}
	if c.Skipped > 0 {
		fmt.Fprintf(a.stderr, "\n[... %d bytes of %s not kept ...]\n", c.Skipped, streamName(string(c.Stream)))
	}
	_, err := a.stdout.Write(c.Data)
	return err
}

// parsePast reads a time: RFC 3339, or a duration back from now. Empty: zero.
func parsePast(text string) (time.Time, error) {
	if d, err := time.ParseDuration(strings.TrimPrefix(text, "-")); err == nil {
		return time.Now().Add(-d), nil
	}
	t, err := parseAt(text)
	if err != nil {
		return t, usagef("time %q: want RFC 3339 as 2026-01-02T15:04:05Z, or a duration back from now as 2h", text)
	}
	return t, nil
}
