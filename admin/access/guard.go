package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// GuardConfig says how a server is reached. Store is required.
type GuardConfig struct {
	Store *Store

	// Loopback: only this machine can reach the server. Without users everybody is then let in.
	Loopback bool

	// BehindProxy: a proxy is before the server, and its X-Forwarded-For and X-Forwarded-Proto are believed.
	BehindProxy bool

	// PublicURL is how browsers reach the server, as https://pelton.example.com. Needed for OIDC.
	PublicURL string

	// OIDC is a provider of logins; nil: none.
	OIDC *OIDC

	// Page shows a browser why a request is refused; nil: it gets the same as programs.
	Page func(w http.ResponseWriter, r *http.Request, status int, title, detail string)

	// Logger is told of what a browser is not. Defaults to slog's default logger.
	Logger *slog.Logger
}

// Guard finds out who sends a request. Make it with NewGuard. Safe for concurrent use.
type Guard struct {
	config  GuardConfig
	store   *Store
	public  *url.URL // nil: not known
	origins *http.CrossOriginProtection
	relying *relying // nil: no OIDC
	closed  atomic.Bool
}

// NewGuard checks a configuration.
func NewGuard(config GuardConfig) (*Guard, error) {
	if config.Store == nil {
		return nil, errors.New("guard: Store is required")
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	g := &Guard{config: config, store: config.Store, origins: http.NewCrossOriginProtection()}
	if config.PublicURL != "" {
		u, err := url.Parse(config.PublicURL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return nil, fmt.Errorf("public URL %q: want a scheme and a host, as https://pelton.example.com", config.PublicURL)
		}
		if err := g.origins.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return nil, fmt.Errorf("public URL: %w", err)
		}
		g.public = u
	}
	if config.OIDC != nil {
		if err := config.OIDC.check(); err != nil {
			return nil, fmt.Errorf("OIDC: %w", err)
		}
		if g.public == nil {
			return nil, errors.New("OIDC: the public URL is needed, for the provider to send browsers back to")
		}
		g.relying = newRelying(config.OIDC, g.public)
	}
	return g, nil
}

// HasOIDC tells whether there is a provider of logins.
func (g *Guard) HasOIDC() bool { return g.relying != nil }

// Authenticate puts the request's Actor into its context, and refuses a request of nobody's: a browser is sent to the login.
func (g *Guard) Authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, err := g.Identify(r)
		if err != nil {
			g.Deny(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(WithActor(r.Context(), actor)))
	})
}

// identifyTimeout is how long a request waits for the database to tell whose it is.
const identifyTimeout = 5 * time.Second

// Identify finds out who sends a request: whose token is in Authorization, else whose session in the cookie, else local where there are no
// users. The error is ErrNotLoggedIn, ErrForbidden (another page sent it), or that of the database.
func (g *Guard) Identify(r *http.Request) (Actor, error) {
	ctx, cancel := context.WithTimeout(r.Context(), identifyTimeout)
	defer cancel()
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return Actor{}, fmt.Errorf("%w: want Authorization: Bearer and a token", ErrNotLoggedIn)
		}
		actor, err := g.store.ByToken(ctx, strings.TrimSpace(secret))
		if errors.Is(err, ErrNotLoggedIn) {
			if open, _ := g.open(ctx, r); open { // what went wrong with the question matters less than what is said already
				err = fmt.Errorf("%w; there are no users yet: send no Authorization, or make a user with pelton user add and a token with pelton token create", err)
			}
		}
		return actor, err
	}
	if secret := g.sessionOf(r); secret != "" {
		if err := checkCookieOrigin(r); err != nil {
			return Actor{}, fmt.Errorf("%w: %w", ErrForbidden, err)
		}
		actor, err := g.store.BySession(ctx, secret)
		if !errors.Is(err, ErrNotLoggedIn) {
			return actor, err
		}
	}
	open, err := g.open(ctx, r)
	switch {
	case errors.Is(err, errProxy):
		return Actor{}, fmt.Errorf("%w: %w", ErrForbidden, err)
	case err != nil:
		return Actor{}, err
	case open:
		return local, nil
	}
	return Actor{}, ErrNotLoggedIn
}

