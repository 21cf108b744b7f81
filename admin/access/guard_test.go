package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// site is a server with a guard: /see needs a viewer of everything, /do an admin of project etl, POST /login a name and a password.
type site struct {
	*httptest.Server
	t     *testing.T
	store *access.Store
	pool  *pgxpool.Pool
	log   strings.Builder
}

func newSite(t *testing.T, config access.GuardConfig, secret bool) *site {
	t.Helper()
	s, pool := newStore(t)
	return siteOn(t, s, pool, config, secret)
}

func siteOn(t *testing.T, store *access.Store, pool *pgxpool.Pool, config access.GuardConfig, secret bool) *site {
	t.Helper()
	s := &site{t: t, store: store, pool: pool}
	s.Server = httptest.NewUnstartedServer(nil)
	config.Store = store
	config.Logger = slog.New(slog.NewTextHandler(&s.log, nil))
	if config.OIDC != nil {
		config.PublicURL = "http://" + s.Listener.Addr().String()
	}
	g, err := access.NewGuard(config)
	if err != nil {
		t.Fatal(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, _ := access.FromContext(r.Context())
		_, _ = io.WriteString(w, actor.Name)
	})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		if err := g.Login(w, r, r.FormValue("name"), r.FormValue("password")); err != nil {
			g.Deny(w, r, err)
		}
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		if err := g.Logout(w, r); err != nil {
			g.Deny(w, r, err)
		}
	})
	mux.HandleFunc("GET /login/oidc", g.LoginOIDC)
	mux.HandleFunc("GET "+access.CallbackPath, g.CallbackOIDC)
	mux.Handle("/see", g.Authenticate(g.Require(access.Viewer, "")(hello)))
	mux.Handle("/do", g.Authenticate(g.Require(access.Admin, "etl")(hello)))
	s.Config.Handler = g.Protect(mux)
	if secret {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// browser keeps cookies, and does not follow redirects.
func (s *site) browser() *http.Client {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c := *s.Client()
	c.Jar = jar
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// answer is what a request got.
type answer struct {
	StatusCode int
	Header     http.Header
	Request    *http.Request
	Cookies    []*http.Cookie
	body       string
}

// ask sends a request; headers are pairs. "Host" is the request's Host.
func (s *site) ask(client *http.Client, method, where string, form url.Values, headers ...string) answer {
	s.t.Helper()
	if strings.HasPrefix(where, "/") {
		where = s.URL + where
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, where, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for pair := range slices.Chunk(headers, 2) {
		if pair[0] == "Host" {
			r.Host = pair[1]
		} else {
			r.Header.Set(pair[0], pair[1])
		}
	}
	response, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, response.Request, response.Cookies(), string(body)}
}

func (s *site) want(a answer, status int, says string) {
	s.t.Helper()
	if a.StatusCode != status || !strings.Contains(a.body, says) {
		s.t.Errorf("%s %s: %d %q, want %d %q", a.Request.Method, a.Request.URL.Path, a.StatusCode, a.body, status, says)
	}
}

func (s *site) login(client *http.Client, name string) answer {
	s.t.Helper()
	return s.ask(client, "POST", "/login", url.Values{"name": {name}, "password": {password}})
}

var ownPage = []string{"Sec-Fetch-Site", "same-origin"}

func TestNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.GuardConfig{Loopback: true}, false)
	addUser(t, s.store, "alice", everything(access.Viewer))
	c := s.browser()
	for what, headers := range map[string][]string{
		"nothing": nil, "another scheme": {"Authorization", "Basic YWxpY2U6Y29ycmVjdCBob3JzZQ=="}, "no token": {"Authorization", "Bearer"},
		"a wrong token": {"Authorization", "Bearer pelton_AAAA"}, "a wrong cookie": {"Cookie", "pelton_session=AAAA"},
		"an empty cookie": {"Cookie", "pelton_session="}, "a cookie of TLS": {"Cookie", "__Host-pelton_session=AAAA"},
	} {
		a := s.ask(c, "GET", "/see", nil, headers...)
		s.want(a, http.StatusUnauthorized, `"type":"urn:pelton:not-logged-in"`)
		if a.Header.Get("Content-Type") != "application/problem+json" || a.Header.Get("WWW-Authenticate") == "" || !json.Valid([]byte(a.body)) {
			t.Errorf("%s: %v %q", what, a.Header, a.body)
		}
	}
	a := s.ask(c, "GET", "/see?a=1&b=//x", nil, "Accept", "text/html")
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/login?next=%2Fsee%3Fa%3D1%26b%3D%2F%2Fx" {
		t.Errorf("a browser: %d, %q", a.StatusCode, a.Header.Get("Location"))
	}
	s.want(s.ask(c, "POST", "/see", nil, "Accept", "text/html"), http.StatusUnauthorized, "not-logged-in")
}

func TestBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.GuardConfig{}, true)
	addUser(t, s.store, "alice", everything(access.Viewer), in("etl", access.Operator))
	c := s.browser()
	a := s.ask(c, "POST", "/login", url.Values{"name": {"alice"}, "password": {"wrong password"}})
	s.want(a, http.StatusUnauthorized, "wrong name or password")
	if len(a.Cookies) != 0 {
		t.Errorf("a failed login sets %v", a.Cookies)
	}
	a = s.login(c, "alice")
	s.want(a, http.StatusOK, "")
	if set := a.Header["Set-Cookie"]; len(set) != 1 || !strings.HasPrefix(set[0], "__Host-pelton_session=") ||
		!strings.HasSuffix(set[0], "; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax") {
		t.Errorf("cookies: %q", set)
	}
	s.want(s.ask(c, "GET", "/see", nil), http.StatusOK, "alice")
	s.want(s.ask(c, "POST", "/see", nil, ownPage...), http.StatusOK, "alice")
	s.want(s.ask(c, "GET", "/do", nil), http.StatusForbidden, "alice has no role admin for project etl")
	first := c.Jar.Cookies(a.Request.URL)[0]
	s.want(s.login(c, "alice"), http.StatusOK, "")
	if second := c.Jar.Cookies(a.Request.URL)[0]; first.Value == second.Value {
		t.Error("a second login keeps the session")
	}
	s.want(s.ask(s.browser(), "GET", "/see", nil, "Cookie", first.String()), http.StatusUnauthorized, "")
	s.want(s.ask(c, "GET", "/see", nil), http.StatusOK, "alice")
	second := c.Jar.Cookies(a.Request.URL)[0]
	s.want(s.ask(c, "POST", "/logout", nil, ownPage...), http.StatusOK, "")
	if left := c.Jar.Cookies(a.Request.URL); len(left) != 0 {
		t.Errorf("cookies after the logout: %v", left)
	}
	s.want(s.ask(s.browser(), "GET", "/see", nil, "Cookie", second.String()), http.StatusUnauthorized, "")
}

// Without TLS the cookie cannot be Secure, and has another name; a proxy's word for TLS is believed from a proxy only.
func TestCookiesByConnection(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	addUser(t, store, "alice", everything(access.Viewer))
	for _, c := range []struct {
		what    string
		config  access.GuardConfig
		headers []string
		secure  bool
	}{
		{"plain", access.GuardConfig{}, nil, false},
		{"anybody says https", access.GuardConfig{}, []string{"X-Forwarded-Proto", "https"}, false},
		{"a proxy says https", access.GuardConfig{BehindProxy: true}, []string{"X-Forwarded-Proto", "https"}, true},
		{"who is behind the proxy says https", access.GuardConfig{BehindProxy: true}, []string{"X-Forwarded-Proto", "https, http"}, false},
		{"a proxy says http", access.GuardConfig{BehindProxy: true}, []string{"X-Forwarded-Proto", "http"}, false},
		{"a proxy says nothing", access.GuardConfig{BehindProxy: true, PublicURL: "https://pelton.example.com"}, nil, true},
	} {
		s := siteOn(t, store, pool, c.config, false)
		a := s.ask(s.browser(), "POST", "/login", url.Values{"name": {"alice"}, "password": {password}}, c.headers...)
		if len(a.Cookies) != 1 {
			t.Fatalf("%s: %v", c.what, a.Cookies)
		}
		cookie := a.Cookies[0]
		if cookie.Secure != c.secure || strings.HasPrefix(cookie.Name, "__Host-") != c.secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode {
			t.Errorf("%s: %v", c.what, cookie)
		}
		s.want(s.ask(s.browser(), "GET", "/see", nil, append(c.headers, "Cookie", cookie.Name+"="+cookie.Value)...), http.StatusOK, "alice")
	}
}

