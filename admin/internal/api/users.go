package api

import (
	"context"
	"net/http"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
)

// addUsers adds users and tokens, which only an admin of everything sees and changes.
func (s *server) addUsers() {
	op := func(id, method, path, tag, summary string, more operation) operation {
		more.id, more.method, more.path, more.tag, more.summary, more.role = id, method, path, tag, summary, access.Admin
		return more
	}
	exists := operation{status: http.StatusCreated, errors: []int{http.StatusConflict}}
	add(s, op("users-list", http.MethodGet, "/users", "users", "List users and their roles", operation{}), s.usersList)
	add(s, op("users-add", http.MethodPost, "/users", "users", "Add a user", exists), s.usersAdd)
	add(s, op("users-set-password", http.MethodPut, "/users/{name}/password", "users", "Set a password, and end the user's sessions", operation{}),
		s.usersSetPassword)
	add(s, op("users-set-role", http.MethodPut, "/users/{name}/role", "users", "Give a role, or take it back (none)", operation{errors: []int{http.StatusConflict}}), s.usersSetRole)
	add(s, op("users-disable", http.MethodPost, "/users/{name}/disable", "users", "Keep a user out: end sessions, and let no token hold", operation{errors: []int{http.StatusConflict}}),
		s.userVerb("disabled", s.Access.Disable))
	add(s, op("users-enable", http.MethodPost, "/users/{name}/enable", "users", "Let a disabled user in again", operation{}),
		s.userVerb("enabled", s.Access.Enable))
	add(s, op("tokens-list", http.MethodGet, "/tokens", "tokens", "List tokens, newest first", operation{errors: []int{http.StatusNotFound}}), s.tokensList)
	add(s, op("tokens-create", http.MethodPost, "/tokens", "tokens", "Make a token, and tell it this once",
		operation{status: http.StatusCreated, errors: []int{http.StatusNotFound}}), s.tokensCreate)
	add(s, op("tokens-revoke", http.MethodPost, "/tokens/{id}/revoke", "tokens", "End a token for good", operation{}), s.tokensRevoke)
}

// by names who asks.
func by(ctx context.Context) string {
	actor, _ := access.FromContext(ctx)
	return actor.Name
}

