package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/internal/suggest"
	"github.com/peltonq/pelton/jobs/trace"
)

// app is what all commands share: where they read and print, and the global flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string

	databaseURL        string
	migrateDatabaseURL string
	schema             string
	dataDir            string
	json               bool
	verbose            bool
	secretKeyFile      string

	isDev   bool   // the command is dev
	fromDev string // the file that said where the database is, if one did
	role    string // of the database, as which the last pool connects

	tracer *trace.Tracer // nil: nothing is traced
}

// run is the whole program: it executes one command line and returns the exit code. ctx's end is an interrupt.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: env}
	root := a.root() //nolint:contextcheck // commands get their contexts from cobra; what serves has two, in stops
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	return a.fail(ran, args, err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "pelton",
		Short: "A job queue that needs nothing but PostgreSQL",
		Long: `Pelton is a job queue that needs nothing but PostgreSQL.

pelton dev runs everything on this machine. The other commands work on the database of --database-url, else of DATABASE_URL, else of
the pelton dev that runs here.

Exit codes: 0 done, 1 failed, 2 used wrongly, 3 not found, 4 refused, 5 database unreachable, 6 schema missing or of another
version, 130 interrupted.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
	}
	root.SetVersionTemplate("pelton {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(flagFault(err)) })
	flags := root.PersistentFlags()
	flags.StringVar(&a.databaseURL, "database-url", "", "database `URL` (env DATABASE_URL; else that of a running pelton dev)")
	flags.StringVar(&a.migrateDatabaseURL, "migrate-database-url", "",
		"database `URL` for migrations, past a pooler (env PELTON_MIGRATE_DATABASE_URL; default: the database URL)")
	flags.StringVar(&a.schema, "schema", "", "Postgres schema (env PELTON_SCHEMA; default \"pelton\")")
	flags.StringVar(&a.dataDir, "data-dir", "",
		"`directory` of pelton dev's own database (env PELTON_DATA_DIR; default: a place in the user's home, /var/lib/pelton/dev for root)")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say more on stderr")
	root.AddGroup(&cobra.Group{ID: groupRun, Title: "Run:"}, &cobra.Group{ID: groupOperate, Title: "Operate:"})
	return parent(root, a.dev(), a.migrate(), a.worker(), a.server(), a.loadtest(),
		a.job(), a.flow(), a.schedule(), a.queue(), a.dead(), a.partitions(), a.check(), a.audit(), a.alert(), a.executor(), a.user(), a.token(), a.secret(), a.grants())
}

const (
	groupRun     = "run"
	groupOperate = "operate"
)

// interruptible ends ctx at the first of stopSignals, for commands that do one thing and return.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, stopSignals()...)
}

// brief wraps a command that does one thing: it is interruptible, and wrong arguments are told apart.
func brief(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := interruptible(cmd.Context())
		defer cancel()
		context.AfterFunc(ctx, cancel) // a second signal ends the process at once
		err := do(ctx, args)
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("%w: %w", errInterrupted, err)
		}
		return err
	}
}

// arguments makes cobra's complaints about positional arguments usage errors.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			if len(args) > 0 && strings.HasPrefix(err.Error(), "unknown command") { // cobra's words for what takes no arguments
				err = fmt.Errorf("unexpected argument %q", args[0])
			}
			return usage(fmt.Errorf("%w\nUsage: %s", err, cmd.UseLine()))
		}
		return nil
	}
}

// parent makes a command that only groups others. Called with an unknown word, it names what is near.
func parent(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(children...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var names []string
		for _, c := range children {
			names = append(names, c.Name())
		}
		return usage(fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), suggest.Near(args[0], names)))
	}
	return cmd
}

// logger writes to stderr: warnings and more, everything with -v. Servers say what they do anyway.
func (a *app) logger(level slog.Level) *slog.Logger {
	if a.verbose {
		level = slog.LevelDebug
	}
	options := &slog.HandlerOptions{Level: level}
	if a.json {
		return slog.New(trace.NewHandler(slog.NewJSONHandler(a.stderr, options)))
	}
	return slog.New(trace.NewHandler(slog.NewTextHandler(a.stderr, options)))
}

// note says something on stderr with -v.
func (a *app) note(format string, args ...any) {
	if a.verbose {
		fmt.Fprintf(a.stderr, "pelton: "+format+"\n", args...)
	}
}

// version is the module's, with the commit where the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(text, s.Value[:min(12, len(s.Value))]) {
			text += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return strings.TrimSpace(text + " " + info.GoVersion)
}

var errInterrupted = errors.New("interrupted")
