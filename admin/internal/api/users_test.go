package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
)

func TestUsersAndTokens(t *testing.T) {
	t.Parallel()
	s := start(t)
	const users = "/api/v1/users"
	u := do[document.User](s, access.Admin, 201, "POST", users, `{"name":"carol","password":"correct horse","role":"viewer","project":"etl"}`)
	if u.Name != "carol" || u.Login != "password" || len(u.Roles) != 1 || u.Roles[0].Project != "etl" {
		t.Errorf("%+v", u)
	}
	admin := s.tokens[access.Admin]
	s.problemOf(s.ask(admin, "POST", users, `{"name":"Carol","password":"correct horse"}`), http.StatusConflict, "exists", "Carol")
	p := s.problemOf(s.ask(admin, "POST", users, `{"name":"dave","password":"secret!"}`), http.StatusUnprocessableEntity, "invalid-request", "10 characters")
	if strings.Contains(p.Detail, "secret!") {
		t.Error("the problem tells the password")
	}
	u = do[document.User](s, access.Admin, 200, "PUT", users+"/carol/role", `{"role":"operator"}`)
	if len(u.Roles) != 2 {
		t.Errorf("%+v", u)
	}
	u = do[document.User](s, access.Admin, 200, "PUT", users+"/carol/role", `{"role":"none","project":"etl"}`)
	if len(u.Roles) != 1 || u.Roles[0].Project != access.Everything {
		t.Errorf("%+v", u)
	}
	made := do[document.TokenMade](s, access.Admin, 201, "POST", "/api/v1/tokens", `{"user":"carol","name":"ci","role":"operator"}`)
	if r := s.ask(made.Secret, "POST", "/api/v1/jobs", `{"kind":"noop"}`); r.status != http.StatusCreated {
		t.Errorf("with the token: %d %s", r.status, r.body)
	}
	if list := do[struct{ Items []access.Token }](s, access.Admin, 200, "GET", "/api/v1/tokens?user=carol", nil); len(list.Items) != 1 || list.Items[0].ID != made.ID {
		t.Errorf("%+v", list)
	}
	for _, want := range []bool{true, false} {
		if c := do[document.UserChanged](s, access.Admin, 200, "POST", users+"/carol/disable", nil); c.Changed != want || c.Done != "disabled" {
			t.Errorf("%+v", c)
		}
	}
	s.problemOf(s.ask(made.Secret, "GET", "/api/v1/jobs", nil), http.StatusUnauthorized, "not-logged-in", "")
	do[document.UserChanged](s, access.Admin, 200, "POST", users+"/carol/enable", nil)
	do[document.UserChanged](s, access.Admin, 200, "PUT", users+"/carol/password", `{"password":"another horse"}`)
	revoke := strings.Replace("/api/v1/tokens/ID/revoke", "ID", strconv.FormatInt(made.ID, 10), 1)
	for _, want := range []bool{true, false} {
		if c := do[document.TokenRevoked](s, access.Admin, 200, "POST", revoke, nil); c.Changed != want {
			t.Errorf("%+v", c)
		}
	}
	s.problemOf(s.ask(made.Secret, "GET", "/api/v1/jobs", nil), http.StatusUnauthorized, "not-logged-in", "")
	for _, path := range []string{users + "/nobody/disable", "/api/v1/tokens/4711/revoke"} {
		s.problemOf(s.ask(admin, "POST", path, nil), http.StatusNotFound, "not-found", "")
	}
	if list := do[struct{ Items []document.User }](s, access.Admin, 200, "GET", users+"?limit=2", nil); len(list.Items) != 2 || list.Items[0].Name != "admin" {
		t.Errorf("%+v", list)
	}
	entries := do[struct{ Items []document.AuditEntry }](s, access.Admin, 200, "GET", "/api/v1/audit?actor=admin&action=user.add", nil)
	if len(entries.Items) != 1 || entries.Items[0].Target != "user carol" {
		t.Errorf("%+v", entries)
	}
}

// Nobody can take the last admin of everything away, and a role can be taken back.
func TestLastAdminStays(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.tokens[access.Admin]
	stays := func() {
		t.Helper()
		s.problemOf(s.ask(admin, "POST", "/api/v1/users/admin/disable", nil), http.StatusConflict, "last-admin", "make another first")
		for _, role := range []string{"none", "viewer", "operator"} {
			s.problemOf(s.ask(admin, "PUT", "/api/v1/users/admin/role", `{"role":"`+role+`"}`), http.StatusConflict, "last-admin", "last admin")
		}
	}
	stays()
	do[document.User](s, access.Admin, 200, "PUT", "/api/v1/users/viewer/role", `{"role":"admin"}`)
	u := do[document.User](s, access.Admin, 200, "PUT", "/api/v1/users/viewer/role", `{"role":"none"}`)
	if len(u.Roles) != 0 {
		t.Errorf("%+v", u)
	}
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", "/api/v1/jobs", nil), http.StatusForbidden, "forbidden", "")
	stays()
}
