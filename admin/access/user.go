package access

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// User is somebody who may log in.
type User struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name"`
	CreatedAt  time.Time  `json:"created_at"`
	DisabledAt *time.Time `json:"disabled_at"`
	PasswordAt *time.Time `json:"password_at"` // nil: no password
	Issuer     string     `json:"issuer"`      // of OIDC; empty: none yet
	Subject    string     `json:"subject"`
	Roles      []Grant    `json:"roles"`
}

// NewUser is who is to be made.
type NewUser struct {
	Name     string
	Password string  // empty: logs in by OIDC
	Roles    []Grant // may be none
}

// AddUser makes a user. ErrExists if there is one of that name, in whatever case. by is who asks.
func (s *Store) AddUser(ctx context.Context, by string, u NewUser) (User, error) {
	if err := checkName(u.Name); err != nil {
		return User{}, err
	}
	for _, g := range u.Roles {
		if err := checkGrant(g); err != nil {
			return User{}, err
		}
	}
	var hash *string
	if u.Password != "" {
		if err := checkPassword(u.Password); err != nil {
			return User{}, err
		}
		h, err := s.hasher.hash(ctx, u.Password)
		if err != nil {
			return User{}, fmt.Errorf("add user %q: %w", u.Name, err)
		}
		hash = &h
	}
	err := s.tx(ctx, func(tx pgx.Tx) error {
		id, err := s.addUser(ctx, tx, by, u.Name, hash, nil, nil)
		if err != nil {
			return err
		}
		for _, g := range u.Roles {
			if err := s.giveRole(ctx, tx, by, lockedUser{ID: id, Name: u.Name}, g); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return User{}, fmt.Errorf("add user %q: %w", u.Name, err)
	}
	return s.User(ctx, u.Name)
}

func (s *Store) addUser(ctx context.Context, tx pgx.Tx, by, name string, hash, issuer, subject *string) (int64, error) {
	ids, err := all[struct{ ID int64 }](ctx, s, tx, "add_user", name, hash, issuer, subject)
	if err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, ErrExists
	}
	after := fields{"password": hash != nil}
	if subject != nil {
		after["issuer"], after["subject"] = *issuer, *subject
	}
	return ids[0].ID, s.audit(ctx, tx, by, "user.add", "user "+name, nil, after)
}

// User reads a user by name, in whatever case; ErrNotFound if there is none.
func (s *Store) User(ctx context.Context, name string) (User, error) {
	u, err := one[User](ctx, s, s.pool, "users", &name, nil, nil, nil)
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", name, err)
	}
	return u, nil
}

// UserListParams say which users to list. Zero fields ask for nothing.
type UserListParams struct {
	Find  string // whose names hold this, in whatever case
	After string // continue a list: the name of its last user
	Limit int    // at most so many; 0: all
}

// UserList lists users by name, whatever its case.
func (s *Store) UserList(ctx context.Context, p UserListParams) ([]User, error) {
	return all[User](ctx, s, s.pool, "users", nil, nullIfEmpty(p.After), nullIfEmpty(p.Find), sqlfile.AtMost(p.Limit))
}

func nullIfEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// SetPassword sets a password, and ends the user's sessions.
func (s *Store) SetPassword(ctx context.Context, by, name, password string) error {
	if err := checkPassword(password); err != nil {
		return err
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return fmt.Errorf("user %q: %w", name, err)
	}
	return s.changeUser(ctx, name, func(tx pgx.Tx, u lockedUser) error {
		if _, err := s.exec(ctx, tx, "set_password", u.ID, hash); err != nil {
			return err
		}
		ended, err := s.exec(ctx, tx, "end_sessions", u.ID)
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, by, "user.password", u.target(), fields{"password": u.Password},
			fields{"password": true, "ended_sessions": ended})
	})
}

// Disable keeps a user out: sessions end, tokens no longer hold. Enable ends that; tokens hold again, sessions do not come back. Both
// tell whether that changed anything. Disable is ErrLastAdmin for the last admin of everything, if Config does not say otherwise.
func (s *Store) Disable(ctx context.Context, by, name string) (changed bool, err error) {
	return s.setDisabled(ctx, by, name, true)
}

