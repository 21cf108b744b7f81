package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

const password = "correct horse"

// addUser adds a user with a password.
func (s *shell) addUser(args ...string) {
	s.t.Helper()
	if r := s.try(password+"\n", append([]string{"user", "add"}, args...)...); r.code != exitOK {
		s.t.Fatalf("user add %q: exit code %d, %s", args, r.code, r.err)
	}
}

func TestUserCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := s.try(password+"\nmore\n", "user", "add", "alice", "--role", "admin")
	if r.code != exitOK || r.out != "user alice added: admin\n" {
		t.Errorf("add: exit code %d, %q %q", r.code, r.out, r.err)
	}
	if out := s.ok("user", "add", "bob", "--oidc", "--role", "viewer", "--project", "etl"); out != "user bob added: viewer@etl\n" {
		t.Errorf("add: %q", out)
	}
	if out := s.ok("user", "role", "bob", "operator", "--project", "web"); out != "user bob: viewer@etl, operator@web\n" {
		t.Errorf("role: %q", out)
	}
	if out := s.ok("user", "role", "bob", "none", "--project", "etl"); out != "user bob: operator@web\n" {
		t.Errorf("role: %q", out)
	}
	for _, want := range []string{"user bob is disabled\n", "user bob is disabled already\n"} {
		if out := s.ok("user", "disable", "bob"); out != want {
			t.Errorf("disable: %q", out)
		}
	}
	users := s.lines("user", "list")
	if len(users) != 2 || users[0]["name"] != "alice" || users[0]["login"] != "password" || users[1]["login"] != "oidc" || users[1]["disabled_at"] == nil {
		t.Errorf("users: %v", users)
	}
	fields(t, users[0], "name", "login", "created_at", "disabled_at", "roles")
	if out := s.ok("user", "list"); !strings.Contains(out, "operator@web") {
		t.Errorf("users for people: %s", out)
	}
	if out := s.ok("user", "enable", "bob"); out != "user bob is enabled\n" {
		t.Errorf("enable: %q", out)
	}
	if r := s.try("another password", "user", "set-password", "bob"); r.code != exitOK || !strings.Contains(r.out, "sessions have ended") {
		t.Errorf("set-password: %+v", r)
	}
	for _, c := range []struct {
		stdin string
		code  int
		says  string
		args  []string
	}{
		{password, exitRefused, "exists already", []string{"user", "add", "ALICE"}},
		{"short", exitUsage, "at least 10 characters", []string{"user", "add", "carol"}},
		{"", exitUsage, "no password", []string{"user", "add", "carol"}},
		{password, exitUsage, "means everybody", []string{"user", "add", "local"}},
		{password, exitUsage, "want one of viewer, operator, admin", []string{"user", "add", "carol", "--role", "root"}},
		{password, exitUsage, "want a project's name", []string{"user", "add", "carol", "--role", "viewer", "--project", "a b"}},
		{password, exitNotFound, "not found", []string{"user", "set-password", "carol"}},
		{"", exitNotFound, "not found", []string{"user", "disable", "carol"}},
		{"", exitRefused, "or say --force", []string{"user", "disable", "alice"}},
		{"", exitRefused, "or say --force", []string{"user", "role", "alice", "viewer"}},
		{"", exitUsage, `did you mean "viewer"?`, []string{"user", "role", "alice", "viewr"}},
		{"", exitUsage, "unknown flag: --password", []string{"user", "add", "carol", "--password", password}},
	} {
		if r := s.try(c.stdin, c.args...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("pelton %s: exit code %d, %q; want %d, %q", strings.Join(c.args, " "), r.code, r.err, c.code, c.says)
		}
	}
	entries := s.lines("audit", "list", "--target", "user bob")
	var did []string
	for _, e := range entries {
		did = append([]string{fmt.Sprint(e["action"])}, did...)
		if !strings.HasPrefix(fmt.Sprint(e["actor"]), "os:") {
			t.Errorf("actor: %v", e)
		}
	}
	if got := strings.Join(did, " "); got != "user.add user.role user.role user.role user.disable user.enable user.password" {
		t.Errorf("audit of bob: %s", got)
	}
	if text := s.ok("audit", "list", "--json"); strings.Contains(text, password) || strings.Contains(text, "argon2") {
		t.Error("the audit holds a password")
	}
	if out := s.ok("user", "disable", "alice", "--force"); out != "user alice is disabled\n" {
		t.Errorf("forced: %q", out)
	}
}

func TestTokenCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.addUser("alice", "--role", "operator")
	r := s.try("", "token", "create", "alice", "--name", "ci", "--role", "operator", "--project", "etl", "--expires", "30d")
	if r.code != exitOK || !strings.HasPrefix(r.out, "pelton_") || len(strings.TrimSpace(r.out)) != 50 || !strings.Contains(r.err, "not shown again") {
		t.Errorf("create: %+v", r)
	}
	made := s.object("token", "create", "alice", "--name", "second")
	fields(t, made, "token", "id", "user", "name", "role", "project", "expires_at")
	if made["role"] != "viewer" || made["project"] != "*" {
		t.Errorf("token: %v", made)
	}
	tokens := s.lines("token", "list", "alice")
	if len(tokens) != 2 || tokens[1]["name"] != "ci" || tokens[0]["token"] != nil || tokens[0]["used_at"] != nil {
		t.Errorf("tokens: %v", tokens)
	}
	if out := s.ok("token", "list"); !strings.Contains(out, "operator@etl  holds") || strings.Contains(out, "pelton_") {
		t.Errorf("tokens for people: %s", out)
	}
	for _, want := range []string{"token 1 is revoked\n", "token 1 is revoked already\n"} {
		if out := s.ok("token", "revoke", "1"); out != want {
			t.Errorf("revoke: %q", out)
		}
	}
	if out := s.ok("token", "list"); !strings.Contains(out, "revoked") {
		t.Errorf("tokens for people: %s", out)
	}
	s.fails(exitNotFound, "token 9: not found", "token", "revoke", "9")
	s.fails(exitUsage, "is not a token's id", "token", "revoke", "x")
	s.fails(exitUsage, "saying what it is for", "token", "create", "alice")
	s.fails(exitUsage, "want a time, as 12h or 30d", "token", "create", "alice", "--name", "a", "--expires", "soon")
	s.fails(exitUsage, "life of a token", "token", "create", "alice", "--name", "a", "--expires", "9999d")
	s.fails(exitNotFound, `user "bob": not found`, "token", "create", "bob", "--name", "a")
	s.fails(exitNotFound, `user "bob": not found`, "token", "list", "bob")
}

// docs/access.md calls commands and flags that there are.
func TestAccessManual(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/access.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^\$ pelton (.*)$`).FindAllSubmatch(text, -1)
	if len(lines) < 10 {
		t.Fatalf("only %d commands", len(lines))
	}
	for _, line := range lines {
		if _, err := commandLine(strings.Fields(string(line[1]))); err != nil {
			t.Errorf("pelton %s: %v", line[1], err)
		}
	}
	server, _, err := (&app{}).root().Find([]string{"server"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("`--(oidc-[a-z-]+|[a-z]+-url|tls-[a-z]+|behind-[a-z]+)").FindAllSubmatch(text, -1) {
		if server.Flags().Lookup(string(name[1])) == nil {
			t.Errorf("there is no flag --%s", name[1])
		}
	}
}

