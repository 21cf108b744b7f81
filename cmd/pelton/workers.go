package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// builtInWorkers are the kinds that this program works: command, those of flows, and noop, for trying things out. Other kinds are
// worked by Go programs of their own, which may share the queues.
func (a *app) builtInWorkers(pool *pgxpool.Pool, programs command.Config, s serving) (*jobs.Workers, error) {
	workers := jobs.NewWorkers()
	command.Register(workers, programs)
	jobs.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[noopArgs]) error { return nil }))
	if s.testKinds {
		jobs.AddWorker(workers, &flowtest.Worker{})
	}
	err := flow.AddWorkers(workers, pool, flow.WorkerConfig{
		Schema: a.schemaName(), FilesDir: s.filesDir, Programs: programs, Secrets: a.secretKeys(), SMTP: a.env("PELTON_SMTP_URL"), MailFrom: a.env("PELTON_MAIL_FROM"),
	})
	return workers, err
}

// commandConfig says how programs of jobs run. Their realm is a database and schema: however it is reached, if the server tells.
func (a *app) commandConfig(ctx context.Context, pool *pgxpool.Pool) command.Config {
	var database string
	err := pool.QueryRow(ctx, `SELECT c.system_identifier || '/' || d.oid
		FROM pg_control_system() c, pg_database d WHERE d.datname = current_database()`).Scan(&database)
	if err != nil { // the function may be forbidden
		at := pool.Config().ConnConfig
		database = fmt.Sprintf("%s:%d/%s", at.Host, at.Port, at.Database)
	}
	return command.Config{Env: withoutSecrets(os.Environ()), Realm: database + "/" + a.schemaName()}
}

// noopArgs are of a job that does nothing, whatever its args say.
type noopArgs struct{}

func (noopArgs) Kind() string { return "noop" }

// ownTrace is what the environment says of this program's own trace, and how it opens its collector. Programs get the trace of their run.
var ownTrace = []string{"TRACEPARENT", "TRACESTATE", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}

// ownSecrets open Pelton's own database, its mail server, its secrets or its login.
var ownSecrets = []string{
	"DATABASE_URL", "PELTON_MIGRATE_DATABASE_URL", "PGPASSWORD", "PGPASSFILE", "PELTON_SMTP_URL", "PELTON_SECRET_KEY_FILE", oidcSecretVariable,
}

// withoutSecrets drops from an environment what is this program's own: the programs of jobs are other people's.
func withoutSecrets(environ []string) []string {
	return slices.DeleteFunc(environ, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(ownSecrets, name) || slices.Contains(ownTrace, name)
	})
}
