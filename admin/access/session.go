package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Session is a browser in which somebody has logged in.
type Session struct {
	ID        string    `json:"id"` // a part of its hash
	CreatedAt time.Time `json:"created_at"`
	SeenAt    time.Time `json:"seen_at"` // give or take a minute
	ExpiresAt time.Time `json:"expires_at"`
	Address   string    `json:"address"` // where it began
}

// beginSession makes a session of a user whose login was checked against a stored password (nil: by OIDC). ErrLogin if the user was
// disabled or has got another password since.
func (s *Store) beginSession(ctx context.Context, tx pgx.Tx, user int64, address string, against *string) (secret string, err error) {
	secret, hash := newSecret("")
	_, err = one[struct{ OK bool }](ctx, s, tx, "begin_session", user, hash, s.config.Absolute, address, against)
	if errors.Is(err, ErrNotFound) {
		return "", ErrLogin
	}
	return secret, err
}

// BySession finds whose session it is. ErrNotLoggedIn if it is over.
func (s *Store) BySession(ctx context.Context, secret string) (Actor, error) {
	hash := hashSecret(secret)
	row, err := one[struct {
		User  int64
		Name  string
		Stale bool
		Roles []Grant
	}](ctx, s, s.pool, "session", hash, s.config.Idle)
	if errors.Is(err, ErrNotFound) {
		return Actor{}, fmt.Errorf("%w: the session is over", ErrNotLoggedIn)
	}
	if err != nil {
		return Actor{}, err
	}
	if row.Stale {
		if err := s.note(ctx, "see_session", hash); err != nil {
			return Actor{}, err
		}
	}
	return Actor{Name: row.Name, User: row.User, grants: row.Roles}, nil
}

// EndSession ends a session. One that is over already is no fault.
func (s *Store) EndSession(ctx context.Context, secret string) error {
	return s.tx(ctx, func(tx pgx.Tx) error {
		row, err := one[struct{ Name string }](ctx, s, tx, "end_session", hashSecret(secret))
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, row.Name, "logout", "user "+row.Name, nil, nil)
	})
}

// SessionList lists the live sessions of a user, the newest first.
func (s *Store) SessionList(ctx context.Context, user string) ([]Session, error) {
	u, err := s.User(ctx, user)
	if err != nil {
		return nil, err
	}
	return all[Session](ctx, s, s.pool, "sessions", u.ID, s.config.Idle)
}
