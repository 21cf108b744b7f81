package flow

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/flow/internal/files"
	"github.com/peltonq/pelton/jobs/flow/internal/nodecmd"
	"github.com/peltonq/pelton/jobs/flow/internal/notice"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/schema"
)

// WorkerConfig says how an executor works the nodes of flows.
type WorkerConfig struct {
	// Schema is the Postgres schema. Defaults to that of jobs.Config.
	Schema string

	// FilesDir is where the files of versions are laid out; several executors may share it. Defaults to DefaultFilesDir.
	FilesDir string

	// Programs says how programs run.
	Programs command.Config

	// Secrets are the keys of secrets, as a secret.KeyFile. Nil: a node that needs a secret fails.
	Secrets secret.Source

	// SMTP is the mail server for notices: smtp://[USER:PASSWORD@]HOST[:PORT], with STARTTLS if the server offers it, or smtps://.
	// Empty: notices by e-mail fail, and say so.
	SMTP string

	// MailFrom is the sender's address of notices.
	MailFrom string
}

// AddWorkers registers the workers that nodes of flows need: for nodes that run programs, and for notices. Errors: a wrong mail server.
func AddWorkers(workers *jobs.Workers, pool *pgxpool.Pool, config WorkerConfig) error {
	if config.Schema == "" {
		config.Schema = schema.DefaultName
	}
	if config.FilesDir == "" {
		config.FilesDir = DefaultFilesDir()
	}
	cache := files.New(store.New(pool, config.Schema), config.FilesDir)
	notices, err := notice.NewWorker(notice.Config{SMTP: config.SMTP, From: config.MailFrom})
	if err != nil {
		return err
	}
	if err := jobs.AddWorkerSafely(workers, notices); err != nil {
		return err
	}
	if err := cache.Sweep(files.Age); err != nil {
		return err
	}
	return jobs.AddWorkerSafely(workers, nodecmd.NewWorker(nodecmd.Config{
		Files: cache, Programs: config.Programs, Secrets: secret.NewReader(pool, config.Schema, config.Secrets),
	}))
}
