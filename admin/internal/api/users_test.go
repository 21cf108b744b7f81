package api_test

import (
	"net/http"
	"reflect"
	"slices"
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

// What a list of users, tokens, secrets, backfills or mutes gives page by page is what it gives at once, and each page ends where it is asked to.
func TestListsOfAccessComeInPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO pelton.access_user (name) SELECT chr(96 + n % 26 + 1) || n FROM generate_series(1, 20) n`)
	exec(`INSERT INTO pelton.access_token (user_id, expires_at, name, project, role, hash) SELECT id, now(), 'ci', '*', 'viewer', sha256(name::bytea) FROM pelton.access_user`)
	exec(`INSERT INTO pelton.secret SELECT CASE n % 3 WHEN 0 THEN '*' ELSE 'p' || n % 3 END, 'S' || n, 1, now(), 'x', 'k', 'n', 'v' FROM generate_series(1, 20) n`)
	exec(`INSERT INTO pelton.alert_mute (rule, subject, until, reason, created_by) SELECT 'r' || n % 3, 's' || n, now() + interval '1 day', '', 'x' FROM generate_series(1, 20) n`)
	exec(`WITH s AS (INSERT INTO pelton.schedule (name, spec) VALUES ('nightly', '{"name":"nightly","cron":"0 3 * * *","job":{"kind":"noop"}}') RETURNING id),
		d AS (INSERT INTO pelton.schedule_due (schedule_id, decided) SELECT id, now() FROM s)
		INSERT INTO pelton.schedule_backfill (schedule_id, from_at, to_at, decided, total, only_missed, status, created_by)
		SELECT s.id, now(), now(), now(), 1, true, 'completed', 'x' FROM s, generate_series(1, 20)`)
	for path, least := range map[string]int{
		"/api/v1/users?": 20, "/api/v1/tokens?": 20, "/api/v1/secrets?": 20, "/api/v1/secrets?project=*&": 6, "/api/v1/secrets?project=p1&": 7,
		"/api/v1/schedules/nightly/backfills?": 20, "/api/v1/alerts/mutes?": 20,
	} {
		type part = page[map[string]any]
		whole := do[part](s, access.Admin, 200, "GET", path+"limit=1000", nil)
		var parts []map[string]any
		cursor := ""
		for {
			p := do[part](s, access.Admin, 200, "GET", path+"limit=3"+cursor, nil)
			parts = append(parts, p.Items...)
			if p.NextCursor == "" {
				break
			}
			if len(p.Items) != 3 {
				t.Errorf("%s: a page of %d with another behind it", path, len(p.Items))
			}
			cursor = "&cursor=" + p.NextCursor
		}
		for _, item := range slices.Concat(whole.Items, parts) {
			delete(item, "used_at") // the token that asks is used meanwhile
		}
		if len(whole.Items) < least || !reflect.DeepEqual(whole.Items, parts) {
			t.Errorf("%s: %d at once, %d in pages of 3\n%v\n%v", path, len(whole.Items), len(parts), whole.Items, parts)
		}
	}
}
