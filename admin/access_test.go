package admin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

const password = "correct horse"

// newAccess makes a store with a user for each role: viewer, operator, admin.
func newAccess(t *testing.T, pool *pgxpool.Pool) *access.Store {
	t.Helper()
	store, err := access.NewStore(pool, access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []access.Role{access.Viewer, access.Operator, access.Admin} {
		u := access.NewUser{Name: role.String(), Roles: []access.Grant{{Project: access.Everything, Role: role}}}
		if role == access.Admin {
			u.Password = password
		}
		if _, err := store.AddUser(t.Context(), "test", u); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func newToken(t *testing.T, store *access.Store, n access.NewToken) string {
	t.Helper()
	n.Name = "test"
	_, secret, err := store.AddToken(t.Context(), "test", n)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// visitor is a browser or a program.
type visitor struct {
	http.Client
	t *testing.T
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t}
	v.Jar = jar
	v.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the test's own certificate
	v.Transport = transport
	t.Cleanup(transport.CloseIdleConnections)
	return v
}

// answer is what a request got.
type answer struct {
	StatusCode int
	Header     http.Header
}

// ask sends a request; headers are pairs.
func (v *visitor) ask(method, where, body string, headers ...string) (answer, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, where, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := v.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header}, string(text)
}

func (v *visitor) want(status int, says, method, where, body string, headers ...string) answer {
	v.t.Helper()
	response, text := v.ask(method, where, body, headers...)
	if response.StatusCode != status || !strings.Contains(text, says) {
		v.t.Errorf("%s %s: %d %q, want %d %q", method, where, response.StatusCode, text, status, says)
	}
	return response
}

var (
	form   = []string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}
	asJSON = []string{"Content-Type", "application/json"}
)

func TestLoginByForm(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := startServer(t, pool, admin.Config{Access: newAccess(t, pool)})
	v := newVisitor(t)
	r := v.want(http.StatusSeeOther, "", "GET", s.URL()+"/whoami?x=1", "", "Accept", "text/html")
	login := r.Header.Get("Location")
	v.want(200, `<input type="hidden" name="next" value="/whoami?x=1">`, "GET", s.URL()+login, "")
	v.want(200, `name="next" value="/"`, "GET", s.URL()+"/login?next=//evil.example", "")
	fields := url.Values{"name": {`"><script>`}, "password": {"wrong password"}, "next": {`"><script>`}}
	_, page := v.ask("POST", s.URL()+"/login", fields.Encode(), form...)
	if !strings.Contains(page, "wrong name or password") || strings.Contains(page, `"><script>`) || !strings.Contains(page, "&lt;script&gt;") {
		t.Errorf("page of a failed login: %s", page)
	}
	fields = url.Values{"name": {"Admin"}, "password": {password}, "next": {"/whoami?x=1"}}
	r = v.want(http.StatusSeeOther, "", "POST", s.URL()+"/login", fields.Encode(), form...)
	if r.Header.Get("Location") != "/whoami?x=1" {
		t.Errorf("sent to %q", r.Header.Get("Location"))
	}
	fields.Set("next", "//evil.example/whoami")
	r = v.want(http.StatusSeeOther, "", "POST", s.URL()+"/login", fields.Encode(), form...)
	if r.Header.Get("Location") != "/" {
		t.Errorf("sent to %q", r.Header.Get("Location"))
	}
	v.want(200, "admin", "GET", s.URL()+"/whoami", "")
	v.want(404, "", "GET", s.URL()+"/nothing", "")
	v.want(403, "<p>forbidden: the Host of this request", "GET", s.URL()+"/", "", "Accept", "text/html", "Host", "<b>.example")
	v.want(http.StatusSeeOther, "", "POST", s.URL()+"/logout", "", form...)
	v.want(401, "not logged in", "GET", s.URL()+"/whoami", "")
	v.want(401, "not logged in", "GET", s.URL()+"/nothing", "")
}

func TestLoginByJSON(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := startServer(t, pool, admin.Config{Access: newAccess(t, pool)})
	v := newVisitor(t)
	good := fmt.Sprintf(`{"name": "admin", "password": %q}`, password)
	v.want(401, `"type":"urn:pelton:login-failed"`, "POST", s.URL()+"/login", `{"name": "admin"}`, asJSON...)
	v.want(400, "cannot be read", "POST", s.URL()+"/login", `{"name": "admin`, asJSON...)
	v.want(413, "more than 65536 bytes", "POST", s.URL()+"/login", `{"name": "`+strings.Repeat("a", 70_000)+`"}`, asJSON...)
	v.want(413, "more than 65536 bytes", "POST", s.URL()+"/login", "name="+strings.Repeat("a", 70_000), form...)
	v.want(403, "another page", "POST", s.URL()+"/login", good, append([]string{"Origin", "https://evil.example"}, asJSON...)...)
	v.want(http.StatusNoContent, "", "POST", s.URL()+"/login", good, asJSON...)
	v.want(200, "admin", "GET", s.URL()+"/whoami", "")
	for range 4 {
		v.want(401, "login-failed", "POST", s.URL()+"/login", `{"name": "viewer"}`, asJSON...)
	}
	v.want(401, "wrong name or password", "POST", s.URL()+"/login", "name=viewer", form...)
	for kind, says := range map[string]string{form[1]: `<p role="alert">too many failed logins`, asJSON[1]: "urn:pelton:too-many-logins"} {
		mustExec(t, pool, `UPDATE pelton.access_failure SET free_at = now() + interval '1 hour' WHERE key = 'name:viewer'`)
		body := `{"name": "viewer"}`
		if kind == form[1] {
			body = "name=viewer"
		}
		r := v.want(429, says, "POST", s.URL()+"/login", body, "Content-Type", kind)
		if after, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || after < 1800 || after > 3600 {
			t.Errorf("Retry-After is %q", r.Header.Get("Retry-After"))
		}
	}
}

func mustExec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// Metrics, and why the server is not ready, are for this machine, or for who may see everything.
func TestMetricsAreForThisMachine(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	store := newAccess(t, pool)
	viewer := []string{"Authorization", "Bearer " + newToken(t, store, access.NewToken{User: "viewer"})}
	project := []string{"Authorization", "Bearer " + newToken(t, store, access.NewToken{User: "viewer", Project: "etl"})}
	own := startServer(t, pool, admin.Config{Access: store})
	v := newVisitor(t)
	v.want(200, "pelton_up", "GET", own.URL()+"/metrics", "")
	v.want(503, "the client has not started", "GET", own.URL()+"/readyz", "")
	proxied := startServer(t, pool, admin.Config{Access: store, BehindProxy: true})
	v.want(200, "ok", "GET", proxied.URL()+"/healthz", "")
	v.want(401, "", "GET", proxied.URL()+"/metrics", "")
	v.want(403, "", "GET", proxied.URL()+"/metrics", "", project...)
	v.want(200, "pelton_up", "GET", proxied.URL()+"/metrics", "", viewer...)
	v.want(503, "the client has not started", "GET", proxied.URL()+"/readyz", "", viewer...)
	if _, why := v.ask("GET", proxied.URL()+"/readyz", ""); why != "not ready\n" {
		t.Errorf("everybody is told why it is not ready: %q", why)
	}
	proxied.SetReady()
	v.want(200, "ok", "GET", proxied.URL()+"/readyz", "")
	v.want(403, "localhost", "GET", own.URL()+"/metrics", "", "Host", "rebound.example")
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := startServer(t, pool, admin.Config{Access: newAccess(t, pool)})
	v := newVisitor(t)
	for _, path := range []string{"/", "/login", "/nothing", "/healthz", "/metrics"} {
		r, _ := v.ask("GET", s.URL()+path, "")
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none';", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := r.Header.Get(name); !strings.HasPrefix(got, want) || got == "" {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	r, _ := v.ask("GET", s.URL()+"/", "")
	if csp := r.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("policy: %s", csp)
	}
}

// The cookie of a message is Secure where the session's is: also behind a proxy that speaks TLS.
func TestCookieOfAMessage(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	store := newAccess(t, pool)
	s := startServer(t, pool, admin.Config{Access: store, BehindProxy: true})
	v := newVisitor(t)
	token := newToken(t, store, access.NewToken{User: "admin", Role: access.Admin})
	for proto, secure := range map[string]bool{"https": true, "http": false} {
		r, _ := v.ask("POST", s.URL()+"/queues/pause", "queue=mail", "Content-Type", "application/x-www-form-urlencoded", "Authorization", "Bearer "+token,
			"X-Forwarded-Proto", proto, "X-Forwarded-For", "192.0.2.1")
		cookies := (&http.Response{Header: r.Header}).Cookies()
		if r.StatusCode != http.StatusSeeOther || len(cookies) != 1 || cookies[0].Name != "pelton_flash" || cookies[0].Secure != secure {
			t.Errorf("%s: %d %v", proto, r.StatusCode, cookies)
		}
	}
}

// certificate writes a new pair of files for 127.0.0.1, and returns their names and the certificate's number.
func certificate(t *testing.T, dir string) (cert, key string, serial *big.Int) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "pelton"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, serial
}

