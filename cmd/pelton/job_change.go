package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"

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

func (a *app) jobDelete() *cobra.Command {
	return a.eachJob("delete", "Delete jobs that do not run, with their attempts",
		`Delete jobs with their attempts. A running one is refused: cancel it first. Logs and dead letters stay until their retention.`,
		func(*rivertype.JobRow) string { return "is deleted" },
		func(ctx context.Context, db database, id int64) (*rivertype.JobRow, error) {
			return db.client.JobDelete(ctx, id)
		})
}
