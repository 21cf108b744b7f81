package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/schema"
)

func (a *app) migrate() *cobra.Command {
	yes := false
	up := &cobra.Command{
		Use:   "up",
		Short: "Bring the schema to the version of this program, creating it if needed",
		Args:  arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			address, err := a.reachableMigrateAddress(ctx)
			if err != nil {
				return err
			}
			if err := schema.Up(ctx, address, a.schemaName()); err != nil {
				return err
			}
			return a.printVersion(ctx, address)
		}),
	}
	down := &cobra.Command{
		Use:   "down --yes",
		Short: "Remove everything of Pelton's from the schema: all jobs are lost",
		Args:  arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			if !yes {
				return usagef("migrate down removes all jobs, logs and dead letters from schema %q for good: say --yes if that is meant",
					a.schemaName())
			}
			address, err := a.reachableMigrateAddress(ctx)
			if err != nil {
				return err
			}
			if err := schema.Down(ctx, address, a.schemaName()); err != nil {
				return err
			}
			return a.printVersion(ctx, address)
		}),
	}
	down.Flags().BoolVar(&yes, "yes", false, "really")
	version := &cobra.Command{
		Use:   "version",
		Short: "Print the schema's version and this program's; exit code 6 if they differ",
		Args:  arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			address, err := a.reachableMigrateAddress(ctx)
			if err != nil {
				return err
			}
			return a.checkVersion(ctx, address)
		}),
	}
	return parent(&cobra.Command{Use: "migrate", Short: "Make, upgrade or remove Pelton's tables", GroupID: groupRun}, up, down, version)
}

// reachableMigrateAddress sees that the database answers, so that the error is the same everywhere.
func (a *app) reachableMigrateAddress(ctx context.Context) (string, error) {
	address, err := a.migrateAddress()
	if err != nil {
		return "", err
	}
	pool, err := a.open(ctx, address, connectionsBrief)
	if err != nil {
		return "", err
	}
	pool.Close()
	return address, nil
}

type versionJSON struct {
	Schema  string `json:"schema"`
	Version int    `json:"version"` // 0: no tables
	Program int    `json:"program"`
	OK      bool   `json:"ok"` // the two are the same
}

// checkVersion prints the version, and fails if it is not this program's. People are told once: by the error, which says what to do.
func (a *app) checkVersion(ctx context.Context, address string) error {
	pool, err := a.open(ctx, address, connectionsBrief)
	if err != nil {
		return err
	}
	defer pool.Close()
	err = schema.Check(ctx, pool, a.schemaName())
	if err != nil && !a.json {
		return err
	}
	return errors.Join(a.printVersion(ctx, address), err)
}

func (a *app) printVersion(ctx context.Context, address string) error {
	pool, err := a.open(ctx, address, connectionsBrief)
	if err != nil {
		return err
	}
	defer pool.Close()
	have, err := schema.Version(ctx, pool, a.schemaName())
	if err != nil && !errors.Is(err, schema.ErrMissing) {
		return err
	}
	v := versionJSON{a.schemaName(), have, schema.Latest(), have == schema.Latest()}
	return a.document(v, func(w io.Writer) {
		switch {
		case v.OK:
			fmt.Fprintf(w, "schema %s is at version %d, as this program needs it\n", v.Schema, v.Version)
		case v.Version == 0:
			fmt.Fprintf(w, "schema %s holds no tables of Pelton; this program needs version %d: run `pelton migrate up`\n", v.Schema, v.Program)
		default:
			fmt.Fprintf(w, "schema %s is at version %d, this program needs %d\n", v.Schema, v.Version, v.Program)
		}
	})
}