func TestTLS(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	store := newAccess(t, pool)
	dir := t.TempDir()
	cert, key, serial := certificate(t, dir)
	s := startServer(t, pool, admin.Config{Access: store, TLSCert: cert, TLSKey: key})
	if !strings.HasPrefix(s.URL(), "https://") {
		t.Fatalf("URL is %s", s.URL())
	}
	v := newVisitor(t)
	r := v.want(http.StatusNoContent, "", "POST", s.URL()+"/login", fmt.Sprintf(`{"name": "admin", "password": %q}`, password), asJSON...)
	if set := r.Header.Get("Set-Cookie"); !strings.HasPrefix(set, "__Host-") || !strings.Contains(set, "; Secure;") {
		t.Errorf("cookie: %q", set)
	}
	if hsts := r.Header.Get("Strict-Transport-Security"); hsts == "" {
		t.Error("no Strict-Transport-Security")
	}
	v.want(200, "admin", "GET", s.URL()+"/whoami", "")
	served := func() *big.Int {
		t.Helper()
		c, err := tls.Dial("tcp", s.Addr(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test's own certificate
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // only read
		return c.ConnectionState().PeerCertificates[0].SerialNumber
	}
	if got := served(); got.Cmp(serial) != 0 {
		t.Errorf("certificate %v, want %v", got, serial)
	}
	// A renewed certificate is taken without a restart.
	_, _, renewed := certificate(t, dir)
	if err := os.Chtimes(cert, time.Time{}, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, patience, func() bool { return served().Cmp(renewed) == 0 }, "the renewed certificate")
}

func TestServerRefusesFaultyFiles(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	cert, key, _ := certificate(t, t.TempDir())
	for says, config := range map[string]admin.Config{
		"belong together": {TLSCert: cert}, "no such file": {TLSCert: cert + "x", TLSKey: key}, "key.pem": {TLSCert: key, TLSKey: key},
		"public URL": {PublicURL: "x", Access: newAccess(t, pool)},
	} {
		if err := tryStart(t, pool, config); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
}

// tryStart starts and stops a server, on any port of this machine unless it says otherwise.
func tryStart(t *testing.T, pool *pgxpool.Pool, config admin.Config) error {
	t.Helper()
	m, err := admin.NewMetrics(pool, admin.MetricsConfig{Logger: quiet(), LostEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	config.Pool, config.Metrics, config.Logger = pool, m, quiet()
	withClients(t, pool, &config)
	if config.Listen == "" {
		config.Listen = "127.0.0.1:0"
	}
	s, err := admin.NewServer(config)
	if err != nil {
		return err
	}
	return errors.Join(s.Start(t.Context()), s.Stop(t.Context()))
}

// Others may reach a server only where what is said is hidden, and somebody can log in.
func TestWhereAServerListens(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	store, err := access.NewStore(pool, access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cert, key, _ := certificate(t, t.TempDir())
	const others, own = ":0", "127.0.0.1:0"
	check := func(what string, config admin.Config, want error) {
		t.Helper()
		config.Access = store
		if err := tryStart(t, pool, config); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	check("own", admin.Config{Listen: own}, nil)
	check("own, behind a proxy, no admin", admin.Config{Listen: own, BehindProxy: true}, admin.ErrNoAdmin)
	check("others", admin.Config{Listen: others}, admin.ErrInsecureListen)
	check("others, TLS, no admin", admin.Config{Listen: others, TLSCert: cert, TLSKey: key}, admin.ErrNoAdmin)
	check("others, behind a proxy, no admin", admin.Config{Listen: others, BehindProxy: true}, admin.ErrNoAdmin)
	check("others, as asked", admin.Config{Listen: others, InsecureListen: true}, nil)
	provider := access.OIDC{Issuer: "https://login.example.com", ClientID: "x"}
	both := admin.Config{Listen: others, BehindProxy: true, PublicURL: "https://pelton.example.com", OIDC: &provider}
	check("others, a provider, no admin", both, admin.ErrNoAdmin)
	provider.Groups = []access.GroupRole{{Group: "a", Grant: access.Grant{Project: access.Everything, Role: access.Admin}}}
	check("others, a provider whose groups give admins", both, nil)
	provider.Groups = nil
	if _, err := store.AddUser(t.Context(), "test", access.NewUser{
		Name: "carol", Roles: []access.Grant{{Project: access.Everything, Role: access.Admin}},
	}); err != nil {
		t.Fatal(err)
	}
	check("others, a provider, and an admin for it", both, nil)
	check("others, an admin without a password, no provider", admin.Config{Listen: others, BehindProxy: true}, admin.ErrNoAdmin)
	if _, err := store.AddUser(t.Context(), "test", access.NewUser{
		Name: "root", Password: password, Roles: []access.Grant{{Project: access.Everything, Role: access.Admin}},
	}); err != nil {
		t.Fatal(err)
	}
	check("others, an admin", admin.Config{Listen: others}, admin.ErrInsecureListen)
	check("others, TLS", admin.Config{Listen: others, TLSCert: cert, TLSKey: key}, nil)
	check("others, behind a proxy", admin.Config{Listen: others, BehindProxy: true}, nil)
	if _, err := store.Disable(t.Context(), "test", "root"); err != nil {
		t.Fatal(err)
	}
	check("others, TLS, the admin is disabled", admin.Config{Listen: others, TLSCert: cert, TLSKey: key}, admin.ErrNoAdmin)
}

// A server that others can reach lets nobody in for want of users, and asks again when there are some.
func TestOthersAreNeverLocal(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	store, err := access.NewStore(pool, access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := admin.NewMetrics(pool, admin.MetricsConfig{Logger: quiet(), LostEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	config := admin.Config{Pool: pool, Metrics: m, Listen: "0.0.0.0:0", InsecureListen: true, Access: store, Logger: quiet()}
	withClients(t, pool, &config)
	s, err := admin.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context()) //nolint:errcheck // the test is over
	where := strings.Replace(s.URL(), "[::]", "127.0.0.1", 1)
	v := newVisitor(t)
	v.want(401, "not logged in", "GET", where+"/whoami", "")
	v.want(200, "pelton", "GET", where+"/metrics", "")
	own := startServer(t, pool, admin.Config{Access: store})
	v.want(200, access.LocalName, "GET", own.URL()+"/whoami", "")
}