// What another page sends to change something is refused, with whatever right it comes.
func TestRequestsOfOtherPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.GuardConfig{PublicURL: "https://pelton.example.com"}, false)
	addUser(t, s.store, "alice", everything(access.Admin))
	_, token, err := s.store.AddToken(t.Context(), by, access.NewToken{User: "alice", Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	c := s.browser()
	s.want(s.login(c, "alice"), http.StatusOK, "")
	bearer := []string{"Authorization", "Bearer " + token}
	for _, r := range []struct {
		what    string
		client  *http.Client
		method  string
		headers []string
		status  int
	}{
		{"own page", c, "POST", ownPage, 200},
		{"own page, by Origin", c, "POST", []string{"Origin", s.URL}, 200},
		{"own page, under the public URL", c, "POST", []string{"Origin", "https://pelton.example.com", "Sec-Fetch-Site", "cross-site"}, 200},
		{"typed in", c, "POST", []string{"Sec-Fetch-Site", "none"}, 200},
		{"another site", c, "POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another site, own Origin", c, "POST", []string{"Sec-Fetch-Site", "cross-site", "Origin", s.URL}, 403},
		{"another server of the site", c, "POST", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"another origin", c, "POST", []string{"Origin", "https://evil.example"}, 403},
		{"another port", c, "DELETE", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"no origin", c, "PUT", []string{"Origin", "null"}, 403},
		{"nothing, with a cookie", c, "POST", nil, 403},
		{"nothing, with a cookie", c, "GET", nil, 200},
		{"a link", c, "GET", []string{"Sec-Fetch-Site", "cross-site"}, 200},
		{"a program", s.browser(), "POST", bearer, 200},
		{"another site with a token", s.browser(), "POST", append([]string{"Origin", "https://evil.example"}, bearer...), 403},
	} {
		a := s.ask(r.client, r.method, "/see", nil, r.headers...)
		if a.StatusCode != r.status {
			t.Errorf("%s: %s: %d %q, want %d", r.what, r.method, a.StatusCode, a.body, r.status)
		}
		if r.status == 403 {
			s.want(a, 403, "another page sent this request")
		}
	}
	for _, path := range []string{"/login", "/logout"} {
		s.want(s.ask(s.browser(), "POST", path, url.Values{"name": {"alice"}, "password": {password}}, "Origin", "https://evil.example"), 403, "another page")
	}
	for _, header := range [][]string{nil, {"Sec-Fetch-Site", "cross-site"}, {"Origin", "null"}} { // a logout ends the session, so it needs a page of ours
		s.want(s.ask(c, "POST", "/logout", nil, header...), 403, "another page")
	}
	s.want(s.ask(c, "GET", "/see", nil), 200, "alice")
}

func TestTokensOverHTTP(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.GuardConfig{Loopback: true}, false)
	addUser(t, s.store, "alice", everything(access.Operator), in("etl", access.Admin))
	add := func(n access.NewToken) string {
		t.Helper()
		n.User, n.Name = "alice", "t"
		_, secret, err := s.store.AddToken(t.Context(), by, n)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	ask := func(path, token string) answer {
		t.Helper()
		return s.ask(s.browser(), "POST", path, nil, "Authorization", "bearer "+token)
	}
	usual, all, own := add(access.NewToken{}), add(access.NewToken{Role: access.Admin}), add(access.NewToken{Role: access.Admin, Project: "etl"})
	s.want(ask("/see", usual), 200, "alice")
	s.want(ask("/do", usual), 403, "no role admin for project etl")
	s.want(ask("/see", all), 200, "alice")
	s.want(ask("/do", all), 200, "alice")
	s.want(ask("/see", own), 403, "no role viewer for everything")
	s.want(ask("/do", own), 200, "alice")
	mustExec(t, s.pool, `UPDATE pelton.access_token SET expires_at = now() WHERE id = 3`)
	s.want(ask("/do", own), 401, "expired")
	// A token that does not hold is not made up for by a session.
	c := s.browser()
	s.login(c, "alice")
	s.want(s.ask(c, "GET", "/see", nil, "Authorization", "Bearer "+own), 401, "expired")
}

func TestTooManyLogins(t *testing.T) {
	t.Parallel()
	s := newSite(t, access.GuardConfig{BehindProxy: true}, false)
	addUser(t, s.store, "alice", everything(access.Viewer))
	post := func(from, password string) answer {
		t.Helper()
		return s.ask(s.browser(), "POST", "/login", url.Values{"name": {"alice"}, "password": {password}}, "X-Forwarded-For", from)
	}
	for range 5 {
		s.want(post("192.0.2.1", "wrong password"), 401, "wrong name or password")
	}
	mustExec(t, s.pool, `UPDATE pelton.access_failure SET free_at = free_at + interval '1 hour' WHERE free_at > at`)
	a := post("192.0.2.1", password)
	s.want(a, 429, "too many failed logins")
	if after, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || after < 1800 || after > 3601 {
		t.Errorf("Retry-After is %q", a.Header.Get("Retry-After"))
	}
	// Addresses are what the nearest proxy saw; of IPv6 the network counts.
	for from, want := range map[string]string{
		"203.0.113.9, 192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "::ffff:192.0.2.8": "192.0.2.8", "<script>": "?",
		"192.0.2.9:4711": "192.0.2.9", "[2001:db8:1:2::1]:4711": "2001:db8:1:2::/64",
	} {
		mustExec(t, s.pool, `TRUNCATE pelton.access_failure`)
		post(from, "wrong password")
		var key string
		if err := s.pool.QueryRow(t.Context(), `SELECT key FROM pelton.access_failure WHERE key LIKE 'address:%'`).Scan(&key); err != nil || key != "address:"+want {
			t.Errorf("from %s: %q, %v", from, key, err)
		}
	}
}

// Without users everybody on this machine is let in, by a name of this machine, and nobody from elsewhere. The first user ends that.
func TestWithoutUsers(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	own, others := siteOn(t, store, pool, access.GuardConfig{Loopback: true}, false), siteOn(t, store, pool, access.GuardConfig{}, false)
	proxied := siteOn(t, store, pool, access.GuardConfig{Loopback: true, BehindProxy: true}, false)
	c := own.browser()
	own.want(own.ask(c, "GET", "/do", nil), 200, access.LocalName)
	own.want(own.ask(c, "POST", "/do", nil), 200, access.LocalName)
	own.want(own.ask(c, "POST", "/do", nil, "Origin", "https://evil.example"), 403, "another page")
	own.want(own.ask(c, "GET", "/do", nil, "X-Forwarded-For", "192.0.2.1"), 403, "--behind-proxy")
	others.want(others.ask(c, "GET", "/see", nil), 401, "not logged in")
	proxied.want(proxied.ask(c, "GET", "/see", nil), 401, "not logged in")
	_, port, _ := strings.Cut(strings.TrimPrefix(own.URL, "http://"), ":")
	for host, status := range map[string]int{
		"localhost": 200, "localhost:" + port: 200, "LocalHost.": 200, "pelton.localhost:" + port: 200, "127.0.0.1": 200, "127.9.9.9:1": 200, "[::1]:" + port: 200,
		"evil.example": 403, "evil.example:" + port: 403, "127.0.0.1.evil.example": 403, "192.0.2.1:" + port: 403, "localhost.evil.example": 403, "xlocalhost": 403,
	} {
		if a := own.ask(c, "GET", "/see", nil, "Host", host); a.StatusCode != status || status == 403 && !strings.Contains(a.body, "localhost") {
			t.Errorf("Host %s: %d %q, want %d", host, a.StatusCode, a.body, status)
		}
	}
	bearer := []string{"Authorization", "Bearer pelton_AAAA"}
	own.want(own.ask(c, "GET", "/see", nil, bearer...), 401, "there are no users yet: send no Authorization")
	others.want(others.ask(c, "GET", "/see", nil, bearer...), 401, "or its user is disabled\"")
	addUser(t, store, "alice")
	own.want(own.ask(c, "GET", "/see", nil), 401, "not logged in")
	own.want(own.ask(c, "GET", "/see", nil, bearer...), 401, "or its user is disabled\"")
	if _, err := store.Disable(t.Context(), by, "alice"); err != nil {
		t.Fatal(err)
	}
	again := siteOn(t, store, pool, access.GuardConfig{Loopback: true}, false)
	again.want(again.ask(c, "GET", "/see", nil), 401, "not logged in")
}

// If the database does not answer, nobody is let in, and nobody is told why.
func TestWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(*pgtest.Proxy){"refused": (*pgtest.Proxy).Down, "silent": (*pgtest.Proxy).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := pgtest.NewProxy(t, schematest.DSN(t))
			pool := pgtest.Pool(t, proxy.DSN())
			store, err := access.NewStore(pool, access.Config{})
			if err != nil {
				t.Fatal(err)
			}
			s := siteOn(t, store.Cheap(), pool, access.GuardConfig{Loopback: true}, false)
			s.want(s.ask(s.browser(), "GET", "/see", nil), 200, access.LocalName)
			outage(proxy)
			for _, headers := range [][]string{nil, {"Authorization", "Bearer pelton_A"}, {"Cookie", "pelton_session=A"}} {
				a := s.ask(s.browser(), "GET", "/see", nil, headers...)
				s.want(a, 503, "urn:pelton:unavailable")
				if strings.Contains(a.body, "127.0.0.1") || strings.Contains(a.body, "connect") {
					t.Errorf("the answer tells too much: %q", a.body)
				}
			}
			if s.log.Len() == 0 {
				t.Error("the log says nothing")
			}
			s.want(s.login(s.browser(), "alice"), 503, "urn:pelton:unavailable")
		})
	}
}

