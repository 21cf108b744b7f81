package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

func (a *app) jobEnqueue() *cobra.Command {
	var one enqueueOne
	var many enqueueFile
	cmd := &cobra.Command{
		Use:   "enqueue KIND [flags] | enqueue --file FILE",
		Short: "Enqueue one job, or many from a file of JSON lines",
		Long: `Enqueue one job of a kind, or with --file all that a file holds, one JSON object a line:

  {"kind":"command","args":{"command":"echo hello"},"queue":"etl","priority":2,"at":"2026-01-02T15:04:05Z",
   "tags":["nightly"],"max_attempts":3,"metadata":{},"unique_key":"report-7"}

Only kind is required. Lines go in by batches of 5,000, each all or not at all; an error names its line, and from which line to
resume.`,
		Example: `  pelton job enqueue command --args '{"command":"echo hello"}' --tag try
  pelton job enqueue noop --at 10m --unique-key only-one
  pelton job enqueue --file jobs.jsonl`,
		Args: arguments(cobra.MaximumNArgs(1)),
	}
	f := cmd.Flags()
	f.StringVar(&one.args, "args", "{}", "args as `JSON`, or @FILE, or @- for stdin")
	f.StringVar(&one.queue, "queue", "", "queue (default \"default\")")
	f.IntVar(&one.priority, "priority", 0, "1 (first) to 4 (default 1)")
	f.StringVar(&one.at, "at", "", "when to run: RFC 3339, or a duration from now as 10m or 3d")
	f.IntVar(&one.maxAttempts, "max-attempts", 0, "attempts before it becomes a dead letter (default 25)")
	f.StringVar(&one.uniqueKey, "unique-key", "", "skip if a job of this kind and key is there")
	f.StringArrayVar(&one.tags, "tag", nil, "tag; may be repeated")
	f.StringVar(&one.metadata, "metadata", "", "metadata, a `JSON` object")
	f.BoolVar(&one.pending, "pending", false, "do not run it until job retry releases it")
	f.StringVar(&many.path, "file", "", "enqueue the jobs of a `FILE` of JSON lines; - for stdin")
	f.IntVar(&many.from, "from-line", 1, "with --file: begin with this line")
	var traces traceSettings
	traces.flags(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := positive(f, "priority", "max-attempts", "from-line"); err != nil {
			return err
		}
		if f.Changed("file") {
			return many.check(cmd, args, func() error {
				return brief(a.traced(&traces, func(ctx context.Context, _ []string) error { return a.enqueueFile(ctx, many) }))(cmd, args)
			})
		}
		if len(args) == 0 {
			return usagef("which kind of job? Name it, or a file of jobs with --file")
		}
		if f.Changed("from-line") {
			return usagef("--from-line goes with --file")
		}
		return brief(a.traced(&traces, func(ctx context.Context, args []string) error { return a.enqueueOne(ctx, args[0], one) }))(cmd, args)
	}
	return cmd
}

// enqueueOne is what the flags say of one job.
type enqueueOne struct {
	args, queue, at, uniqueKey, metadata string
	priority, maxAttempts                int
	tags                                 []string
	pending                              bool
}

// newJob is what is to be inserted, or everything that is wrong with it.
func (a *app) newJob(kind string, one enqueueOne) (args jobs.RawArgs, opts *river.InsertOpts, err error) {
	var faults []error
	args = jobs.RawArgs{JobKind: kind, UniqueKey: one.uniqueKey}
	opts = &river.InsertOpts{
		Queue: one.queue, Priority: one.priority, MaxAttempts: one.maxAttempts, Tags: one.tags, Metadata: []byte(one.metadata), Pending: one.pending,
	}
	if args.JSON, err = a.readArgs(one.args); err != nil {
		faults = append(faults, err)
	} else if err := document.CheckBuiltIn(kind, args.JSON); err != nil {
		faults = append(faults, err)
	}
	if err := jobs.CheckMetadata(opts.Metadata); err != nil {
		faults = append(faults, err)
	}
	if opts.ScheduledAt, err = parseAt(one.at); err != nil {
		faults = append(faults, err)
	}
	if invalid, is := errors.AsType[*jobs.InvalidJobError](jobs.CheckInsert(args, opts)); is {
		faults = append(faults, invalid.Err)
	}
	if len(faults) > 0 {
		return args, opts, usagef("job of kind %q: %w", kind, errors.Join(faults...))
	}
	return args, opts, nil
}

func (a *app) enqueueOne(ctx context.Context, kind string, one enqueueOne) error {
	args, opts, err := a.newJob(kind, one)
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(ctx context.Context, db database) error {
		var result *rivertype.JobInsertResult
		err := pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			if result, err = db.client.InsertTx(ctx, tx, args, opts); err != nil {
				return err
			}
			return db.client.AuditInsertTx(ctx, tx, jobs.EnqueuedResults(result))
		})
		if err != nil {
			return err
		}
		if !a.json && !result.UniqueSkippedAsDuplicate {
			a.hintWorked(ctx, db.client, kind)
		}
		answer := document.EnqueuedJob{Job: document.NewJob(result.Job), Duplicate: result.UniqueSkippedAsDuplicate}
		return a.document(answer, func(w io.Writer) {
			if answer.Duplicate {
				fmt.Fprintf(w, "not enqueued: job %d holds the unique key\n", answer.ID)
				return
			}
			fmt.Fprintf(w, "job %d enqueued: %s in queue %s, %s\n", answer.ID, answer.Kind, answer.Queue, answer.State)
		})
	})
}

// hintWorked says so if no executor that is alive works a kind. What cannot be looked up is not said.
func (a *app) hintWorked(ctx context.Context, client *jobs.Client, kind string) {
	executors, err := client.ExecutorList(ctx, &jobs.ExecutorListParams{Limit: 10_000})
	works := func(e jobs.Executor) bool { return e.State == "alive" && slices.Contains(e.Kinds, kind) }
	if err == nil && !slices.ContainsFunc(executors, works) {
		fmt.Fprintf(a.stderr, "pelton: no executor that is alive works jobs of kind %q: it waits for one\n", kind)
	}
}

// readArgs takes args from the command line, from a file or from stdin, and checks that they are JSON.
func (a *app) readArgs(text string) (json.RawMessage, error) {
	from := "--args"
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		var content []byte
		var err error
		if path == "-" {
			from = "stdin"
			content, err = io.ReadAll(io.LimitReader(a.stdin, jobs.MaxArgsBytes+1))
		} else {
			from = path
			content, err = os.ReadFile(path)
		}
		if err != nil {
			return nil, usagef("args: %w", err)
		}
		text = string(content)
	}
	var value json.RawMessage
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, usagef("args from %s are not JSON: %w", from, err)
	}
	return value, nil
}
