package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/jobs/flow/secret"
)

var adminRoom = room{Name: "Admin", Path: "/admin", Sees: administers, Mount: func(p *Page) {
	p.get("/admin", checksItself, p.showUsers)
	p.post("/admin/users", admin, p.addUser)
	p.get("/admin/users/{name}", admin, p.showUser)
	p.post("/admin/users/{name}/role", admin, p.setRole)
	p.post("/admin/users/{name}/password", admin, p.setPassword)
	p.get("/admin/users/{name}/disable", admin, p.askDisable)
	p.post("/admin/users/{name}/disable", admin, p.disableUser)
	p.post("/admin/users/{name}/enable", admin, p.enableUser)
	p.get("/admin/tokens", admin, p.showTokens)
	p.post("/admin/tokens", admin, p.addAnyToken)
	p.post("/admin/tokens/revoke", admin, p.revokeAnyToken)
	p.get("/admin/secrets", checksItself, p.showSecrets)
	p.post("/admin/secrets/set", checksItself, p.setSecret)
	p.post("/admin/secrets/rekey", admin, p.rekeySecrets)
	p.get("/admin/secrets/delete", checksItself, p.askDeleteSecret)
	p.post("/admin/secrets/delete", checksItself, p.deleteSecret)
}}

// administers tells whether somebody is admin of something.
func administers(a access.Actor) bool {
	all, names := a.Projects(access.Admin)
	return all || len(names) > 0
}

// adminShown bounds the lists of users, tokens and secrets.
const adminShown = 500

func userPath(name string) string { return "/admin/users/" + url.PathEscape(name) }

// told makes an answer of what was refused for what was asked.
func told(err error) error {
	var (
		user  *access.InputError
		value *secret.InputError
		mute  *alert.InputError
	)
	switch {
	case errors.As(err, &user), errors.As(err, &value), errors.As(err, &mute):
		return badInput("%v", err)
	case errors.Is(err, access.ErrExists), errors.Is(err, access.ErrLastAdmin):
		return refused(err)
	case errors.Is(err, alert.ErrNotFound), errors.Is(err, secret.ErrNotFound):
		return notFound("%v", err)
	}
	return err
}

// userLine is a user as the list shows it.
type userLine struct {
	access.User

	Where string
}

// Login says how they log in.
func (u userLine) Login() string {
	var ways []string
	if u.PasswordAt != nil {
		ways = append(ways, "password")
	}
	if u.Subject != "" || u.PasswordAt == nil {
		ways = append(ways, "OpenID Connect")
	}
	return strings.Join(ways, ", ")
}

type usersPage struct {
	Users []userLine
	More  bool
	Find  string
	Roles []string
	First bool // there are no users yet
}

