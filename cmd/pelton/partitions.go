package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

func (a *app) partitions() *cobra.Command {
	listing := &cobra.Command{
		Use: "list", Short: "List the partitions of jobs, attempts and logs", Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withKeeper(ctx, schema.KeeperConfig{}, func(ctx context.Context, keeper *schema.Keeper, _ *jobs.Client) error {
				all, err := keeper.List(ctx)
				if err != nil {
					return err
				}
				rows := document.NewPartitions(all)
				return list(a, "PARTITION TABLE STATE START END ROWS BYTES", rows, func(p document.Partition) []any {
					rows := "-" // not estimated yet
					if p.Rows >= 0 {
						rows = strconv.FormatInt(p.Rows, 10)
					}
					return []any{p.Name, p.Table, p.State, optionalMoment(p.Start), optionalMoment(p.End), rows, p.Bytes}
				})
			})
		}),
	}
	var config schema.KeeperConfig
	var given *pflag.FlagSet
	maintain := &cobra.Command{
		Use: "maintain", Short: "Make partitions ahead and drop those past their retention, once", Args: arguments(cobra.NoArgs),
		Long: `Make partitions ahead and drop those past their retention. A pelton server does this by itself; this is for a person, or where no
server may own the tables. What cannot have its locks is postponed, which is no error: run it again.`,
		RunE: brief(func(ctx context.Context, _ []string) error {
			if err := positive(given, retentionNames...); err != nil {
				return err
			}
			return a.withKeeper(ctx, config, func(ctx context.Context, keeper *schema.Keeper, client *jobs.Client) error {
				report, err := keeper.Maintain(ctx)
				if err = errors.Join(err, client.AuditMaintenance(ctx, report)); err != nil {
					return err
				}
				return a.printReport(report)
			})
		}),
	}
	given = maintain.Flags()
	retentionFlags(given, &config.Retention)
	return parent(&cobra.Command{Use: "partitions", Short: "Look at partitions, or maintain them by hand", GroupID: groupOperate}, listing, maintain)
}

// retentionFlags say how long things are kept.
func retentionFlags(f *pflag.FlagSet, r *schema.Retention) {
	f.DurationVar(&r.Jobs, "keep-jobs", 0, "how long ended jobs are kept (default 168h)")
	f.DurationVar(&r.Logs, "keep-logs", 0, "how long logs are kept (default 72h)")
	f.DurationVar(&r.Dead, "keep-dead", 0, "how long dead letters are kept (default 2160h)")
	f.DurationVar(&r.Audit, "keep-audit", 0, "how long audit entries are kept (default 8760h)")
	f.DurationVar(&r.Ticks, "keep-ticks", 0, "how long ticks of schedules are kept (default 720h)")
}

func (a *app) withKeeper(ctx context.Context, config schema.KeeperConfig, do func(context.Context, *schema.Keeper, *jobs.Client) error) error {
	return a.withClient(ctx, func(ctx context.Context, db database) error {
		keeper, err := schema.NewKeeper(db.pool, a.schemaName(), config)
		if err != nil {
			return usage(err)
		}
		return do(ctx, keeper, db.client)
	})
}

func (a *app) printReport(r schema.Report) error {
	j := document.NewMaintenance(r)
	return a.document(j, func(w io.Writer) {
		if j.Busy {
			fmt.Fprintln(w, "another process is at it; nothing was done")
			return
		}
		fmt.Fprintf(w, "%s made ahead, %d closed, %d dropped (%s)\n", quantity.Of(len(j.Created), "partition"),
			len(j.Closed), len(j.Dropped), quantity.Say(j.Survivors, "1 job in them lives on", "%d jobs in them live on"))
		for table, n := range j.Deleted {
			if n > 0 {
				fmt.Fprintf(w, "%s of %s deleted\n", quantity.Of(n, "row"), table)
			}
		}
		for _, ahead := range r.Ahead {
			until := "no partition ahead"
			if ahead.Until != math.MaxInt64 {
				until = "enough for " + ahead.Until.Round(time.Minute).String()
			}
			fmt.Fprintf(w, "%s: %s ahead, %s\n", ahead.Table, quantity.Of(ahead.Partitions, "partition"), until)
		}
		for what, list := range map[string][]string{"kept": j.Kept, "postponed": j.Postponed, "not attached": j.Orphans} {
			if len(list) > 0 {
				fmt.Fprintf(w, "%s: %s\n", what, strings.Join(list, "; "))
			}
		}
	})
}