// Require refuses actors without a role in a project; "" is that of what belongs to none. Behind Authenticate.
func (g *Guard) Require(role Role, project string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := Check(r.Context(), role, project); err != nil {
				g.Deny(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Cookies: the names differ so that one that came without TLS is never taken for one that came with it.
const (
	sessionCookie = "pelton_session"
	journeyCookie = "pelton_oidc"
	hostPrefix    = "__Host-"
)

func (g *Guard) cookieName(r *http.Request, name string) string {
	if g.Secure(r) {
		return hostPrefix + name
	}
	return name
}

// cookie reads a cookie; empty if there is none.
func (g *Guard) cookie(r *http.Request, name string) string {
	c, err := r.Cookie(g.cookieName(r, name))
	if err != nil {
		return ""
	}
	return c.Value
}

func (g *Guard) sessionOf(r *http.Request) string { return g.cookie(r, sessionCookie) }

// setCookie sets a cookie for a time; 0 removes it.
func (g *Guard) setCookie(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration) {
	age := int(life.Seconds())
	if age <= 0 {
		value, age = "", -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(r, name), Value: value, Path: "/", MaxAge: age, Secure: g.Secure(r), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// loginTimeout is how long a login waits for the database, and for others' hashes to be computed.
const loginTimeout = 15 * time.Second

// Login checks a name and a password, and begins a session in a cookie. A session that the browser had is ended. The error is ErrLogin, a
// *LimitedError, or that of the database; nothing is written to w but a cookie.
func (g *Guard) Login(w http.ResponseWriter, r *http.Request, name, password string) error {
	ctx, cancel := context.WithTimeout(r.Context(), loginTimeout)
	defer cancel()
	secret, err := g.store.Login(ctx, name, password, g.client(r))
	if err != nil {
		return err
	}
	return g.startSession(w, r, secret)
}

func (g *Guard) startSession(w http.ResponseWriter, r *http.Request, secret string) error {
	if old := g.sessionOf(r); old != "" {
		if err := g.store.EndSession(r.Context(), old); err != nil {
			return err
		}
	}
	g.setCookie(w, r, sessionCookie, secret, g.store.config.Absolute)
	return nil
}

// Logout ends the session of a request's cookie, and removes the cookie. The error is ErrForbidden (another page may have sent it), or that of the database.
func (g *Guard) Logout(w http.ResponseWriter, r *http.Request) error {
	secret := g.sessionOf(r)
	if secret != "" {
		if err := checkCookieOrigin(r); err != nil {
			return fmt.Errorf("%w: %w", ErrForbidden, err)
		}
	}
	g.setCookie(w, r, sessionCookie, "", 0)
	if secret == "" {
		return nil
	}
	return g.store.EndSession(r.Context(), secret)
}

// LoginOIDC sends a browser to the provider. The form value next says where it goes afterwards.
func (g *Guard) LoginOIDC(w http.ResponseWriter, r *http.Request) {
	if g.relying == nil {
		http.NotFound(w, r)
		return
	}
	j, to, err := g.relying.depart(r.Context(), SafeNext(r.FormValue("next")))
	if err != nil {
		g.Deny(w, r, &unavailableError{"the login provider cannot be reached", err})
		return
	}
	g.setCookie(w, r, journeyCookie, j.encode(), journeyTime)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// CallbackOIDC takes a browser back from the provider, begins its session, and sends it on.
func (g *Guard) CallbackOIDC(w http.ResponseWriter, r *http.Request) {
	if g.relying == nil {
		http.NotFound(w, r)
		return
	}
	j, err := decodeJourney(g.cookie(r, journeyCookie))
	g.setCookie(w, r, journeyCookie, "", 0)
	var v vouched
	if err == nil {
		v, err = g.relying.arrive(r.Context(), j, r.URL.Query())
	}
	refused := &providerError{}
	switch {
	case errors.Is(err, errJourney), errors.As(err, &refused):
		g.Deny(w, r, fmt.Errorf("%w: %w", ErrForbidden, err))
		return
	case err != nil:
		g.Deny(w, r, &unavailableError{"the login provider's answer could not be used", err})
		return
	}
	secret, err := g.store.loginVouched(r.Context(), v, g.client(r))
	if isRefusal(err) {
		err = fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	if err == nil {
		err = g.startSession(w, r, secret)
	}
	if err != nil {
		g.Deny(w, r, err)
		return
	}
	http.Redirect(w, r, SafeNext(j.Next), http.StatusSeeOther) // without TLS a neighbour may have set the cookie
}

// unavailableError is a fault that is told to the log, not to the browser.
type unavailableError struct {
	what string
	err  error
}

func (e *unavailableError) Error() string { return e.what + ": " + e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }

// problem is an answer by RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// LoginPath is where browsers log in.
const LoginPath = "/login"

// Deny answers a request that is refused. A browser that wants a page and is not logged in is sent to the login, another gets a page; programs get a
// problem by RFC 9457. What went wrong inside is logged, not told.
func (g *Guard) Deny(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrNotLoggedIn) && wantsPage(r) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		http.Redirect(w, r, LoginPath+"?next="+url.QueryEscape(SafeNext(r.URL.RequestURI())), http.StatusSeeOther)
		return
	}
	p := g.problem(r, err)
	header := w.Header()
	if p.Status == http.StatusUnauthorized && !errors.Is(err, ErrLogin) {
		header.Set("WWW-Authenticate", `Bearer realm="pelton"`)
	}
	if limited, ok := errors.AsType[*LimitedError](err); ok {
		header.Set("Retry-After", strconv.Itoa(int((limited.After+time.Second-1)/time.Second)))
	}
	header.Set("Cache-Control", "no-store")
	if g.config.Page != nil && wantsPage(r) {
		g.config.Page(w, r, p.Status, p.Title, p.Detail)
		return
	}
	header.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // nobody is left to tell
}

func (g *Guard) problem(r *http.Request, err error) problem {
	made := func(kind, title string, status int) problem {
		return problem{"urn:pelton:" + kind, title, status, err.Error()}
	}
	limited := &LimitedError{}
	switch {
	case errors.Is(err, ErrForbidden):
		return made("forbidden", "Forbidden", http.StatusForbidden)
	case errors.As(err, &limited):
		return made("too-many-logins", "Too many failed logins", http.StatusTooManyRequests)
	case errors.Is(err, ErrLogin):
		return made("login-failed", "Login failed", http.StatusUnauthorized)
	case errors.Is(err, ErrNotLoggedIn):
		return made("not-logged-in", "Not logged in", http.StatusUnauthorized)
	}
	if r.Context().Err() == nil { // else its reader has left
		g.config.Logger.ErrorContext(r.Context(), "a request cannot be judged", "path", r.URL.Path, "error", err)
	}
	p := problem{"urn:pelton:unavailable", "Unavailable", http.StatusServiceUnavailable, "the database did not answer; the server's log says more"}
	if e, ok := errors.AsType[*unavailableError](err); ok {
		p.Detail = e.what + "; the server's log says more"
	}
	return p
}

// wantsPage tells whether a browser asks for a page. The API has none.
func wantsPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && r.Header.Get("Authorization") == "" && strings.Contains(r.Header.Get("Accept"), "text/html")
}
