package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/peltonq/pelton/jobs"
)

// What an actor may not do.
var (
	ErrNotLoggedIn = errors.New("not logged in")
	ErrForbidden   = errors.New("forbidden")
)

// Actor is who asks for something, and what they may do. Actors come from a Store or a Guard.
type Actor struct {
	Name  string // in the audit
	User  int64  // 0: no user of the database (local)
	Token int64  // 0: not by a token

	TokenName string

	grants []Grant
	cap    *Grant // of a token: at most this
}

// local is who asks where nobody is asked who they are.
var local = Actor{Name: LocalName, grants: []Grant{{Project: Everything, Role: Admin}}}

// Role is the highest role in a project; "" stands for things that belong to none.
func (a Actor) Role(project string) Role {
	highest := NoRole
	for _, g := range a.grants {
		if covers(g.Project, project) {
			highest = max(highest, g.Role)
		}
	}
	if a.cap == nil {
		return highest
	}
	if !covers(a.cap.Project, project) {
		return NoRole
	}
	return min(highest, a.cap.Role)
}

// May tells whether the actor has a role in a project, or a higher one.
func (a Actor) May(role Role, project string) bool {
	return role > NoRole && a.Role(project) >= role
}

// Check is May with an ErrForbidden that says what is missing.
func (a Actor) Check(role Role, project string) error {
	if a.May(role, project) {
		return nil
	}
	return &RoleError{a.Name, role, project}
}

// RoleError is the ErrForbidden of an actor who lacks a role.
type RoleError struct {
	Name    string // the actor's
	Role    Role   // the one that is missing
	Project string // in which; empty: in everything
}

// Error implements error.
func (e *RoleError) Error() string { return ErrForbidden.Error() + ": " + e.Missing() }

// Missing says what is missing, without the word that it is forbidden.
func (e *RoleError) Missing() string {
	where := "project " + e.Project
	if e.Project == "" {
		where = "everything"
	}
	return fmt.Sprintf("%s has no role %s for %s", e.Name, e.Role, where)
}

// Unwrap is ErrForbidden.
func (e *RoleError) Unwrap() error { return ErrForbidden }

// Projects are those in which the actor has a role, by name; all: also those that are not named, and what belongs to none.
func (a Actor) Projects(role Role) (all bool, names []string) {
	all = a.May(role, "")
	projects := a.grants
	if a.cap != nil {
		projects = append(slices.Clone(projects), *a.cap)
	}
	for _, g := range projects {
		if g.Project != Everything && a.May(role, g.Project) {
			names = append(names, g.Project)
		}
	}
	slices.Sort(names)
	return all, slices.Compact(names)
}

// Anything tells whether the actor has any role at all.
func (a Actor) Anything() bool {
	all, names := a.Projects(Viewer)
	return all || len(names) > 0
}

type actorKey struct{}

// WithActor puts an actor into a context, also as who is named in the audit, with the token if it is by one.
func WithActor(ctx context.Context, a Actor) context.Context {
	ctx = jobs.WithActor(context.WithValue(ctx, actorKey{}, a), a.Name)
	if a.Token != 0 {
		ctx = jobs.WithToken(ctx, a.Token, a.TokenName)
	}
	return ctx
}

// FromContext is the actor of a request; false: nobody knows who it is.
func FromContext(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(actorKey{}).(Actor)
	return a, ok
}

// Check is the check of the context's actor: ErrNotLoggedIn, ErrForbidden or nil.
func Check(ctx context.Context, role Role, project string) error {
	a, ok := FromContext(ctx)
	if !ok {
		return ErrNotLoggedIn
	}
	return a.Check(role, project)
}
