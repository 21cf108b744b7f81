package access_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/pgtest"
)

func oidcSite(t *testing.T, p *provider) *site {
	t.Helper()
	return newSite(t, access.GuardConfig{OIDC: &access.OIDC{Issuer: p.URL, ClientID: "pelton", ClientSecret: "s", Groups: []access.GroupRole{
		{Group: "everybody", Grant: everything(access.Viewer)}, {Group: "data", Grant: in("etl", access.Operator)}, {Group: "leads", Grant: in("etl", access.Admin)},
	}}}, false)
}

// travel logs in through the provider, and returns the answer of the callback.
func (s *site) travel(c *http.Client, next string) answer {
	s.t.Helper()
	return s.ask(c, "GET", s.depart(c, next), nil)
}

// depart goes to the provider, and returns where that sends the browser.
func (s *site) depart(c *http.Client, next string) string {
	s.t.Helper()
	a := s.ask(c, "GET", "/login/oidc?next="+url.QueryEscape(next), nil)
	s.want(a, http.StatusSeeOther, "")
	back := s.ask(c, "GET", a.Header.Get("Location"), nil)
	s.want(back, http.StatusSeeOther, "")
	return back.Header.Get("Location")
}

func TestOIDC(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := oidcSite(t, p)
	p.vouch(map[string]any{"sub": "17", "preferred_username": "alice", "groups": []string{"everybody", "data", "leads", "others"}})
	c := s.browser()
	a := s.travel(c, "/see?x=1")
	s.want(a, http.StatusSeeOther, "")
	if a.Header.Get("Location") != "/see?x=1" {
		t.Errorf("sent to %q", a.Header.Get("Location"))
	}
	for _, cookie := range a.Header["Set-Cookie"] {
		if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") {
			t.Errorf("cookie %q", cookie)
		}
	}
	s.want(s.ask(c, "GET", "/see", nil), 200, "alice")
	s.want(s.ask(c, "GET", "/do", nil), 200, "alice")
	// The subject is who it is, whatever it is called now; groups that are gone take their roles along, those of people stay.
	if err := s.store.SetRole(t.Context(), by, "alice", in("web", access.Viewer)); err != nil {
		t.Fatal(err)
	}
	p.vouch(map[string]any{"sub": "17", "preferred_username": "alice2", "groups": []string{"data"}})
	s.want(s.travel(s.browser(), "//evil.example"), http.StatusSeeOther, "")
	s.want(s.ask(c, "GET", "/see", nil), 403, "alice has no role viewer for everything")
	u, err := s.store.User(t.Context(), "alice")
	if err != nil || u.Subject != "17" || u.Issuer != p.URL || u.PasswordAt != nil || len(u.Roles) != 2 || u.Roles[0].Role != access.Operator || u.Roles[1].Project != "web" {
		t.Errorf("user: %+v, %v", u, err)
	}
	if _, err := s.store.Login(t.Context(), "alice", "", address); err == nil {
		t.Error("a user of OIDC logs in without a password")
	}
	if _, err := s.store.Disable(t.Context(), by, "alice"); err != nil {
		t.Fatal(err)
	}
	s.want(s.travel(s.browser(), "/"), 403, "disabled")
	log := strings.Join(audited(t, s.pool), "\n")
	for _, want := range []string{
		`alice user.add user alice - {"issuer": "` + p.URL + `", "subject": "17", "password": false}`,
		`alice login user alice - {"by": "oidc", "address": "127.0.0.1"}`,
		`alice user.role user alice {"roles": [`,
		`- login.failed user alice2 - {"address": "127.0.0.1"}`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("audit lacks %q:\n%s", want, log)
		}
	}
}

// Who may not come in is told why, and leaves no user behind.
func TestOIDCRefuses(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := oidcSite(t, p)
	addUser(t, s.store, "root", everything(access.Admin))
	if _, err := s.store.AddUser(t.Context(), by, access.NewUser{Name: "bob", Roles: []access.Grant{in("etl", access.Viewer)}}); err != nil {
		t.Fatal(err)
	}
	groups := []string{"everybody"}
	for _, c := range []struct {
		what   string
		claims map[string]any
		status int
		says   string
	}{
		{"no groups", map[string]any{"sub": "1", "preferred_username": "carol"}, 403, "your groups give you no role"},
		{"unknown groups", map[string]any{"sub": "1", "preferred_username": "carol", "groups": "others"}, 403, "your groups give you no role"},
		{"the name of who has a password", map[string]any{"sub": "1", "preferred_username": "Root", "groups": groups}, 403, "a user of your name already"},
		{"no name", map[string]any{"sub": "1", "groups": groups}, 403, "no name that can be a user's"},
		{"no user's name", map[string]any{"sub": "1", "preferred_username": "<b>", "groups": groups}, 403, "no name that can be a user's"},
		{"local", map[string]any{"sub": "1", "preferred_username": "local", "groups": groups}, 403, "no name that can be a user's"},
		{"another's nonce", map[string]any{"sub": "1", "preferred_username": "carol", "groups": groups, "nonce": "x"}, 403, "begun elsewhere"},
		{"for another client", map[string]any{"sub": "1", "preferred_username": "carol", "groups": groups, "aud": "x"}, 503, "could not be used"},
		{"of another issuer", map[string]any{"sub": "1", "preferred_username": "carol", "groups": groups, "iss": "https://x"}, 503, "could not be used"},
		{"expired", map[string]any{"sub": "1", "preferred_username": "carol", "groups": groups, "exp": time.Now().Add(-time.Hour).Unix()}, 503, "could not be used"},
		{"bound by name: added for OIDC", map[string]any{"sub": "2", "preferred_username": "bob"}, 303, ""},
		{"bound to another", map[string]any{"sub": "3", "preferred_username": "bob", "groups": groups}, 403, "a user of your name already"},
	} {
		p.vouch(c.claims)
		b := s.browser()
		a := s.travel(b, "/see")
		if a.StatusCode != c.status || !strings.Contains(a.body, c.says) {
			t.Errorf("%s: %d %q, want %d %q", c.what, a.StatusCode, a.body, c.status, c.says)
		}
		if in := s.ask(b, "GET", "/see", nil).StatusCode; (in == 401) != (c.status != 303) {
			t.Errorf("%s: then %d", c.what, in)
		}
	}
	p.vouch(map[string]any{"sub": "1", "preferred_username": "carol", "groups": groups})
	p.forge = true
	s.want(s.travel(s.browser(), "/"), 503, "could not be used")
	p.forge, p.refuse = false, "access_denied"
	s.want(s.travel(s.browser(), "/"), 403, "access_denied")
	users, err := s.store.UserList(t.Context(), access.UserListParams{})
	if err != nil || len(users) != 2 {
		t.Errorf("users: %+v, %v", users, err)
	}
}

