package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/grant"
)

// grantsWanted is what a command line asks for.
type grantsWanted struct {
	as, to        string
	print, revoke bool
}

func (a *app) grants() *cobra.Command {
	var w grantsWanted
	cmd := &cobra.Command{
		Use:     "grants --as ROLE --to DBROLE",
		Short:   "Give a role of the database the rights that it needs, and no more",
		GroupID: groupRun,
		Long: `Give a role of the database the rights on Pelton's tables that it needs for what it is to do. ROLE is one of these, or several with commas:

  enqueuer   enqueues jobs, unique ones too, by Go, SQL or triggers; reads none
  starter    starts runs of flows in its own transactions (flow.Client.RunTx)
  worker     works jobs and writes their logs: pelton worker
  scheduler  has duties, advances flows, fires schedules: pelton server --listen ''
  auditor    reads everything but passwords, tokens and sessions
  admin      operates, and serves the page and the API: pelton server is scheduler,admin

The role must exist (CREATE ROLE ... LOGIN). Connect as the owner of the tables, who migrated them (env PELTON_MIGRATE_DATABASE_URL, if
that is set). Giving twice does no harm; partitions that are made later need nothing. What is given is listed in docs/operations.md.`,
		Example: `  pelton grants --as worker,enqueuer --to app
  pelton grants --as auditor --to auditor --print
  pelton grants --as enqueuer --to app --revoke   # takes back what it was given beyond that
  pelton grants --to app --revoke                 # takes back all`,
		Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error { return a.giveGrants(ctx, w) }),
	}
	f := cmd.Flags()
	f.StringVar(&w.as, "as", "", "what it is to do: `ROLE` or ROLE,ROLE")
	f.StringVar(&w.to, "to", "", "role of the database: `DBROLE`")
	f.BoolVar(&w.print, "print", false, "print the SQL and change nothing; without --revoke no database is asked")
	f.BoolVar(&w.revoke, "revoke", false, "also take back what it was given in the schema and does not need for that; without --as, all")
	return cmd
}

type grantsJSON struct {
	To         string   `json:"to"`
	Schema     string   `json:"schema"`
	Done       bool     `json:"done"` // false: only printed
	Statements []string `json:"statements"`
}

func (a *app) giveGrants(ctx context.Context, w grantsWanted) error {
	switch {
	case w.to == "":
		return usagef("--to is missing: the role of the database")
	case w.as == "" && !w.revoke:
		return usagef("--as is missing: what %s is to do; without it, --revoke takes all back", w.to)
	}
	var roles []grant.Role
	if w.as != "" {
		var err error
		if roles, err = grant.ParseRoles(w.as); err != nil {
			return usagef("--as: %w", err)
		}
	}
	statements, err := grant.Statements(a.schemaName(), w.to, roles...)
	if err != nil {
		return usage(err)
	}
	if w.print && !w.revoke {
		return a.printGrants(w, statements)
	}
	address, err := a.migrateAddress()
	if err != nil {
		return err
	}
	pool, err := a.open(ctx, address, connectionsBrief)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := schema.Check(ctx, pool, a.schemaName()); err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := grant.CheckRole(ctx, tx, a.schemaName(), w.to); err != nil {
			return err
		}
		if w.revoke {
			surplus, err := grant.Surplus(ctx, tx, a.schemaName(), w.to, roles...)
			if err != nil {
				return err
			}
			statements = append(surplus, statements...)
		}
		if w.print || len(statements) == 0 {
			return nil
		}
		_, err := tx.Exec(ctx, strings.Join(statements, ";\n"), pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	return a.printGrants(w, statements)
}

func (a *app) printGrants(w grantsWanted, statements []string) error {
	return a.document(grantsJSON{w.to, a.schemaName(), !w.print, document.Texts(statements)}, func(out io.Writer) {
		switch {
		case w.print:
			for _, statement := range statements {
				fmt.Fprintln(out, statement+";")
			}
		case w.as == "":
			fmt.Fprintf(out, "%s has no rights any more in schema %s\n", w.to, a.schemaName())
		default:
			fmt.Fprintf(out, "%s may do what it needs as %s in schema %s\n", w.to, w.as, a.schemaName())
		}
	})
}
