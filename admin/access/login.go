package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// ErrLogin says that a login failed. It never says why.
var ErrLogin = errors.New("wrong name or password")

// LimitedError says that there were too many failed logins.
type LimitedError struct {
	After time.Duration // until the next try
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many failed logins; try again in %v", e.After.Round(time.Second))
}

// limit says how failed logins under a key slow down further ones.
type limit struct {
	prefix string
	free   int           // failures that cost nothing
	most   time.Duration // longest wait
}

// Limits. One of a name is short, since others can make its owner wait.
var (
	addressLimit = limit{"address:", 20, 15 * time.Minute}
	nameLimit    = limit{"name:", 5, time.Minute}
)

// forgetFailures is when failed logins no longer count.
const forgetFailures = time.Hour

// Login checks a password and begins a session, whose secret it returns. The error is ErrLogin, a *LimitedError, or that of the database.
func (s *Store) Login(ctx context.Context, name, password, address string) (secret string, err error) {
	keys := []string{addressLimit.prefix + address, nameLimit.prefix + shownName(name)}
	failures, err := s.takeTry(ctx, keys)
	if err != nil {
		return "", err
	}
	secret, err = s.login(ctx, name, password, address, keys, failures)
	if unjudged, is := errors.AsType[*unjudgedError](err); is {
		return "", fmt.Errorf("login: %w", errors.Join(unjudged.err, s.giveBack(ctx, keys)))
	}
	if errors.Is(err, ErrLogin) {
		if err := s.noteFailure(ctx, name, address); err != nil {
			return "", fmt.Errorf("login: %w", err)
		}
		return "", ErrLogin
	}
	if err != nil {
		return "", fmt.Errorf("login: %w", err)
	}
	return secret, nil
}

func (s *Store) login(ctx context.Context, name, password, address string, keys []string, failures int) (secret string, err error) {
	user, err := s.credentials(ctx, s.pool, name)
	if err != nil {
		return "", &unjudgedError{err}
	}
	ok, err := s.hasher.matches(ctx, callerFrom(address, failures), password[:min(len(password), maxPassword+1)], user.Password)
	if err != nil {
		return "", err
	}
	if !ok || user.Disabled || len(password) > maxPassword {
		return "", ErrLogin
	}
	err = s.tx(ctx, func(tx pgx.Tx) error {
		if secret, err = s.beginSession(ctx, tx, user.ID, address, &user.Password); err != nil {
			return err
		}
		if _, err := s.exec(ctx, tx, "forgive_address", keys[0]); err != nil {
			return err
		}
		if _, err := s.exec(ctx, tx, "forgive_name", keys[1]); err != nil {
			return err
		}
		return s.audit(ctx, tx, user.Name, "login", "user "+user.Name, nil, fields{"address": address, "by": "password"})
	})
	return secret, err
}

// credentials are what a login is judged by.
type credentials struct {
	ID       int64
	Name     string
	Password string // empty: none
	Disabled bool
}

// credentials reads those of a name; none if there is no such user.
func (s *Store) credentials(ctx context.Context, db sqlfile.DB, name string) (credentials, error) {
	c, err := one[credentials](ctx, s, db, "credentials", shownName(name))
	if errors.Is(err, ErrNotFound) {
		return credentials{}, nil
	}
	return c, err
}

// giveBackTime is what taking tries back may take, after a request's own time.
const giveBackTime = 5 * time.Second

// giveBack takes back tries that were counted and not judged.
func (s *Store) giveBack(ctx context.Context, keys []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	return s.tx(ctx, func(tx pgx.Tx) error {
		for _, key := range keys {
			if _, err := s.exec(ctx, tx, "forgive_address", key); err != nil {
				return err
			}
		}
		return nil
	})
}

// takeTry counts a try under each key, unless one of them has to wait: then under none. It tells how many count for the address.
func (s *Store) takeTry(ctx context.Context, keys []string) (failures int, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		for i, l := range []limit{addressLimit, nameLimit} { // in this order everywhere, so that none waits for the other
			counted, err := one[struct{ Count int }](ctx, s, tx, "try_login", keys[i], forgetFailures, l.free, l.most)
			if errors.Is(err, ErrNotFound) {
				return s.limited(ctx, tx, keys[i])
			}
			if err != nil {
				return err
			}
			if i == 0 {
				failures = counted.Count
			}
		}
		return nil
	})
	var limited *LimitedError
	if err != nil && !errors.As(err, &limited) {
		return 0, fmt.Errorf("login: %w", err)
	}
	return failures, err
}

func (s *Store) limited(ctx context.Context, tx pgx.Tx, key string) error {
	row, err := one[struct{ Seconds float64 }](ctx, s, tx, "wait_login", key)
	if err != nil {
		return err
	}
	return &LimitedError{max(time.Second, time.Duration(row.Seconds*float64(time.Second)))}
}

// noteFailure puts a failed login into the audit. Nobody is known to have done it.
func (s *Store) noteFailure(ctx context.Context, name, address string) error {
	return s.tx(ctx, func(tx pgx.Tx) error {
		return s.audit(ctx, tx, "", "login.failed", "user "+shownName(name), nil, fields{"address": address})
	})
}

// shownName is a name as it was typed if it can be one, in small letters; else "?": what is typed may be a password by mistake.
func shownName(name string) string {
	if !validName(name) {
		return "?"
	}
	return strings.ToLower(name)
}