func TestSafeNext(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/jobs?state=running#x": "/jobs?state=running#x", "": "/", "jobs": "/", "//evil.example": "/", `/\evil.example`: "/", `\\evil.example`: "/",
		"https://evil.example/": "/", "javascript:alert(1)": "/", "/a\nb": "/", "/%0a": "/%0a", "/\t/evil.example": "/", "///evil.example": "/",
	} {
		if got := access.SafeNext(next); got != want {
			t.Errorf("%q: %q, want %q", next, got, want)
		}
	}
}

func TestGuardRefusesConfigurations(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	good := access.OIDC{Issuer: "https://login.example.com", ClientID: "pelton"}
	for says, c := range map[string]access.GuardConfig{
		"Store is required": {}, "public URL": {Store: s, PublicURL: "pelton.example.com"}, "want a scheme": {Store: s, PublicURL: "https://a/b"},
		"public URL is needed": {Store: s, OIDC: &good}, "issuer": {Store: s, PublicURL: "https://a", OIDC: &access.OIDC{ClientID: "a"}},
		"client id": {Store: s, PublicURL: "https://a", OIDC: &access.OIDC{Issuer: "https://a"}},
		"project":   {Store: s, PublicURL: "https://a", OIDC: &access.OIDC{Issuer: "https://a", ClientID: "b", Groups: []access.GroupRole{{Group: "g", Grant: in("", access.Viewer)}}}},
	} {
		if _, err := access.NewGuard(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
}

// What went wrong inside is for the log, not for who asks, whoever that is; of a request whose reader has left the log says nothing.
func TestAFaultIsNotTold(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	var log strings.Builder
	g, err := access.NewGuard(access.GuardConfig{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	fault := errors.New("connect to user=pelton host=db.internal")
	for _, ctx := range []context.Context{gone, t.Context()} {
		w := httptest.NewRecorder()
		g.Deny(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/jobs", nil), fault)
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "db.internal") || !strings.Contains(w.Body.String(), "the database did not answer") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if logged := strings.Contains(log.String(), "db.internal"); logged != (ctx.Err() == nil) {
			t.Errorf("with %v the log says %q", ctx.Err(), log.String())
		}
	}
}
