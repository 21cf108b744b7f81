package document

import (
	"strings"
	"time"

	"github.com/peltonq/pelton/admin/access"
)

// User is a user without what only the database needs.
type User struct {
	Name       string         `json:"name"`
	Login      string         `json:"login" doc:"how: password, oidc, or both with a comma"`
	CreatedAt  time.Time      `json:"created_at"`
	DisabledAt *time.Time     `json:"disabled_at"`
	Roles      []access.Grant `json:"roles"`
}

// NewUser shows a user.
func NewUser(u access.User) User {
	var ways []string
	if u.PasswordAt != nil {
		ways = append(ways, "password")
	}
	if u.Subject != "" || u.PasswordAt == nil {
		ways = append(ways, "oidc")
	}
	return User{u.Name, strings.Join(ways, ","), u.CreatedAt.UTC(), UTC(u.DisabledAt), append([]access.Grant{}, u.Roles...)}
}

// UserChanged is what was done to a user.
type UserChanged struct {
	Name    string `json:"name"`
	Done    string `json:"done"`
	Changed bool   `json:"changed" doc:"false: it was so already"`
}

// NewToken shows a token.
func NewToken(t access.Token) access.Token {
	t.CreatedAt, t.ExpiresAt, t.UsedAt, t.RevokedAt = t.CreatedAt.UTC(), t.ExpiresAt.UTC(), UTC(t.UsedAt), UTC(t.RevokedAt)
	return t
}

// TokenMade is a token that was just made, with its secret.
type TokenMade struct {
	access.Token

	Secret string `json:"token" doc:"what programs send; it is not told again"`
}

// TokenRevoked is a token that does not hold any more.
type TokenRevoked struct {
	ID      int64 `json:"id"`
	Changed bool  `json:"changed" doc:"false: it was revoked already"`
}
