package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

const (
	// TokenPrefix begins every token, so that scanners for secrets find those that were published by mistake.
	TokenPrefix = "pelton_"

	// DefaultTokenLife is how long a token holds unless told otherwise.
	DefaultTokenLife = 90 * 24 * time.Hour

	// MaxTokenLife bounds it.
	MaxTokenLife = 10 * 365 * 24 * time.Hour
)

// Token is a key for programs that act for a user.
type Token struct {
	ID        int64      `json:"id"`
	User      string     `json:"user"`
	Name      string     `json:"name"`
	Role      Role       `json:"role"`    // at most
	Project   string     `json:"project"` // Everything: whatever its user may
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt time.Time  `json:"expires_at"`
	UsedAt    *time.Time `json:"used_at"` // give or take a minute
	RevokedAt *time.Time `json:"revoked_at"`
	Expired   bool       `json:"expired"`
}

// NewToken is a token that is to be made. It gives no rights that its user has not.
type NewToken struct {
	User    string
	Name    string        // what it is for
	Role    Role          // at most; defaults to Viewer
	Project string        // defaults to Everything
	Life    time.Duration // defaults to DefaultTokenLife
}

func (n *NewToken) check() error {
	if n.Role == NoRole {
		n.Role = Viewer
	}
	if n.Project == "" {
		n.Project = Everything
	}
	if n.Life == 0 {
		n.Life = DefaultTokenLife
	}
	var faults []error
	if n.Name == "" || len(n.Name) > 200 || strings.ContainsFunc(n.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		faults = append(faults, invalidf("name of a token: want 1 to 200 bytes in one line, saying what it is for"))
	}
	if n.Life < time.Minute || n.Life > MaxTokenLife {
		faults = append(faults, invalidf("life of a token: %v, want a minute to %d days", n.Life, int(MaxTokenLife.Hours()/24)))
	}
	return errors.Join(append(faults, checkGrant(Grant{Project: n.Project, Role: n.Role}))...)
}

// AddToken makes a token and returns its secret, which is not stored and cannot be told again.
func (s *Store) AddToken(ctx context.Context, by string, n NewToken) (t Token, secret string, err error) {
	if err := n.check(); err != nil {
		return Token{}, "", err
	}
	secret, hash := newSecret(TokenPrefix)
	err = s.changeUser(ctx, n.User, func(tx pgx.Tx, u lockedUser) error {
		row, err := one[struct {
			ID                   int64
			CreatedAt, ExpiresAt time.Time
		}](ctx, s, tx, "add_token", u.ID, n.Name, n.Project, n.Role.String(), n.Life, hash)
		if err != nil {
			return err
		}
		t = Token{
			ID: row.ID, User: u.Name, Name: n.Name, Role: n.Role, Project: n.Project, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
		}
		return s.audit(ctx, tx, by, "token.create", t.target(), nil,
			fields{"user": t.User, "name": t.Name, "role": t.Role, "project": t.Project, "expires_at": t.ExpiresAt.UTC()})
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, secret, nil
}

func (t Token) target() string { return fmt.Sprintf("token %d", t.ID) }

// TokenListParams say which tokens to list. Zero fields ask for nothing.
type TokenListParams struct {
	User   string // of this one
	Holds  bool   // that still hold: neither revoked nor expired
	Before int64  // continue a list: the id of its last token
	Limit  int    // at most so many; 0: all
}

// TokenList lists tokens, the newest first, also those that no longer hold. ErrNotFound if there is no such user.
func (s *Store) TokenList(ctx context.Context, p TokenListParams) ([]Token, error) {
	var user, before *int64
	if p.User != "" {
		u, err := s.User(ctx, p.User)
		if err != nil {
			return nil, err
		}
		user = &u.ID
	}
	if p.Before != 0 {
		before = &p.Before
	}
	return all[Token](ctx, s, s.pool, "tokens", user, before, p.Holds, sqlfile.AtMost(p.Limit))
}

// RevokeToken ends a token for good, and tells whether it was not revoked before. ErrNotFound if there is none of that id.
func (s *Store) RevokeToken(ctx context.Context, by string, id int64) (changed bool, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		t, err := one[struct {
			User, Name string
			Revoked    bool
		}](ctx, s, tx, "lock_token", id)
		if err != nil || t.Revoked {
			return err
		}
		changed = true
		if _, err := s.exec(ctx, tx, "revoke_token", id); err != nil {
			return err
		}
		what := fields{"user": t.User, "name": t.Name}
		return s.audit(ctx, tx, by, "token.revoke", Token{ID: id}.target(), what, nil)
	})
	if err != nil {
		return false, fmt.Errorf("token %d: %w", id, err)
	}
	return changed, nil
}

// ByToken finds who uses a token. ErrNotLoggedIn if it does not hold.
func (s *Store) ByToken(ctx context.Context, secret string) (Actor, error) {
	if !strings.HasPrefix(secret, TokenPrefix) {
		return Actor{}, fmt.Errorf("%w: not a token of Pelton's, which begin with %s", ErrNotLoggedIn, TokenPrefix)
	}
	row, err := one[struct {
		User      int64
		Name      string
		ID        int64
		TokenName string
		Role      Role
		Project   string
		Stale     bool
		Roles     []Grant
	}](ctx, s, s.pool, "token", hashSecret(secret))
	if errors.Is(err, ErrNotFound) {
		return Actor{}, fmt.Errorf("%w: the token is unknown, revoked or expired, or its user is disabled", ErrNotLoggedIn)
	}
	if err != nil {
		return Actor{}, err
	}
	if row.Stale {
		if err := s.note(ctx, "use_token", row.ID); err != nil {
			return Actor{}, err
		}
	}
	return Actor{Name: row.Name, User: row.User, Token: row.ID, TokenName: row.TokenName, grants: row.Roles, cap: &Grant{Project: row.Project, Role: row.Role}}, nil
}

// note writes down that something was used.
func (s *Store) note(ctx context.Context, statement string, key any) error {
	return s.tx(ctx, func(tx pgx.Tx) error {
		_, err := s.exec(ctx, tx, statement, key)
		return err
	})
}

// newSecret makes 32 random bytes as text, and what is stored of them. They are random enough that a plain SHA-256 hides them.
func newSecret(prefix string) (secret string, hash []byte) {
	secret = prefix + base64.RawURLEncoding.EncodeToString(randomBytes(32))
	return secret, hashSecret(secret)
}

func hashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
