package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/peltonq/pelton/admin/access"
)

var accountRoom = room{Path: "/account", Mount: func(p *Page) {
	p.get("/account", own, p.showAccount)
	p.post("/account/password", own, p.changePassword)
	p.post("/account/session", own, p.endSession)
	p.post("/account/sessions", own, p.endOtherSessions)
	p.post("/account/token", own, p.addToken)
	p.post("/account/token/revoke", own, p.revokeToken)
}}

// own is for one's own account. A token has no business there: it could give itself more rights than it has.
var own need = func(ctx context.Context) error {
	if actor(ctx).Token != 0 {
		return fmt.Errorf("%w: an account is managed by its user, who logs in, not by a token", access.ErrForbidden)
	}
	return nil
}

// tokenDays are the lives of tokens that the form offers.
var tokenDays = []int{1, 7, 30, 90, 365}

// tokenLife reads how many days a token holds.
func tokenLife(text string) (time.Duration, error) {
	days, err := strconv.Atoi(text)
	if err != nil || days < 1 || days > 3650 {
		return 0, badInput("%q is no number of days", text)
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

type accountPage struct {
	User     *access.User // nil: nobody was asked
	Sessions []access.Session
	Here     string // the session of this browser
	Tokens   []access.Token
	Days     []int
	Roles    []string
	Secret   string // of a token that was made just now
	Fault    string // of the password's form
}

func (p *Page) account(r *http.Request) (accountPage, error) {
	shown := accountPage{Days: tokenDays, Roles: access.Roles(), Here: p.config.Guard.SessionID(r)}
	a := actor(r.Context())
	if a.User == 0 {
		return shown, nil
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	user, err := p.config.Access.User(ctx, a.Name)
	if err != nil {
		return shown, err
	}
	shown.User = &user
	if shown.Sessions, err = p.config.Access.SessionList(ctx, a.Name); err != nil {
		return shown, err
	}
	shown.Tokens, err = p.config.Access.TokenList(ctx, access.TokenListParams{User: a.Name})
	return shown, err
}

func (p *Page) showAccount(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.account(r)
	if err != nil {
		return err
	}
	return p.render(w, r, "account", "Your account", shown)
}

// user is who changes their account.
func (p *Page) user(r *http.Request) (string, error) {
	a := actor(r.Context())
	if a.User == 0 {
		return "", refused(errors.New("there are no users yet: add one with pelton user add"))
	}
	return a.Name, nil
}

func (p *Page) changePassword(w http.ResponseWriter, r *http.Request) error {
	if _, err := p.user(r); err != nil {
		return err
	}
	if r.PostFormValue("new") != r.PostFormValue("again") {
		return p.passwordFault(w, r, http.StatusBadRequest, "The new password was typed in two ways.")
	}
	err := p.config.Guard.ChangePassword(w, r, r.PostFormValue("old"), r.PostFormValue("new"))
	limited, isLimited := errors.AsType[*access.LimitedError](err)
	input, isInput := errors.AsType[*access.InputError](err)
	switch {
	case isLimited:
		return p.passwordFault(w, r, http.StatusTooManyRequests, limited.Error())
	case isInput:
		return p.passwordFault(w, r, http.StatusBadRequest, input.Error())
	case errors.Is(err, access.ErrNoPassword):
		return p.passwordFault(w, r, http.StatusConflict, err.Error())
	case errors.Is(err, access.ErrLogin):
		return p.passwordFault(w, r, http.StatusForbidden, "The old password is wrong.")
	case err != nil:
		return err
	}
	return p.done(w, r, "/account", "The password is changed. All other sessions have ended.")
}

func (p *Page) passwordFault(w http.ResponseWriter, r *http.Request, status int, fault string) error {
	shown, err := p.account(r)
	if err != nil {
		return err
	}
	shown.Fault = fault
	return p.renderStatus(w, r, status, "account", "Your account", shown)
}

func (p *Page) endSession(w http.ResponseWriter, r *http.Request) error {
	name, err := p.user(r)
	if err != nil {
		return err
	}
	ended, err := p.config.Access.EndSessionOf(r.Context(), name, name, r.PostFormValue("session"), false)
	if err != nil {
		return err
	}
	if ended == 0 {
		return notFound("this session has ended already")
	}
	return p.done(w, r, "/account", "The session has ended.")
}

func (p *Page) endOtherSessions(w http.ResponseWriter, r *http.Request) error {
	name, err := p.user(r)
	if err != nil {
		return err
	}
	ended, err := p.config.Access.EndSessionOf(r.Context(), name, name, p.config.Guard.SessionID(r), true)
	if err != nil {
		return err
	}
	return p.done(w, r, "/account", "%d other sessions have ended.", ended)
}

func (p *Page) addToken(w http.ResponseWriter, r *http.Request) error {
	name, err := p.user(r)
	if err != nil {
		return err
	}
	wanted := access.NewToken{User: name, Name: r.PostFormValue("name"), Project: r.PostFormValue("project")}
	if wanted.Role, err = access.ParseRole(r.PostFormValue("role")); err != nil {
		return badInput("%v", err)
	}
	if wanted.Life, err = tokenLife(r.PostFormValue("days")); err != nil {
		return err
	}
	_, secret, err := p.config.Access.AddToken(r.Context(), name, wanted)
	if input, ok := errors.AsType[*access.InputError](err); ok {
		return badInput("%v", input)
	}
	if err != nil {
		return err
	}
	shown, err := p.account(r)
	if err != nil {
		return err
	}
	shown.Secret = secret // told this once, and by no redirect, which would have to keep it somewhere
	return p.render(w, r, "account", "Your account", shown)
}

func (p *Page) revokeToken(w http.ResponseWriter, r *http.Request) error {
	name, err := p.user(r)
	if err != nil {
		return err
	}
	tokens, err := p.config.Access.TokenList(r.Context(), access.TokenListParams{User: name})
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if strconv.FormatInt(t.ID, 10) == r.PostFormValue("token") {
			if _, err := p.config.Access.RevokeToken(r.Context(), name, t.ID); err != nil {
				return err
			}
			return p.done(w, r, "/account", "Token %d is revoked.", t.ID)
		}
	}
	return notFound("you have no such token")
}
