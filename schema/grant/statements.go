package grant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/schema"
)

// ParseRoles reads names of roles, separated by commas.
func ParseRoles(names string) ([]Role, error) {
	var roles []Role
	for name := range strings.SplitSeq(names, ",") {
		role := Role(strings.TrimSpace(name))
		if !slices.Contains(Roles(), role) {
			return nil, fmt.Errorf("%q is no role: want %s, or several of them with commas", name, joined(Roles()))
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

func joined(roles []Role) string {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// Statements give a role of the database what these roles need in the schema of that name. Giving twice does no harm. No role: none.
func Statements(name, to string, roles ...Role) ([]string, error) {
	if err := schema.CheckName(name); err != nil {
		return nil, err
	}
	if len(roles) == 0 {
		return nil, nil
	}
	all := []string{"GRANT USAGE ON SCHEMA " + quoted(name) + " TO " + quoted(to)}
	rights := rightsOf(roles)
	for len(rights) > 0 {
		n := 1
		for n < len(rights) && rights[n].object == rights[0].object {
			n++
		}
		all = append(all, fmt.Sprintf("GRANT %s ON %s TO %s", list(rights[:n]), objectSQL(name, rights[0]), quoted(to)))
		rights = rights[n:]
	}
	return all, nil
}

// list is the rights on one object in SQL.
func list(rights []right) string {
	var parts []string
	for i := 0; i < len(rights); {
		r := rights[i]
		if r.column == "" {
			parts = append(parts, r.privilege)
			i++
			continue
		}
		var columns []string
		for ; i < len(rights) && rights[i].privilege == r.privilege && rights[i].column != ""; i++ {
			columns = append(columns, quoted(rights[i].column))
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", r.privilege, strings.Join(columns, ", ")))
	}
	return strings.Join(parts, ", ")
}

func objectSQL(schemaName string, r right) string {
	if r.sequence() {
		return "SEQUENCE " + quoted(schemaName, r.object)
	}
	return quoted(schemaName, r.object)
}

func quoted(parts ...string) string { return pgx.Identifier(parts).Sanitize() }
