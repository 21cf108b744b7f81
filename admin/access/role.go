package access

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what somebody may do, from least to most. The zero value is nothing.
type Role int //nolint:recvcheck // reading one needs a pointer, nothing else does

// Roles. Each may do what those before it may.
const (
	NoRole   Role = iota
	Viewer        // see
	Operator      // also enqueue, run, stop, retry, pause, redrive, trigger
	Admin         // also users, tokens of others, projects, schedules, secrets, and what cannot be undone
)

var roleNames = []string{"none", "viewer", "operator", "admin"}

// Roles are the names of all roles, from least to most.
func Roles() []string { return slices.Clone(roleNames[1:]) }

// String is the role's name, as in SQL and JSON.
func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("role %d", int(r))
	}
	return roleNames[r]
}

// ParseRole reads a role's name. "none" is none.
func ParseRole(name string) (Role, error) {
	if i := slices.Index(roleNames, name); i > 0 {
		return Role(i), nil
	}
	return NoRole, invalidf("role %q: want one of %s", name, strings.Join(roleNames[1:], ", "))
}

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}

// Scan implements sql.Scanner.
func (r *Role) Scan(value any) error {
	name, ok := value.(string)
	if !ok {
		return fmt.Errorf("role: %T, want a text", value)
	}
	return r.UnmarshalText([]byte(name))
}

// Everything is the project of roles that hold for all projects, and for what belongs to none.
const Everything = "*"

// Grant is a role in a project, or in Everything.
type Grant struct {
	Project string `json:"project"`
	Role    Role   `json:"role"`
	Source  string `json:"source,omitempty"` // person, oidc
}

// covers tells whether a role given in one project holds for things of another; project "" is that of things that have none.
func covers(given, project string) bool {
	return given == Everything || given == project && project != ""
}

// checkProject refuses what cannot be a project's name.
func checkProject(project string) error {
	if project == Everything {
		return nil
	}
	if project == "" || len(project) > 64 || strings.Trim(project, nameBytes+"_.-") != "" {
		return invalidf("project %q: want a project's name, or %s for everything", project, Everything)
	}
	return nil
}

// nameBytes are those that names of users and projects share, beside some signs.
const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// LocalName is the actor's name where nobody is asked who they are.
const LocalName = "local"

// checkName refuses what cannot be a user's name: it is ASCII, so that no two names look the same, and cannot be taken for an OS user
// (os:root) in the audit.
func checkName(name string) error {
	if !validName(name) {
		return invalidf("user name %q: want up to 100 letters, digits, _ . @ + or -, the first a letter or digit", name)
	}
	if strings.EqualFold(name, LocalName) {
		return invalidf("user name %q: means everybody where there are no users", name)
	}
	return nil
}

func validName(name string) bool {
	return name != "" && len(name) <= 100 && strings.Trim(name, nameBytes+"_.@+-") == "" && strings.Trim(name[:1], nameBytes) == ""
}
