package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/user"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

// schemaName is the Postgres schema to work in.
func (a *app) schemaName() string {
	return cmp.Or(a.schema, a.env("PELTON_SCHEMA"), schema.DefaultName)
}

// givenURL is the database that the user named, and how; empty if none.
func (a *app) givenURL() (address, from string) {
	if a.databaseURL != "" {
		return a.databaseURL, "--database-url"
	}
	return a.env("DATABASE_URL"), "DATABASE_URL"
}

// address finds the database: the one that was named, else that of a running pelton dev.
func (a *app) address() (string, error) {
	if address, from := a.givenURL(); address != "" {
		a.note("database from %s", from)
		return address, nil
	}
	dir, err := a.dataDirectory()
	if err != nil {
		return "", err
	}
	running, err := readDevFile(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", usagef("no database: set DATABASE_URL or --database-url, or start `pelton dev` (looked for one in %s)", dir)
	case err != nil:
		return "", err
	}
	a.fromDev = devFilePath(dir)
	a.note("database of pelton dev (process %d) in %s", running.PID, dir)
	return running.DatabaseURL, nil
}

// passwords are those of an address of keywords and values, and of the parameters of a URL.
var passwords = regexp.MustCompile(`(?i)\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&']+)`)

// withoutPassword is an address fit to be shown.
func withoutPassword(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		address = u.Redacted()
	}
	return passwords.ReplaceAllString(address, "${1}xxxxx")
}

// shellWord quotes a text for a shell if it must be.
func shellWord(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// migrateAddress is the database for migrations.
func (a *app) migrateAddress() (string, error) {
	if address := cmp.Or(a.migrateDatabaseURL, a.env("PELTON_MIGRATE_DATABASE_URL")); address != "" {
		return address, nil
	}
	return a.address()
}

// open connects a pool of at most so many connections, unless the address says how many, and sees that the database answers.
func (a *app) open(ctx context.Context, address string, connections int32) (*pgxpool.Pool, error) {
	if err := schema.CheckName(a.schemaName()); err != nil {
		return nil, usage(err)
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, usagef("database URL: %w", err)
	}
	if !strings.Contains(address, "pool_max_conns") {
		config.MaxConns = connections
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "pelton"
	}
	a.role = config.ConnConfig.User
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return pool, nil
}

// Connections of commands that return, and of those that serve: the latter claim, finish, beat, listen, write logs and have
// duties at once.
const (
	connectionsBrief = 2
	connectionsServe = 16
	connectionsPages = 8 // of the page and the API of a server
)

// database is an open pool on a schema of the right version, and a client that enqueues and operates.
type database struct {
	pool   *pgxpool.Pool
	client *jobs.Client
}

// withClient runs do with a client on the database, whose schema it checks first. What do does is done in the name of the OS user.
func (a *app) withClient(ctx context.Context, do func(ctx context.Context, db database) error) error {
	address, err := a.address()
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
	client, err := jobs.NewClient(pool, &jobs.Config{Schema: a.schemaName(), Logger: a.logger(levelQuiet), Middleware: a.tracer.Middleware()})
	if err != nil {
		return usage(err)
	}
	return do(jobs.WithActor(ctx, osUser()), database{pool, client})
}

// osUser names who runs this program, for the audit table.
func osUser() string {
	current, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return "os:" + current.Username
}