func (s *server) usersList(ctx context.Context, in *struct{ Paging }) (*answer[Page[document.User]], error) {
	const list = "users"
	after, err := positionOf[string](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	p := access.UserListParams{Limit: in.Limit + 1}
	if after != nil {
		p.After = *after
	}
	users, err := s.Access.UserList(ctx, p)
	if err != nil {
		return nil, err
	}
	items := make([]document.User, len(users))
	for i, u := range users {
		items[i] = document.NewUser(u)
	}
	return &answer[Page[document.User]]{pageOf(list, items, in.Limit, func(u document.User) any { return u.Name })}, nil
}

// UserSpec is a user to add.
type UserSpec struct {
	Name     string `json:"name" maxLength:"200"`
	Password string `json:"password,omitempty" maxLength:"1000" doc:"without one the user logs in by OpenID Connect under this name"`
	Role     string `json:"role,omitempty" enum:"viewer,operator,admin" doc:"default: none yet"`
	Project  string `json:"project,omitempty" maxLength:"200" default:"*" doc:"that the role is for; * is everything"`
}

func (s *server) usersAdd(ctx context.Context, in *struct{ Body UserSpec }) (*answer[document.User], error) {
	u := access.NewUser{Name: in.Body.Name, Password: in.Body.Password}
	if in.Body.Role != "" {
		role, err := access.ParseRole(in.Body.Role)
		if err != nil {
			return nil, invalid("body.role", "%v", err)
		}
		u.Roles = []access.Grant{{Project: in.Body.Project, Role: role}}
	}
	added, err := s.Access.AddUser(ctx, by(ctx), u)
	if err != nil {
		return nil, err
	}
	return &answer[document.User]{document.NewUser(added)}, nil
}

// UserPath names a user.
type UserPath struct {
	Name string `path:"name" maxLength:"200" doc:"of the user, in whatever case"`
}

// Password is a new password.
type Password struct {
	Password string `json:"password" maxLength:"1000"`
}

type passwordInput struct {
	UserPath

	Body Password
}

func (s *server) usersSetPassword(ctx context.Context, in *passwordInput) (*answer[document.UserChanged], error) {
	err := s.Access.SetPassword(ctx, by(ctx), in.Name, in.Body.Password)
	return answered(document.UserChanged{Name: in.Name, Done: "password set", Changed: true}, err)
}

// RoleSpec is a role to give.
type RoleSpec struct {
	Role    string `json:"role" enum:"none,viewer,operator,admin"`
	Project string `json:"project,omitempty" maxLength:"200" default:"*" doc:"that the role is for; * is everything"`
}

type roleInput struct {
	UserPath

	Body RoleSpec
}

func (s *server) usersSetRole(ctx context.Context, in *roleInput) (*answer[document.User], error) {
	role := access.NoRole
	if in.Body.Role != access.NoRole.String() {
		var err error
		if role, err = access.ParseRole(in.Body.Role); err != nil {
			return nil, invalid("body.role", "%v", err)
		}
	}
	if err := s.Access.SetRole(ctx, by(ctx), in.Name, access.Grant{Project: in.Body.Project, Role: role}); err != nil {
		return nil, err
	}
	u, err := s.Access.User(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &answer[document.User]{document.NewUser(u)}, nil
}

func (s *server) userVerb(
	done string, do func(ctx context.Context, by, name string) (bool, error),
) func(context.Context, *UserPath) (*answer[document.UserChanged], error) {
	return func(ctx context.Context, in *UserPath) (*answer[document.UserChanged], error) {
		changed, err := do(ctx, by(ctx), in.Name)
		return answered(document.UserChanged{Name: in.Name, Done: done, Changed: changed}, err)
	}
}

type tokensListInput struct {
	Paging

	User string `query:"user" maxLength:"200" doc:"only those of this user"`
}

func (s *server) tokensList(ctx context.Context, in *tokensListInput) (*answer[Page[access.Token]], error) {
	const list = "tokens"
	before, err := positionOf[int64](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	p := access.TokenListParams{User: in.User, Limit: in.Limit + 1}
	if before != nil {
		p.Before = *before
	}
	tokens, err := s.Access.TokenList(ctx, p)
	if err != nil {
		return nil, err
	}
	items := make([]access.Token, len(tokens))
	for i, t := range tokens {
		items[i] = document.NewToken(t)
	}
	return &answer[Page[access.Token]]{pageOf(list, items, in.Limit, func(t access.Token) any { return t.ID })}, nil
}

// TokenSpec is a token to make.
type TokenSpec struct {
	User    string `json:"user" maxLength:"200"`
	Name    string `json:"name" maxLength:"200" doc:"what it is for"`
	Role    string `json:"role,omitempty" enum:"viewer,operator,admin" default:"viewer" doc:"at most, if its user has it"`
	Project string `json:"project,omitempty" maxLength:"200" default:"*" doc:"* is all that its user may"`
	Days    int    `json:"days,omitempty" minimum:"1" maximum:"3650" default:"90" doc:"how long it holds"`
}

func (s *server) tokensCreate(ctx context.Context, in *struct{ Body TokenSpec }) (*answer[document.TokenMade], error) {
	role, err := access.ParseRole(in.Body.Role)
	if err != nil {
		return nil, invalid("body.role", "%v", err)
	}
	t, secret, err := s.Access.AddToken(ctx, by(ctx), access.NewToken{
		User: in.Body.User, Name: in.Body.Name, Role: role, Project: in.Body.Project, Life: time.Duration(in.Body.Days) * 24 * time.Hour,
	})
	if err != nil {
		return nil, err
	}
	return &answer[document.TokenMade]{document.TokenMade{Token: document.NewToken(t), Secret: secret}}, nil
}

// TokenPath names a token.
type TokenPath struct {
	ID int64 `path:"id" minimum:"1" doc:"of the token"`
}

func (s *server) tokensRevoke(ctx context.Context, in *TokenPath) (*answer[document.TokenRevoked], error) {
	changed, err := s.Access.RevokeToken(ctx, by(ctx), in.ID)
	return answered(document.TokenRevoked{ID: in.ID, Changed: changed}, err)
}
