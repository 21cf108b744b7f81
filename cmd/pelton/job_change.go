package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs"

	"github.com/peltonq/pelton/admin/document"
)

// eachJob makes a command that does the same to each of some jobs. One that fails does not keep the others from it.
func (a *app) eachJob(
	use, short, long string, did func(*rivertype.JobRow) string,
	do func(ctx context.Context, db database, id int64) (*rivertype.JobRow, error),
) *cobra.Command {
	return &cobra.Command{
		Use: use + " ID...", Short: short, Long: long, Args: arguments(cobra.MinimumNArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				var faults []error
				for _, id := range ids {
					row, err := do(ctx, db, id)
					if err == nil {
						err = a.document(document.NewJob(row), func(w io.Writer) { fmt.Fprintf(w, "job %d %s\n", id, did(row)) })
					}
					if err != nil {
						faults = append(faults, err)
					}
				}
				return errors.Join(faults...)
			})
		}),
	}
}

func (a *app) jobCancel() *cobra.Command {
	return a.eachJob("cancel", "Cancel jobs that wait or run",
		`Cancel jobs. One that waits never runs; a running one's context is cancelled, within a heartbeat at the latest. A job that has
ended stays as it is.`,
		func(row *rivertype.JobRow) string {
			switch row.State { //nolint:exhaustive // the others are said as they are
			case rivertype.JobStateCancelled:
				return "is cancelled"
			case rivertype.JobStateRunning:
				return "is running: it was told to end"
			case rivertype.JobStateCompleted, rivertype.JobStateDiscarded:
				return "had ended already: it is " + string(row.State)
			}
			return "is " + string(row.State)
		},
		func(ctx context.Context, db database, id int64) (*rivertype.JobRow, error) {
			return db.client.JobCancel(ctx, id)
		})
}

func (a *app) jobRetry() *cobra.Command {
	return a.eachJob("retry", "Make jobs available now, whether ended, scheduled or pending",
		`Make jobs available now: those that ended run once more under their id, those that wait for a time or for a release enter the
line. A running one is left alone.`,
		func(row *rivertype.JobRow) string {
			if row.State == rivertype.JobStateRunning {
				return "is running: it was left alone"
			}
			return "is " + string(row.State)
		},
		func(ctx context.Context, db database, id int64) (*rivertype.JobRow, error) {
			return db.client.JobRetry(ctx, id)
		})
}

func (a *app) jobReschedule() *cobra.Command {
	var at string
	var due time.Time
	cmd := a.eachJob("reschedule", "Give jobs that are scheduled or retryable another time",
		`Give jobs that wait for their time, scheduled or retryable, another one: earlier or later; one gone by means at once. One that is available,
running or pending, or has ended, is refused, and so is one of a flow's node, whose run decides when it runs.`,
		document.NextRun,
		func(ctx context.Context, db database, id int64) (*rivertype.JobRow, error) {
			return db.client.JobReschedule(ctx, id, due, nil)
		})
	cmd.Flags().StringVar(&at, "at", "", "when they are to run: RFC 3339, or a duration from now as 10m or 3d")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if due, err = parseAt(at); err != nil {
			return err
		}
		if due.IsZero() {
			return usagef("say by --at when the jobs are to run")
		}
		return run(cmd, args)
	}
	return cmd
}

func (a *app) jobDelete() *cobra.Command {
	return a.eachJob("delete", "Delete jobs that do not run, with their attempts",
		`Delete jobs with their attempts. A running one is refused: cancel it first. Logs and dead letters stay until their retention.`,
		func(*rivertype.JobRow) string { return "is deleted" },
		func(ctx context.Context, db database, id int64) (*rivertype.JobRow, error) {
			return db.client.JobDelete(ctx, id)
		})
}

func (a *app) jobErase() *cobra.Command {
	return &cobra.Command{
		Use: "erase ID...", Short: "Blank what ended jobs held, for privacy: args, outputs, errors, logs", Args: arguments(cobra.MinimumNArgs(1)),
		Long: `Blank what jobs that have ended held, in all places: args, tags, metadata, unique keys, outputs, errors with their traces, logs, dead letters;
of a flow's node also its outputs and its run's parameters. Ids, kinds, queues, times and outcomes stay. It cannot be undone, and an erased job
does not run again. One that has not ended is refused: cancel it first.`,
		RunE: brief(func(ctx context.Context, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				var faults []error
				erased := false
				for _, id := range ids {
					done, err := db.client.JobErase(ctx, id)
					if err == nil {
						erased = true
						err = a.document(document.NewErased(id, done), func(w io.Writer) { fmt.Fprintf(w, "job %d %s\n", id, erasedText(done)) })
					}
					if err != nil {
						faults = append(faults, err)
					}
				}
				if erased && !a.json {
					fmt.Fprintln(a.stderr, "not erased: "+document.NotErased)
				}
				return errors.Join(faults...)
			})
		}),
	}
}

// erasedText says what was blanked.
func erasedText(done *jobs.Erased) string {
	if !done.Changed {
		return "held nothing any more"
	}
	text := "is erased"
	if len(done.Jobs) > 1 {
		text += fmt.Sprintf(", with jobs %d by redrives", done.Jobs[1:])
	}
	var parts []string
	for _, part := range []struct {
		n         int
		one, many string
	}{
		{done.Attempts, "1 run", "%d runs"},
		{done.LogChunks, "1 piece of log", "%d pieces of log"},
		{done.DeadLetters, "1 dead letter", "%d dead letters"},
		{done.Nodes, "1 node of a flow", "%d nodes of flows"},
		{done.Runs, "1 run of a flow, which cannot be retried", "%d runs of flows, which cannot be retried"},
		{done.Answers, "1 answer of the API", "%d answers of the API"},
		{done.Notices, "1 alert or notice", "%d alerts and notices"},
	} {
		if part.n > 0 {
			parts = append(parts, quantity.Say(part.n, part.one, part.many))
		}
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}