func (p *Page) showUsers(w http.ResponseWriter, r *http.Request) error {
	if err := admin(r.Context()); err != nil {
		if administers(actor(r.Context())) {
			http.Redirect(w, r, "/admin/secrets", http.StatusSeeOther)
			return nil
		}
		return err
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	shown := usersPage{Roles: access.Roles(), Find: strings.TrimSpace(r.URL.Query().Get("q"))}
	users, err := p.config.Access.UserList(ctx, access.UserListParams{Find: shown.Find, Limit: adminShown + 1})
	if err != nil {
		return err
	}
	shown.First = len(users) == 0 && shown.Find == ""
	for _, u := range users {
		if len(shown.Users) == adminShown {
			shown.More = true
			break
		}
		shown.Users = append(shown.Users, userLine{u, userPath(u.Name)})
	}
	return p.render(w, r, "users", "Users", shown)
}

// projectField is a project of a form; empty means everything.
func projectField(r *http.Request) string {
	if project := strings.TrimSpace(r.PostFormValue("project")); project != "" {
		return project
	}
	return access.Everything
}

func (p *Page) addUser(w http.ResponseWriter, r *http.Request) error {
	u := access.NewUser{Name: strings.TrimSpace(r.PostFormValue("name")), Password: r.PostFormValue("password")}
	if u.Password != r.PostFormValue("again") {
		return badInput("the password was typed in two ways")
	}
	if text := r.PostFormValue("role"); text != "" {
		role, err := access.ParseRole(text)
		if err != nil {
			return badInput("%v", err)
		}
		u.Roles = []access.Grant{{Project: projectField(r), Role: role}}
	}
	a := actor(r.Context())
	if a.User == 0 && (u.Password == "" || len(u.Roles) == 0 || u.Roles[0] != access.Grant{Project: access.Everything, Role: access.Admin}) {
		return badInput("the first user ends the time without logins: make them admin of everything, with a password, so that somebody can come in")
	}
	added, err := p.config.Access.AddUser(r.Context(), a.Name, u)
	if err != nil {
		return told(err)
	}
	return p.done(w, r, userPath(added.Name), "User %s is added.", added.Name)
}

type userPage struct {
	userLine

	Names []string // of roles
	Self  bool     // it is who looks
}

func (p *Page) showUser(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	u, err := p.findUser(ctx, r)
	if err != nil {
		return err
	}
	return p.render(w, r, "user", "User "+u.Name, userPage{userLine{u, userPath(u.Name)}, access.Roles(), u.ID == actor(r.Context()).User})
}

// findUser is the user that the path names.
func (p *Page) findUser(ctx context.Context, r *http.Request) (access.User, error) {
	return p.config.Access.User(ctx, r.PathValue("name"))
}

// other is findUser for what nobody should do to themselves: they would be locked out.
func (p *Page) other(r *http.Request, what string) (access.User, error) {
	u, err := p.findUser(r.Context(), r)
	if err == nil && u.ID == actor(r.Context()).User {
		return u, refused(errors.New("this is your own account: " + what))
	}
	return u, err
}

func (p *Page) setRole(w http.ResponseWriter, r *http.Request) error {
	grant := access.Grant{Project: projectField(r)}
	if text := r.PostFormValue("role"); text != access.NoRole.String() {
		var err error
		if grant.Role, err = access.ParseRole(text); err != nil {
			return badInput("%v", err)
		}
	}
	u, err := p.findUser(r.Context(), r)
	if err == nil && grant.Project == access.Everything && grant.Role < access.Admin {
		u, err = p.other(r, "another admin can take your role for everything")
	}
	if err != nil {
		return err
	}
	if err := p.config.Access.SetRole(r.Context(), actor(r.Context()).Name, u.Name, grant); err != nil {
		return told(err)
	}
	where := "project " + grant.Project
	if grant.Project == access.Everything {
		where = "everything"
	}
	if grant.Role == access.NoRole {
		return p.done(w, r, userPath(u.Name), "%s has no role for %s any more, unless a group gives one.", u.Name, where)
	}
	return p.done(w, r, userPath(u.Name), "%s is %s of %s.", u.Name, grant.Role, where)
}

func (p *Page) setPassword(w http.ResponseWriter, r *http.Request) error {
	u, err := p.other(r, "change your password at /account")
	if err != nil {
		return err
	}
	if r.PostFormValue("password") != r.PostFormValue("again") {
		return badInput("the password was typed in two ways")
	}
	if err := p.config.Access.SetPassword(r.Context(), actor(r.Context()).Name, u.Name, r.PostFormValue("password")); err != nil {
		return told(err)
	}
	return p.done(w, r, userPath(u.Name), "The password of %s is set. Their sessions have ended.", u.Name)
}

func (p *Page) askDisable(w http.ResponseWriter, r *http.Request) error {
	u, err := p.other(r, "another admin can disable you")
	if err != nil {
		return err
	}
	return p.confirm(w, r, "Disable "+u.Name+"?", confirmation{
		Text:   "Their sessions end at once, and their tokens do not hold until they are enabled again. What they have started goes on.",
		Action: userPath(u.Name) + "/disable", Button: "Disable", Back: userPath(u.Name),
	})
}

func (p *Page) disableUser(w http.ResponseWriter, r *http.Request) error {
	u, err := p.other(r, "another admin can disable you")
	if err != nil {
		return err
	}
	if _, err := p.config.Access.Disable(r.Context(), actor(r.Context()).Name, u.Name); err != nil {
		return told(err)
	}
	return p.done(w, r, userPath(u.Name), "%s is disabled.", u.Name)
}

func (p *Page) enableUser(w http.ResponseWriter, r *http.Request) error {
	u, err := p.findUser(r.Context(), r)
	if err != nil {
		return err
	}
	if _, err := p.config.Access.Enable(r.Context(), actor(r.Context()).Name, u.Name); err != nil {
		return err
	}
	return p.done(w, r, userPath(u.Name), "%s is enabled.", u.Name)
}

type tokensPage struct {
	Tokens    []tokenLine
	More, All bool
	User      string
	Roles     []string
	Days      []int
	Form      tokenForm
	Secret    string // of a token that was made just now
}

// tokenForm is the form of a token for somebody as it was filled in.
type tokenForm struct {
	User, Name, Role, Project, Days string
	Fault                           string
}

type tokenLine struct {
	access.Token

	Where string // its user
}

func (p *Page) showTokens(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	user := strings.TrimSpace(query.Get("user"))
	return p.renderTokens(w, r, http.StatusOK, tokensPage{
		User: user, All: query.Get("all") != "", Form: tokenForm{User: user, Role: access.Viewer.String(), Days: "90"},
	})
}

func (p *Page) renderTokens(w http.ResponseWriter, r *http.Request, status int, shown tokensPage) error {
	shown.Roles, shown.Days = access.Roles(), tokenDays
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	tokens, err := p.config.Access.TokenList(ctx, access.TokenListParams{User: shown.User, Holds: !shown.All, Limit: adminShown + 1})
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if len(shown.Tokens) == adminShown {
			shown.More = true
			break
		}
		shown.Tokens = append(shown.Tokens, tokenLine{t, userPath(t.User)})
	}
	return p.renderStatus(w, r, status, "tokens", "Tokens", shown)
}

