package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/internal/postgres"
	"github.com/peltonq/pelton/schema"
)

func (a *app) dev() *cobra.Command {
	s := serving{duties: true}
	binDir := ""
	cmd := &cobra.Command{
		Use:     "dev",
		Short:   "Run everything on this machine: database, scheduler, executor, endpoint",
		GroupID: groupRun,
		Long: `Run everything for development: migrates the database, runs the scheduler, an executor for the built-in kinds
(commands, nodes of flows, notices, noop) and the page, the API and metrics, and prints where everything is.

The database is DATABASE_URL if that is set. Otherwise a private PostgreSQL server runs on 127.0.0.1 while pelton dev does; its
data stay in the data directory. The server's programs are those of this machine, or are downloaded. Other pelton commands of
the same user find it by themselves.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.isDev = true
			s.fallback = !cmd.Flags().Changed("listen")
			stop := listenForStops(cmd.Context())
			defer stop.release()
			err := a.runDev(stop, s, binDir)
			if err != nil && stop.soft.Err() != nil && errors.Is(err, context.Canceled) {
				return fmt.Errorf("%w before all was started", errInterrupted)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&s.queues, "queues", fmt.Sprintf("default:%d", defaultSlots), "queues and how many of their jobs to run at once")
	cmd.Flags().StringVar(&s.listen, "listen", admin.DefaultListen, "`address` of the page, the API, health and metrics; if taken and not given: any port")
	retentionFlags(cmd.Flags(), &s.retention)
	cmd.Flags().StringVar(&binDir, "postgres-bin", "", "`directory` of PostgreSQL's programs (default: looked for)")
	s.access.flags(cmd.Flags())
	s.alerts.flags(cmd.Flags())
	s.flags(cmd.Flags())
	a.secretKeyFlag(cmd.Flags())
	return cmd
}

func (a *app) runDev(stop *stops, s serving, binDir string) (err error) {
	if err := s.check(); err != nil {
		return err
	}
	if address, from := a.givenURL(); address != "" {
		a.note("database from %s", from)
		return a.serveDev(stop, address, s, nil, nil, "")
	}
	dir, err := a.dataDirectory()
	if err != nil {
		return err
	}
	cluster, err := a.startPrivate(stop.soft, dir, binDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopPrivate(stop.soft, cluster)) }()
	if err := a.useDevKeys(dir); err != nil {
		return fmt.Errorf("keys of secrets: %w", err)
	}
	failed := make(chan error, 1)
	watched := make(chan struct{})
	defer func() { <-watched }()
	ended, cancel := context.WithCancel(context.WithoutCancel(stop.soft))
	defer cancel()
	go func() {
		defer close(watched)
		select {
		case <-cluster.Done():
			failed <- fmt.Errorf("the database server has ended; its log is %s", cluster.LogFile())
		case <-ended.Done():
		}
	}()
	return a.serveDev(stop, cluster.DSN(devDatabase), s, failed, cluster, dir)
}

// serveDev migrates and serves. cluster is nil when the database is the user's.
func (a *app) serveDev(
	stop *stops, address string, s serving, failed <-chan error, cluster *postgres.Cluster, dir string,
) (err error) {
	migrate := address
	if cluster == nil {
		if migrate, err = a.reachableMigrateAddress(stop.soft); err != nil {
			return err
		}
	}
	if err := schema.Up(stop.soft, migrate, a.schemaName()); err != nil {
		return err
	}
	if cluster != nil {
		defer func() { _ = os.Remove(devFilePath(dir)) }() // what stays is found stale by its reader
	}
	return a.serve(stop, address, s, failed, func(info started) error {
		info.DatabaseURL = address
		if cluster == nil {
			info.DatabaseURL = withoutPassword(address)
		}
		if cluster != nil {
			info.DataDir, info.ServerLog = dir, cluster.LogFile()
			info.Postgres = cluster.Version()
			d := devFile{PID: os.Getpid(), StartedAt: time.Now().UTC(), DatabaseURL: address, Endpoint: info.Endpoint}
			if err := d.write(dir); err != nil {
				return err
			}
		}
		return a.document(info, func(w io.Writer) { a.printDev(w, info, psql(cluster)) })
	})
}

// printDev says where everything is.
func (a *app) printDev(w io.Writer, info started, psql string) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-12s"+format+"\n", append([]any{name}, args...)...)
	}
	fmt.Fprintf(w, "Pelton is running.\n\n")
	if info.Endpoint != "" {
		line("page", "%s", info.Endpoint)
		line("API", "%s/api/v1, described at /openapi.json", info.Endpoint)
	}
	if info.DataDir != "" {
		line("database", "PostgreSQL %s, private to this user", info.Postgres)
	}
	line("address", "export DATABASE_URL='%s'", info.DatabaseURL)
	line("psql", "%s '%s'", psql, info.DatabaseURL)
	if info.Endpoint != "" {
		line("health", "%s/metrics  /healthz  /readyz", info.Endpoint)
	}
	if info.DataDir != "" {
		line("data", "%s", info.DataDir)
		line("server log", "%s", info.ServerLog)
	}
	line("schema", "%s", info.Schema)
	line("queues", "%s (jobs at once)", queueText(info.Queues))
	line("kinds", "%s", strings.Join(info.Kinds, ", "))
	fmt.Fprintf(w, "\nTry in another terminal%s:\n  %s job enqueue command --args '{\"command\":\"echo hello\"}'\n",
		a.tryWith(info), a.calledAs(info))
	fmt.Fprintf(w, "\nCtrl-C stops.\n")
}

// tryWith is what another terminal needs beside the command line: an address with its password, which is not printed.
func (a *app) tryWith(info started) string {
	if address, _ := a.givenURL(); address != "" && address != info.DatabaseURL {
		return ", with DATABASE_URL set to the whole address"
	}
	return ""
}

// calledAs is how another terminal, with nothing of this one's environment, calls this program for the same database and schema.
func (a *app) calledAs(info started) string {
	words := program()
	switch address, _ := a.givenURL(); address {
	case "":
		if cmp.Or(a.dataDir, a.env("PELTON_DATA_DIR")) != "" {
			words += " --data-dir " + shellWord(info.DataDir)
		}
	case info.DatabaseURL:
		words = "DATABASE_URL=" + shellWord(address) + " " + words
	}
	if info.Schema != schema.DefaultName {
		words += " --schema " + info.Schema
	}
	return words
}

// psql is the client program beside a private server, if it is there.
func psql(cluster *postgres.Cluster) string {
	if cluster != nil {
		path := filepath.Join(cluster.BinDir(), "psql")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "psql"
}

// program is how the user called this one: go run builds it into a directory that is soon gone.
func program() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/pelton"
	}
	return "pelton"
}