// An answer of the provider's counts once, and only in the browser that went there.
func TestOIDCAnswerOfAnother(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := oidcSite(t, p)
	p.vouch(map[string]any{"sub": "1", "preferred_username": "mallory", "groups": []string{"everybody"}})
	mallory, victim := s.browser(), s.browser()
	back := s.depart(mallory, "/")
	s.want(s.ask(s.browser(), "GET", back, nil), 403, "begun elsewhere")
	s.depart(victim, "/")
	s.want(s.ask(victim, "GET", back, nil), 403, "begun elsewhere") // another's state
	s.want(s.ask(victim, "GET", "/see", nil), 401, "")
	// Even with the right state a stolen code does not help: the verifier is another.
	own := s.depart(victim, "/")
	u, err := url.Parse(own)
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("code", stolen.Query().Get("code"))
	u.RawQuery = q.Encode()
	s.want(s.ask(victim, "GET", u.String(), nil), 503, "could not be used")
	back = s.depart(mallory, "/")
	s.want(s.ask(mallory, "GET", back, nil), 303, "")
	s.want(s.ask(mallory, "GET", back, nil), 403, "begun elsewhere")
	q.Set("iss", "https://other.example")
	own = s.depart(victim, "/")
	s.want(s.ask(victim, "GET", own+"&iss=https://other.example", nil), 403, "begun elsewhere")
}

// Of two first logins of somebody at once, one makes the user and both come in.
func TestOIDCTwoFirstLogins(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := oidcSite(t, p)
	p.vouch(map[string]any{"sub": "17", "preferred_username": "alice", "groups": []string{"everybody"}})
	first, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback(context.WithoutCancel(t.Context()))
	if _, err := first.Exec(t.Context(), `INSERT INTO pelton.access_user (name, issuer, subject) VALUES ('alice', $1, '17')`, p.URL); err != nil {
		t.Fatal(err)
	}
	came := make(chan answer, 1)
	c := s.browser()
	go func() { came <- s.travel(c, "/") }()
	pgtest.Eventually(t, patience, func() bool {
		var waiting bool
		err := s.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)`).Scan(&waiting)
		return err == nil && waiting
	}, "the second login to wait for the first")
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want(<-came, http.StatusSeeOther, "")
	s.want(s.ask(c, "GET", "/see", nil), 200, "alice")
}

// Where a login was to lead is looked at once more on arrival: without TLS a neighbouring host can set the cookie that says it.
func TestOIDCDoesNotLeadElsewhere(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := oidcSite(t, p)
	p.vouch(map[string]any{"sub": "17", "preferred_username": "alice", "groups": []string{"everybody"}})
	c := s.browser()
	back := s.depart(c, "/see")
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	forged := 0
	for _, cookie := range c.Jar.Cookies(at) {
		text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
		if err != nil || !bytes.Contains(text, []byte(`"/see"`)) {
			continue
		}
		forged++
		cookie.Path, cookie.Value = "/", base64.RawURLEncoding.EncodeToString(bytes.Replace(text, []byte(`"/see"`), []byte(`"//evil.example/"`), 1))
		c.Jar.SetCookies(at, []*http.Cookie{cookie})
	}
	a := s.ask(c, "GET", back, nil)
	if s.want(a, http.StatusSeeOther, ""); forged != 1 || a.Header.Get("Location") != "/" {
		t.Errorf("%d cookies were forged, and the browser is sent to %q", forged, a.Header.Get("Location"))
	}
}

func TestOIDCProviderIsAway(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := oidcSite(t, p)
	p.Close()
	a := s.ask(s.browser(), "GET", "/login/oidc", nil)
	s.want(a, 503, "the login provider cannot be reached")
	if strings.Contains(a.body, p.URL) {
		t.Errorf("the answer tells too much: %q", a.body)
	}
}
