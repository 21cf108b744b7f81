package schema

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// RightsError says that a role of the database lacks a right in a schema, and what to do. It unwraps to what the database said.
type RightsError struct {
	Schema string
	Role   string // of the database
	Err    error
}

func (e *RightsError) Error() string {
	command := fmt.Sprintf("pelton grants --as ROLE --to %q", e.Role)
	if e.Schema != DefaultName {
		command += " --schema " + e.Schema
	}
	return fmt.Sprintf("%v; the database role %q lacks a right in schema %q: let the owner of its tables run `%s` (after each upgrade again), where ROLE is what it is to be:"+
		" enqueuer, starter, worker, scheduler, auditor (reads) or admin (operates)", e.Err, e.Role, e.Schema, command)
}

func (e *RightsError) Unwrap() error { return e.Err }

// Denied tells whether the database refused something because the session's role lacks a right (insufficient_privilege).
func Denied(err error) bool {
	said, is := errors.AsType[*pgconn.PgError](err)
	return is && said.Code == "42501"
}
