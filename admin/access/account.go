package access

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"
)

// What users do with their own account.

// ErrNoPassword says that a user logs in by OIDC only.
var ErrNoPassword = errors.New("you log in by your organisation's account, and have no password here")

// changePassword checks the old password as a login does, with the same limits, sets a new one, ends all sessions, and begins one.
func (s *Store) changePassword(ctx context.Context, name, old, password, address string) (secret string, err error) {
	if err := checkPassword(password); err != nil {
		return "", err
	}
	keys := []string{addressLimit.prefix + address, nameLimit.prefix + shownName(name)}
	failures, err := s.takeTry(ctx, keys)
	if err != nil {
		return "", err
	}
	user, err := s.credentials(ctx, s.pool, name)
	if err != nil {
		return "", err
	}
	if user.Password == "" {
		return "", ErrNoPassword
	}
	ok, err := s.hasher.matches(ctx, callerFrom(address, failures), old[:min(len(old), maxPassword+1)], user.Password)
	if unjudged, is := errors.AsType[*unjudgedError](err); is {
		return "", errors.Join(unjudged.err, s.giveBack(ctx, keys))
	}
	if err != nil {
		return "", err
	}
	if !ok || user.Disabled || len(old) > maxPassword {
		return "", errors.Join(ErrLogin, s.noteFailure(ctx, name, address))
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return "", err
	}
	err = s.changeUser(ctx, name, func(tx pgx.Tx, u lockedUser) error {
		now, err := s.credentials(ctx, tx, name)
		if err != nil {
			return err
		}
		if now.Password != user.Password || now.Disabled { // somebody was quicker
			return ErrLogin
		}
		if _, err := s.exec(ctx, tx, "set_password", u.ID, hash); err != nil {
			return err
		}
		ended, err := s.exec(ctx, tx, "end_sessions", u.ID)
		if err != nil {
			return err
		}
		for i, statement := range []string{"forgive_address", "forgive_name"} {
			if _, err := s.exec(ctx, tx, statement, keys[i]); err != nil {
				return err
			}
		}
		if secret, err = s.beginSession(ctx, tx, u.ID, address, &hash); err != nil {
			return err
		}
		return s.audit(ctx, tx, u.Name, "user.password", u.target(), fields{"password": true}, fields{"password": true, "ended_sessions": ended})
	})
	return secret, err
}

// sessionName is how a session is named in lists: by a part of its hash, which is of no use to who reads it.
func sessionName(secret string) string { return hex.EncodeToString(hashSecret(secret)[:8]) }

// EndSessionOf ends a session of a user by its ID in the list, or, if others, all but that; it tells how many ended.
func (s *Store) EndSessionOf(ctx context.Context, by, user, id string, others bool) (ended int64, err error) {
	err = s.changeUser(ctx, user, func(tx pgx.Tx, u lockedUser) error {
		if ended, err = s.exec(ctx, tx, "end_named", u.ID, id, others); err != nil || ended == 0 {
			return err
		}
		return s.audit(ctx, tx, by, "session.end", u.target(), nil, fields{"ended_sessions": ended})
	})
	return ended, err
}

// ChangePassword sets a new password of who sends a request, who must tell the old one. All their sessions end; the request's browser gets a new one. The
// error is ErrLogin for a wrong old password, a *LimitedError, an *InputError about the new one, or ErrNoPassword.
func (g *Guard) ChangePassword(w http.ResponseWriter, r *http.Request, old, password string) error {
	actor, ok := FromContext(r.Context())
	if !ok || actor.User == 0 || actor.Token != 0 {
		return ErrNotLoggedIn
	}
	ctx, cancel := context.WithTimeout(r.Context(), loginTimeout)
	defer cancel()
	secret, err := g.store.changePassword(ctx, actor.Name, old, password, g.client(r))
	if err != nil {
		return err
	}
	g.setCookie(w, r, sessionCookie, secret, g.store.config.Absolute)
	return nil
}

// SessionID names the session of a request as the list of sessions does; empty: it has none.
func (g *Guard) SessionID(r *http.Request) string {
	secret := g.sessionOf(r)
	if secret == "" {
		return ""
	}
	return sessionName(secret)
}
