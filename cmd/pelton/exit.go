package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/loadtest"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema"
)

// Exit codes; the package comment tells them to people.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitUnreachable = 5
	exitSchema      = 6
	exitInterrupted = 130
)

// usageError is a mistake in flags, arguments or input.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(err error) error { return &usageError{err} }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// refusedError is what the state of things does not allow.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

func refused(err error) error { return &refusedError{err} }

// fail prints an error and returns the exit code.
func (a *app) fail(cmd *cobra.Command, args []string, err error) int {
	code := exitCode(err)
	text := a.explain(cmd, err)
	if !a.json && code == exitUsage { // --json may stand behind the flag that could not be read
		a.json = slices.ContainsFunc(args, func(arg string) bool { return arg == "--json" || arg == "--json=true" })
	}
	if code == exitUsage && cmd != nil && !a.json {
		text += fmt.Sprintf("\nSee `%s --help`.", cmd.CommandPath())
	}
	if a.json {
		line, _ := json.Marshal(errorJSON{text, code})
		fmt.Fprintf(a.stderr, "%s\n", line)
		return code
	}
	fmt.Fprintf(a.stderr, "pelton: %s\n", text)
	return code
}

type errorJSON struct {
	Error    string `json:"error"`
	ExitCode int    `json:"exit_code"`
}

func exitCode(err error) int {
	var (
		wrong    *usageError
		invalid  *jobs.InvalidJobError
		update   *jobs.InvalidUpdateError
		queue    *jobs.QueueNameError
		conflict *jobs.UniqueConflictError
		node     *jobs.FlowNodeError
		erase    *jobs.EraseError
		untimed  *jobs.NotScheduledError
		version  *schema.VersionError
		connect  *pgconn.ConnectError
		answered *pgconn.PgError
		refused  *refusedError
		measure  *loadtest.ConfigError
	)
	switch {
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &wrong), errors.As(err, &invalid), errors.As(err, &update), errors.As(err, &queue), errors.As(err, &measure):
		return exitUsage
	case errors.Is(err, rivertype.ErrNotFound), errors.Is(err, flow.ErrNotFound), errors.Is(err, secret.ErrNotFound), errors.Is(err, access.ErrNotFound), errors.Is(err, periodic.ErrNotFound),
		errors.Is(err, alert.ErrNotFound):
		return exitNotFound
	case errors.Is(err, rivertype.ErrJobRunning), errors.As(err, &conflict), errors.As(err, &node), errors.As(err, &erase), errors.As(err, &untimed), errors.As(err, &refused):
		return exitRefused
	case errors.As(err, &version):
		return exitSchema
	case errors.As(err, &connect) && !errors.As(err, &answered):
		return exitUnreachable
	}
	return exitFailed
}

// explain says what was wrong, where, and what to do.
func (a *app) explain(cmd *cobra.Command, err error) string {
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return a.explainConnect(connect)
	}
	if _, told := errors.AsType[*schema.RightsError](err); told || !schema.Denied(err) {
		return err.Error()
	}
	if cmd != nil && strings.HasPrefix(cmd.CommandPath(), "pelton migrate ") {
		return fmt.Sprintf("%v; the database role %q may not do this: migrate as the owner of schema %q and its tables, or, where there is none yet, as a role with CREATE on the"+
			" database (--migrate-database-url or PELTON_MIGRATE_DATABASE_URL names its address)", err, a.role, a.schemaName())
	}
	return (&schema.RightsError{Schema: a.schemaName(), Role: a.role, Err: err}).Error()
}

func (a *app) explainConnect(err *pgconn.ConnectError) string {
	c := err.Config
	where := net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	if strings.HasPrefix(c.Host, "/") {
		where = c.Host
	}
	if answered, ok := errors.AsType[*pgconn.PgError](err); ok {
		text := fmt.Sprintf("the database server at %s refused user %q on database %q: %s", where, c.User, c.Database, answered.Message)
		if schema.Denied(err) {
			text += fmt.Sprintf("; it may with GRANT CONNECT ON DATABASE %s TO %s", pgx.Identifier{c.Database}.Sanitize(), pgx.Identifier{c.User}.Sanitize())
		}
		return text
	}
	advice := "Is the server running? `pelton dev` starts one; --database-url or DATABASE_URL names another."
	given, from := a.givenURL()
	switch {
	case given != "" && !a.isDev:
		advice = fmt.Sprintf("Is the server running? The address is that of %s; without it, that of a running `pelton dev` is taken.", from)
	case a.isDev:
		advice = "Without --database-url and DATABASE_URL, pelton dev runs a server of its own."
	case a.fromDev != "":
		advice = fmt.Sprintf("It was that of a pelton dev that is gone, as %s says. Start pelton dev again, or set DATABASE_URL.", a.fromDev)
	}
	return fmt.Sprintf("the database at %s (database %q, user %q) cannot be reached: %v\n%s", where, c.Database, c.User, rootCause(err), advice)
}

// rootCause is the part of a connection's failure that says something new.
func rootCause(err error) error {
	var operation *net.OpError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup):
		return lookup
	case errors.As(err, &operation):
		return operation.Err
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	}
	first, _, _ := strings.Cut(errors.Unwrap(err).Error(), "\n")
	return errors.New(first)
}
