package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/loadtest"
)

func (a *app) loadtest() *cobra.Command {
	return parent(&cobra.Command{
		Use: "loadtest", Short: "Measure Pelton, side by side with River, on a private server", GroupID: groupRun,
		Long: `Measure Pelton, side by side with River, on a private server that is started and removed again. The database of the other
commands is not touched. With --json stdout is the report, one line; progress and tables go to stderr.`,
	}, a.drain(), a.wake(), a.idle(), a.flowLoad(), a.burst(), a.storedSchedules(), a.pages())
}

func serverFlags(f *pflag.FlagSet, engines *[]string, bin *string, byDefault string) {
	f.StringSliceVar(engines, "engine", nil, "engines to run: pelton, river (default "+byDefault+")")
	f.StringVar(bin, "postgres-bin", "", "`directory` of PostgreSQL's programs (default: looked for)")
}

// measure runs a measurement. With --json stdout is its report alone.
func (a *app) measure(
	f *pflag.FlagSet, run func(ctx context.Context, out io.Writer) (any, error), counts ...string,
) func(*cobra.Command, []string) error {
	return brief(func(ctx context.Context, _ []string) error {
		if err := positive(f, counts...); err != nil {
			return err
		}
		if !a.json {
			_, err := run(ctx, a.stdout)
			return err
		}
		report, err := run(ctx, a.stderr)
		if err != nil {
			return err
		}
		return a.document(report, nil)
	})
}

func (a *app) drain() *cobra.Command {
	var c loadtest.DrainConfig
	cmd := &cobra.Command{
		Use: "drain", Short: "Insert many no-op jobs in bulk, and work them off", Args: arguments(cobra.NoArgs),
		Example: "  pelton loadtest drain --jobs 200000 --engine pelton,river --rounds 5",
	}
	f := cmd.Flags()
	serverFlags(f, &c.Engines, &c.PGBin, "both")
	f.IntVar(&c.Jobs, "jobs", 0, "jobs per round and engine (default 200000)")
	f.IntVar(&c.Rounds, "rounds", 0, "rounds of each engine (default 5)")
	f.IntVar(&c.Workers, "workers", 0, "workers at once (default: the better of 1,000 and 2,000, for each engine)")
	f.IntVar(&c.Batch, "batch", 0, "jobs per bulk insert (default 5000)")
	f.BoolVar(&c.Pin, "pin", false, "keep a repeatable-read transaction with a snapshot open throughout")
	f.BoolVar(&c.PinWriter, "pin-writer", false, "keep a transaction that has enqueued open throughout")
	f.StringVar(&c.CPUProfile, "cpuprofile", "", "write processor profiles to files with this `prefix`")
	f.BoolVar(&c.Statements, "statements", false, "print the costliest statements")
	cmd.RunE = a.measure(f, func(ctx context.Context, out io.Writer) (any, error) { return loadtest.Drain(ctx, c, out) }, "jobs", "rounds", "workers", "batch")
	return cmd
}

func (a *app) wake() *cobra.Command {
	var c loadtest.WakeConfig
	cmd := &cobra.Command{
		Use: "wake", Short: "Measure how long an idle executor takes to start a job", Args: arguments(cobra.NoArgs),
	}
	f := cmd.Flags()
	serverFlags(f, &c.Engines, &c.PGBin, "both")
	f.IntVar(&c.Inserts, "inserts", 0, "single inserts (default 100)")
	f.DurationVar(&c.GapMin, "gap-min", 0, "shortest pause before an insert (default 100ms)")
	f.DurationVar(&c.GapMax, "gap-max", 0, "longest pause before an insert (default 1s)")
	cmd.RunE = a.measure(f, func(ctx context.Context, out io.Writer) (any, error) { return loadtest.Wake(ctx, c, out) }, "inserts")
	return cmd
}

func (a *app) idle() *cobra.Command {
	var c loadtest.IdleConfig
	cmd := &cobra.Command{
		Use: "idle", Short: "Count what an idle executor asks of the database", Args: arguments(cobra.NoArgs),
	}
	f := cmd.Flags()
	serverFlags(f, &c.Engines, &c.PGBin, "pelton")
	f.DurationVar(&c.For, "for", 0, "how long to count (default 1m)")
	f.DurationVar(&c.Settle, "settle", 0, "time between the start of a client and the count (default 10s)")
	cmd.RunE = a.measure(f, func(ctx context.Context, out io.Writer) (any, error) { return loadtest.Idle(ctx, c, out) }, "for")
	return cmd
}

func (a *app) flowLoad() *cobra.Command {
	var c loadtest.FlowConfig
	cmd := &cobra.Command{
		Use: "flow", Short: "Run large and long flows: nodes a second, and the time from a node to the next", Args: arguments(cobra.NoArgs),
	}
	f := cmd.Flags()
	f.StringVar(&c.PGBin, "postgres-bin", "", "`directory` of PostgreSQL's programs (default: looked for)")
	f.IntVar(&c.Nodes, "nodes", 0, "nodes between the first and the last of a fan (default 10000)")
	f.IntVar(&c.Chain, "chain", 0, "jobs that follow each other (default 200)")
	f.IntVar(&c.Rounds, "rounds", 0, "rounds (default 3)")
	cmd.RunE = a.measure(f, func(ctx context.Context, out io.Writer) (any, error) { return loadtest.Flow(ctx, c, out) }, "nodes", "chain", "rounds")
	return cmd
}

func (a *app) burst() *cobra.Command {
	var c loadtest.BurstConfig
	cmd := &cobra.Command{
		Use: "burst", Short: "Have many schedules come due in the same second: the time from the tick to the start of its job",
		Args: arguments(cobra.NoArgs),
	}
	f := cmd.Flags()
	f.StringVar(&c.PGBin, "postgres-bin", "", "`directory` of PostgreSQL's programs (default: looked for)")
	f.IntVar(&c.Schedules, "schedules", 0, "schedules that are due in the same second (default 10000)")
	f.IntVar(&c.Workers, "workers", 0, "jobs that run at once (default 1000)")
	f.IntVar(&c.Rounds, "rounds", 0, "rounds (default 3)")
	f.BoolVar(&c.Statements, "statements", false, "print the costliest statements")
	cmd.RunE = a.measure(f, func(ctx context.Context, out io.Writer) (any, error) { return loadtest.Burst(ctx, c, out) },
		"schedules", "workers", "rounds")
	return cmd
}

func (a *app) storedSchedules() *cobra.Command {
	var c loadtest.SchedulesConfig
	cmd := &cobra.Command{
		Use: "schedules", Short: "Measure what firing costs a second with few and with many schedules stored", Args: arguments(cobra.NoArgs),
		Example: "  pelton loadtest schedules --stored 1000,1000000 --due 100",
	}
	f := cmd.Flags()
	f.StringVar(&c.PGBin, "postgres-bin", "", "`directory` of PostgreSQL's programs (default: looked for)")
	f.IntSliceVar(&c.Stored, "stored", nil, "numbers of schedules stored (default 1000,1000000)")
	f.IntVar(&c.Due, "due", 0, "how many of them fire every second (default 100)")
	f.DurationVar(&c.For, "for", 0, "how long each is measured (default 20s)")
	f.BoolVar(&c.Statements, "statements", false, "print the costliest statements")
	cmd.RunE = a.measure(f, func(ctx context.Context, out io.Writer) (any, error) { return loadtest.Schedules(ctx, c, out) }, "due", "for")
	return cmd
}