// A server whose role has what `pelton grants` gives for it logs people in, and users can be changed as it.
func TestRoleThatServesThePage(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	mine := s.granted("scheduler,admin")
	mine.addUser("alice", "--role", "admin")
	mine.ok("user", "role", "alice", "viewer", "--project", "etl")
	mine.ok("user", "role", "alice", "none", "--project", "etl")
	mine.ok("user", "add", "bob", "--oidc")
	mine.ok("user", "disable", "bob")
	token := fmt.Sprint(mine.object("token", "create", "alice", "--name", "t")["token"])
	server := mine.launch("server", "--listen", "127.0.0.1:0")
	where := fmt.Sprint(server.started()["endpoint"])
	if status, body := says(t, where+"/whoami", token); status != http.StatusOK || body != "alice" {
		t.Errorf("with a token: %d %q", status, body)
	}
	for given, want := range map[string]int{"wrong password": http.StatusUnauthorized, password: http.StatusNoContent} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, where+"/login", strings.NewReader(fmt.Sprintf(`{"name": "alice", "password": %q}`, given)))
		if err != nil {
			t.Fatal(err)
		}
		request.Close = true
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("login with %q: %d", given, response.StatusCode)
		}
		for _, cookie := range response.Cookies() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, where+"/logout", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Close = true
			request.AddCookie(cookie)
			request.Header.Set("Sec-Fetch-Site", "same-origin")
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusSeeOther {
				t.Errorf("logout: %d", response.StatusCode)
			}
		}
	}
	mine.ok("token", "revoke", "1")
	if r := mine.try("another password", "user", "set-password", "alice"); r.code != exitOK {
		t.Errorf("set-password: %+v", r)
	}
	// Who only works cannot read who may log in.
	s.granted("scheduler,worker,enqueuer,starter").fails(exitFailed, "permission denied for table access_user", "user", "list")
}

// says asks a server for a path, with a token if there is one.
func says(t *testing.T, where, token string) (status int, body string) {
	t.Helper()
	pgtest.Retry(t, patience, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, http.NoBody)
		if err != nil {
			return err
		}
		request.Close = true
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close() //nolint:errcheck // only read
		text, err := io.ReadAll(response.Body)
		status, body = response.StatusCode, strings.TrimSpace(string(text))
		return err
	})
	return status, body
}

// Without users a server on this machine lets everybody in; the first user ends that while it runs.
func TestServerUntilThereAreUsers(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	server := s.launch("server", "--listen", "127.0.0.1:0")
	whoami := fmt.Sprint(server.started()["endpoint"]) + "/whoami"
	if status, body := says(t, whoami, ""); status != http.StatusOK || body != "local" {
		t.Errorf("without users: %d %q", status, body)
	}
	if text := server.err.String(); !strings.Contains(text, "there are no users") {
		t.Errorf("the log does not say so: %s", text)
	}
	s.addUser("alice", "--role", "viewer")
	if status, body := says(t, whoami, ""); status != http.StatusUnauthorized || !json.Valid([]byte(body)) {
		t.Errorf("with users: %d %q", status, body)
	}
	token := fmt.Sprint(s.object("token", "create", "alice", "--name", "t")["token"])
	if status, body := says(t, whoami, token); status != http.StatusOK || body != "alice" {
		t.Errorf("with a token: %d %q", status, body)
	}
}

func TestListenElsewhere(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fails(exitUsage, "give --tls-cert and --tls-key, or --behind-proxy", "server", "--listen", "0.0.0.0:0")
	s.fails(exitUsage, "add one with `pelton user add NAME --role admin`", "server", "--listen", "0.0.0.0:0", "--behind-proxy")
	s.fails(exitUsage, "belong together", "server", "--tls-cert", "x")
	s.fails(exitUsage, "need --oidc-issuer", "server", "--oidc-client-id", "x")
	s.fails(exitUsage, "public URL is needed", "server", "--oidc-issuer", "https://login.example.com", "--oidc-client-id", "x")
	s.fails(exitUsage, "want GROUP=ROLE", "server", "--oidc-issuer", "https://login.example.com", "--oidc-client-id", "x", "--oidc-group", "ops")
	s.fails(exitUsage, "unknown flag: --behind-proxy", "worker", "--behind-proxy")
	s.addUser("alice", "--role", "admin")
	server := s.launch("server", "--listen", "0.0.0.0:0", "--behind-proxy", "--public-url", "https://pelton.example.com",
		"--oidc-issuer", "https://login.example.com", "--oidc-client-id", "x", "--oidc-group", "cn=ops,dc=x=operator@etl", "--oidc-group", "all=viewer")
	where := strings.Replace(fmt.Sprint(server.started()["endpoint"]), "[::]", "127.0.0.1", 1)
	if status, body := says(t, where+"/whoami", ""); status != http.StatusUnauthorized {
		t.Errorf("whoami: %d %q", status, body)
	}
	if status, body := says(t, where+"/login", ""); status != http.StatusOK || !strings.Contains(body, "/login/oidc") {
		t.Errorf("login: %d %q", status, body)
	}
}