// addAnyToken makes a token for any user, as the API and the command line do.
func (p *Page) addAnyToken(w http.ResponseWriter, r *http.Request) error {
	field := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	form := tokenForm{User: field("user"), Name: field("name"), Role: field("role"), Project: field("project"), Days: field("days")}
	token, secret, err := p.makeToken(r, form)
	var input *inputError
	switch err = told(err); {
	case errors.Is(err, access.ErrNotFound):
		form.Fault = fmt.Sprintf("there is no user %q", form.User)
	case errors.As(err, &input):
		form.Fault = input.text
	case err != nil:
		return err
	}
	if form.Fault != "" {
		return p.renderTokens(w, r, http.StatusUnprocessableEntity, tokensPage{Form: form})
	}
	// The secret is told this once, and by no redirect, which would have to keep it somewhere.
	return p.renderTokens(w, r, http.StatusOK, tokensPage{
		User: token.User, Form: tokenForm{User: token.User, Role: access.Viewer.String(), Days: "90"}, Secret: secret,
	})
}

func (p *Page) makeToken(r *http.Request, form tokenForm) (t access.Token, secret string, err error) {
	wanted := access.NewToken{User: form.User, Name: form.Name, Project: form.Project}
	if wanted.Role, err = access.ParseRole(form.Role); err != nil {
		return t, "", badInput("%v", err)
	}
	if wanted.Life, err = tokenLife(form.Days); err != nil {
		return t, "", err
	}
	return p.config.Access.AddToken(r.Context(), actor(r.Context()).Name, wanted)
}

func (p *Page) revokeAnyToken(w http.ResponseWriter, r *http.Request) error {
	id, err := strconv.ParseInt(r.PostFormValue("token"), 10, 64)
	if err != nil || id < 1 {
		return badInput("%q is no number of a token", r.PostFormValue("token"))
	}
	changed, err := p.config.Access.RevokeToken(r.Context(), actor(r.Context()).Name, id)
	if err != nil {
		return err
	}
	to := back(r, "/admin/tokens")
	if !changed {
		return p.done(w, r, to, "Token %d was revoked before.", id)
	}
	return p.done(w, r, to, "Token %d is revoked.", id)
}