// Enable lets a user in again that was disabled.
func (s *Store) Enable(ctx context.Context, by, name string) (changed bool, err error) {
	return s.setDisabled(ctx, by, name, false)
}

func (s *Store) setDisabled(ctx context.Context, by, name string, disabled bool) (changed bool, err error) {
	err = s.changeUser(ctx, name, func(tx pgx.Tx, u lockedUser) error {
		if u.Disabled == disabled {
			return nil
		}
		changed = true
		err := s.keepAdmin(ctx, tx, func() error {
			_, err := s.exec(ctx, tx, "set_disabled", u.ID, disabled)
			return err
		})
		if err != nil {
			return err
		}
		ended, err := s.exec(ctx, tx, "end_sessions", u.ID)
		if err != nil {
			return err
		}
		action := "user.enable"
		if disabled {
			action = "user.disable"
		}
		return s.audit(ctx, tx, by, action, u.target(), fields{"disabled": u.Disabled}, fields{"disabled": disabled, "ended_sessions": ended})
	})
	return changed && err == nil, err
}

// SetRole gives a user a role in a project, or in Everything, instead of what a person gave there before; NoRole takes it back.
// ErrLastAdmin as Disable.
func (s *Store) SetRole(ctx context.Context, by, name string, g Grant) error {
	if g.Role == NoRole {
		if err := checkProject(g.Project); err != nil {
			return err
		}
	} else if err := checkGrant(g); err != nil {
		return err
	}
	return s.changeUser(ctx, name, func(tx pgx.Tx, u lockedUser) error {
		return s.keepAdmin(ctx, tx, func() error { return s.giveRole(ctx, tx, by, u, g) })
	})
}

func checkGrant(g Grant) error {
	if g.Role < Viewer || g.Role > Admin {
		return invalidf("%s: want one of viewer, operator, admin", g.Role)
	}
	return checkProject(g.Project)
}

// giveRole writes a role that a person gives, and an audit entry if that changes something.
func (s *Store) giveRole(ctx context.Context, tx pgx.Tx, by string, u lockedUser, g Grant) error {
	was := NoRole
	found, err := all[struct{ Role Role }](ctx, s, tx, "role", u.ID, g.Project)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		was = found[0].Role
	}
	if was == g.Role {
		return nil
	}
	if g.Role == NoRole {
		_, err = s.exec(ctx, tx, "take_role", u.ID, g.Project)
	} else {
		_, err = s.exec(ctx, tx, "give_role", u.ID, g.Project, "person", g.Role.String())
	}
	if err != nil {
		return err
	}
	return s.audit(ctx, tx, by, "user.role", u.target(), fields{"project": g.Project, "role": was}, fields{"project": g.Project, "role": g.Role})
}

// keepAdmin makes a change unless it leaves no admin of everything where there was one.
func (s *Store) keepAdmin(ctx context.Context, tx pgx.Tx, change func() error) error {
	if s.config.LastAdmin {
		return change()
	}
	if _, err := s.exec(ctx, tx, "lock_admins"); err != nil {
		return err
	}
	type admins struct{ Any bool }
	before, err := one[admins](ctx, s, tx, "any_admin")
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, err := one[admins](ctx, s, tx, "any_admin")
	if err == nil && before.Any && !after.Any {
		err = ErrLastAdmin
	}
	return err
}

// lockedUser is a user whose row is locked by the transaction.
type lockedUser struct {
	ID       int64
	Name     string
	Disabled bool
	Password bool
}

func (u lockedUser) target() string { return "user " + u.Name }

// changeUser runs fn with a user's row locked.
func (s *Store) changeUser(ctx context.Context, name string, fn func(tx pgx.Tx, u lockedUser) error) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		u, err := one[lockedUser](ctx, s, tx, "lock_user", name)
		if err != nil {
			return err
		}
		return fn(tx, u)
	})
	if err != nil {
		return fmt.Errorf("user %q: %w", name, err)
	}
	return nil
}
