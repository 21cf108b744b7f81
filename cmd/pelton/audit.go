package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

func (a *app) audit() *cobra.Command {
	params := jobs.AuditListParams{Limit: 100}
	since := ""
	var given *pflag.FlagSet
	listing := &cobra.Command{
		Use: "list", Short: "List who changed what, newest first", Args: arguments(cobra.NoArgs),
		Example: "  pelton audit list --action job.cancel --since 24h",
		RunE: brief(func(ctx context.Context, _ []string) (err error) {
			if err := positive(given, "before"); err != nil {
				return err
			}
			if err := checkLimit(params.Limit); err != nil {
				return err
			}
			if params.Since, err = parsePast(since); err != nil {
				return err
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				entries, err := db.client.AuditList(ctx, &params)
				if err != nil {
					return err
				}
				rows := document.NewAuditEntries(entries)
				err = list(a, "ID AT ACTOR TOKEN ROLE ACTION TARGET BEFORE AFTER", rows, func(e document.AuditEntry) []any {
					return []any{e.ID, moment(e.At), e.Actor, usedToken(e.Token), e.Role, e.Action, e.Target, string(e.Before), string(e.After)}
				})
				if err == nil && len(rows) == params.Limit {
					a.mayBeMore("before", rows[len(rows)-1].ID)
				}
				return err
			})
		}),
	}
	f := listing.Flags()
	given = f
	f.StringVar(&params.Target, "target", "", "only changes of this job id, queue, ...")
	f.StringVar(&params.Action, "action", "", "only this action: job.cancel, queue.pause, dead.redrive, ...")
	f.StringVar(&params.Actor, "actor", "", "only changes by this actor")
	f.StringVar(&since, "since", "", "only changes since: RFC 3339, a date in UTC, or a duration back as 2h or 3d")
	f.Int64Var(&params.Before, "before", 0, "continue a list: only entries with smaller `ID`s")
	f.IntVar(&params.Limit, "limit", params.Limit, "at most so many, 1 to 10,000")
	return parent(&cobra.Command{Use: "audit", Short: "See who changed what", GroupID: groupOperate}, listing)
}

// usedToken is an API token in a cell: its number, and its name behind.
func usedToken(t *document.AuditToken) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%d %s", t.ID, t.Name)
}

func (a *app) executor() *cobra.Command {
	params := jobs.ExecutorListParams{Limit: 100}
	listing := &cobra.Command{
		Use: "list", Short: "List processes that work jobs, newest first", Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			if err := checkLimit(params.Limit); err != nil {
				return err
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				executors, err := db.client.ExecutorList(ctx, &params)
				if err != nil {
					return err
				}
				rows := document.NewExecutors(executors)
				return list(a, "ID NAME HOST PID STATE STARTED BEAT RUNNING SLOTS QUEUES KINDS", rows, func(e document.Executor) []any {
					return []any{
						e.ID, e.Name, e.Host, e.PID, e.State, moment(e.StartedAt), moment(e.BeatAt), e.Running, e.Slots,
						strings.Join(e.Queues, ","), strings.Join(e.Kinds, ","),
					}
				})
			})
		}),
	}
	listing.Flags().BoolVar(&params.Ended, "ended", false, "also those that have stopped or died")
	listing.Flags().IntVar(&params.Limit, "limit", params.Limit, "at most so many, 1 to 10,000")
	return parent(&cobra.Command{Use: "executor", Short: "See who works", GroupID: groupOperate}, listing)
}
