package grant

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/schema"
)

//go:embed sql/*.sql
var files embed.FS

// ErrNoRole is returned where the role of the database does not exist.
var ErrNoRole = errors.New("role does not exist")

// Missing lists what this session's role lacks of what roles need in some sections of the matrix (none given: all), as
// "INSERT on job_attempt". Who owns the tables, or is a superuser, lacks nothing.
func Missing(ctx context.Context, db sqlfile.DB, name string, roles []Role, sections ...Section) ([]string, error) {
	rights := rightsOf(roles, sections...)
	objects, wanted, columns := make([]string, len(rights)), make([]string, len(rights)), make([]string, len(rights))
	for i, r := range rights {
		objects[i], wanted[i], columns[i] = quoted(name, r.object), r.privilege, r.column
	}
	lacks, err := sqlfile.Rows(ctx, sqlfile.Load(files, "sql", name), db, pgx.RowTo[int32], "missing_rights", objects, wanted, columns)
	if err != nil {
		return nil, fmt.Errorf("look at the role's rights: %w", err)
	}
	missing := make([]string, len(lacks))
	for i, n := range lacks {
		missing[i] = rights[n-1].String()
	}
	return missing, nil
}

// Check refuses a session's role that lacks rights, with an error that names them and says what to do.
func Check(ctx context.Context, db sqlfile.DB, name, user string, roles []Role, sections ...Section) error {
	missing, err := Missing(ctx, db, name, roles, sections...)
	if err != nil || len(missing) == 0 {
		return err
	}
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	return fmt.Errorf("the database role %q lacks rights in schema %q: %s; give them with `pelton grants --as %s`, or connect as the tables' owner",
		user, name, strings.Join(missing, ", "), strings.Join(names, ","))
}

// held is a right that a role has, on what.
type held struct {
	Object, Privilege, Column string
	Kind                      string // SCHEMA, SEQUENCE or TABLE, which is a view too
}

// Surplus are the statements that take from a role of the database what it was given in the schema and these roles do not need: also rights
// on partitions, and on what the matrix does not know. What others gave than the owner stays. Run them before Statements: taking a right on a
// whole table takes those on its columns too.
func Surplus(ctx context.Context, db sqlfile.DB, name, from string, roles ...Role) ([]string, error) {
	if err := schema.CheckName(name); err != nil {
		return nil, err
	}
	all, err := sqlfile.Rows(ctx, sqlfile.Load(files, "sql", name), db, pgx.RowToStructByPos[held], "held_rights", name, from)
	if err != nil {
		return nil, fmt.Errorf("read the rights of %q: %w", from, err)
	}
	wanted := rightsOf(roles)
	var statements []string
	for _, h := range all {
		on := h.Kind + " " + quoted(name, h.Object)
		if h.Kind == "SCHEMA" {
			if len(roles) > 0 && h.Privilege == "USAGE" {
				continue
			}
			on = "SCHEMA " + quoted(name)
		} else if slices.Contains(wanted, right{h.Object, h.Privilege, h.Column}) {
			continue
		}
		what := h.Privilege
		if h.Column != "" {
			what += " (" + quoted(h.Column) + ")"
		}
		statements = append(statements, fmt.Sprintf("REVOKE %s ON %s FROM %s", what, on, quoted(from)))
	}
	return statements, nil
}

// CheckRole says whether a role of the database exists, and whether this session may give it rights: it must be the tables' owner, or a member of it.
func CheckRole(ctx context.Context, db sqlfile.DB, name, to string) error {
	type standing struct {
		Exists, Owns bool
		User, Owner  string
	}
	found, err := sqlfile.Rows(ctx, sqlfile.Load(files, "sql", name), db, pgx.RowToStructByPos[standing], "standing", to)
	if err != nil {
		return fmt.Errorf("look at the role %q: %w", to, err)
	}
	switch s := found[0]; {
	case !s.Exists:
		return fmt.Errorf("%w: %s; make it first: CREATE ROLE %s LOGIN PASSWORD '...'", ErrNoRole, to, quoted(to))
	case !s.Owns:
		return fmt.Errorf("the database role %q does not own the tables of schema %q, and so cannot give rights on them: connect as %q", s.User, name, s.Owner)
	}
	return nil
}
