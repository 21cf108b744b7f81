package access

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// vouched is who a provider of OIDC says somebody is.
type vouched struct {
	issuer, subject string
	name            string  // for the user, if one is made
	roles           []Grant // of the groups
}

// What keeps somebody out whom the provider knows. The browser is told.
var (
	errNoRole    = errors.New("your groups give you no role here; ask an administrator")
	errNameTaken = errors.New("there is a user of your name already who is somebody else, or logs in by password; ask an administrator")
	errBadName   = errors.New("the provider gave no name that can be a user's")
	errDisabled  = errors.New("the user is disabled")
)

// isRefusal tells whether an error is one of those.
func isRefusal(err error) bool {
	for _, known := range []error{errNoRole, errNameTaken, errBadName, errDisabled} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// loginVouched begins a session of the user that a provider vouches for. The user is found by issuer and subject, never by name alone, since names
// can be given anew; only a user that was added for OIDC and has never logged in is bound by name. One that is not there is made if groups give
// it a role. Roles that groups gave before are replaced.
func (s *Store) loginVouched(ctx context.Context, v vouched, address string) (string, error) {
	secret, err := s.tryVouched(ctx, v, address)
	if errors.Is(err, ErrExists) { // another first login has just made the user, so there is one now
		secret, err = s.tryVouched(ctx, v, address)
	}
	if isRefusal(err) {
		return "", errors.Join(err, s.noteFailure(ctx, v.name, address))
	}
	if err != nil {
		return "", fmt.Errorf("login by OIDC: %w", err)
	}
	return secret, nil
}

// tryVouched is loginVouched once. ErrExists: a user of that name was made meanwhile.
func (s *Store) tryVouched(ctx context.Context, v vouched, address string) (secret string, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		u, err := s.vouchedUser(ctx, tx, v)
		if err != nil {
			return err
		}
		if u.Disabled {
			return errDisabled
		}
		roles, err := s.groupRoles(ctx, tx, u, v.roles)
		if err != nil {
			return err
		}
		if len(roles) == 0 {
			return errNoRole
		}
		if secret, err = s.beginSession(ctx, tx, u.ID, address, nil); err != nil {
			return err
		}
		return s.audit(ctx, tx, u.Name, "login", u.target(), nil, fields{"address": address, "by": "oidc"})
	})
	return secret, err
}

// vouchedUser finds and locks the user, or makes it.
func (s *Store) vouchedUser(ctx context.Context, tx pgx.Tx, v vouched) (lockedUser, error) {
	u, err := one[lockedUser](ctx, s, tx, "find_subject", v.issuer, v.subject)
	if !errors.Is(err, ErrNotFound) {
		return u, err
	}
	if checkName(v.name) != nil {
		return lockedUser{}, errBadName
	}
	u, err = one[lockedUser](ctx, s, tx, "lock_user", v.name)
	switch {
	case err == nil:
		bound, err := s.exec(ctx, tx, "bind_subject", u.ID, v.issuer, v.subject)
		if err != nil {
			return u, err
		}
		if bound == 0 {
			return u, errNameTaken
		}
		return u, s.audit(ctx, tx, u.Name, "user.bind", u.target(), nil, fields{"issuer": v.issuer, "subject": v.subject})
	case !errors.Is(err, ErrNotFound):
		return u, err
	}
	id, err := s.addUser(ctx, tx, v.name, v.name, nil, &v.issuer, &v.subject)
	return lockedUser{ID: id, Name: v.name}, err
}

// groupRoles replaces the roles that groups gave, and returns all that the user has.
func (s *Store) groupRoles(ctx context.Context, tx pgx.Tx, u lockedUser, now []Grant) ([]Grant, error) {
	before, err := all[Grant](ctx, s, tx, "roles", u.ID)
	if err != nil {
		return nil, err
	}
	if _, err := s.exec(ctx, tx, "take_group_roles", u.ID); err != nil {
		return nil, err
	}
	for _, g := range now {
		if _, err := s.exec(ctx, tx, "give_role", u.ID, g.Project, "oidc", g.Role.String()); err != nil {
			return nil, err
		}
	}
	after, err := all[Grant](ctx, s, tx, "roles", u.ID)
	if err != nil || *encode(before) == *encode(after) {
		return after, err
	}
	return after, s.audit(ctx, tx, u.Name, "user.role", u.target(), fields{"roles": before}, fields{"roles": after})
}
