package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs/flow/secret"
)

type secretPage struct{ Items []secret.Secret }

func (p secretPage) names() string {
	var names []string
	for _, one := range p.Items {
		names = append(names, one.Project+"/"+one.Name)
	}
	return strings.Join(names, " ")
}

// Who may see and change secrets depends on the project; * is everything's.
func TestSecretsAreOfProjects(t *testing.T) {
	t.Parallel()
	s := start(t)
	of := func(role access.Role, project string) string {
		return s.token(access.NewToken{User: "admin", Role: role, Project: project})
	}
	value := map[string]string{"value": "correct horse battery"}
	for _, name := range []string{"etl/DB", "web/DB", "*/ALL"} {
		set := do[secret.Secret](s, access.Admin, 200, "PUT", "/api/v1/secrets/"+name, value, "Idempotency-Key", "k")
		if set.Project+"/"+set.Name != name || set.Version != 1 || set.SetBy != "admin" {
			t.Errorf("%+v", set)
		}
	}
	for token, want := range map[string]string{
		s.tokens[access.Viewer]: "*/ALL etl/DB web/DB", of(access.Viewer, "etl"): "etl/DB", of(access.Admin, "web"): "web/DB", of(access.Viewer, "other"): "",
	} {
		var page secretPage
		if r := s.ask(token, "GET", "/api/v1/secrets", nil); r.status != 200 || json.Unmarshal(r.body, &page) != nil || page.names() != want {
			t.Errorf("%s, want %q", r.body, want)
		}
	}
	if page := do[secretPage](s, access.Viewer, 200, "GET", "/api/v1/secrets?project=*", nil); page.names() != "*/ALL" {
		t.Errorf("those for all: %s", page.names())
	}
	page := do[Page](s, access.Viewer, 200, "GET", "/api/v1/secrets?limit=2", nil)
	if rest := do[secretPage](s, access.Viewer, 200, "GET", "/api/v1/secrets?limit=2&cursor="+page.NextCursor, nil); rest.names() != "web/DB" {
		t.Errorf("the second page: %s", rest.names())
	}
	for _, c := range []struct{ token, method, path string }{
		{of(access.Viewer, "etl"), "GET", "?project=web"},
		{of(access.Viewer, "etl"), "GET", "?project=*"},
		{of(access.Operator, "etl"), "PUT", "/etl/DB"},
		{of(access.Operator, "etl"), "DELETE", "/etl/DB"},
		{of(access.Admin, "etl"), "PUT", "/web/DB"},
		{of(access.Admin, "etl"), "DELETE", "/web/DB"},
		{of(access.Admin, "etl"), "PUT", "/*/ALL"},
		{of(access.Admin, "etl"), "DELETE", "/*/ALL"},
		{of(access.Admin, "etl"), "POST", "/rekey"},
		{s.tokens[access.Operator], "PUT", "/etl/DB"},
	} {
		var body any
		if c.method == "PUT" {
			body = value
		}
		s.problemOf(s.ask(c.token, c.method, "/api/v1/secrets"+c.path, body), http.StatusForbidden, "forbidden", "")
	}
	if r := s.ask(of(access.Admin, "etl"), "PUT", "/api/v1/secrets/etl/DB", value); r.status != 200 || !strings.Contains(string(r.body), `"version":2`) {
		t.Errorf("an admin of the project: %d %s", r.status, r.body)
	}
	if gone := do[document.SecretDeleted](s, access.Admin, 200, "DELETE", "/api/v1/secrets/web/DB", nil); !gone.Deleted {
		t.Errorf("%+v", gone)
	}
	admin := s.tokens[access.Admin]
	s.problemOf(s.ask(admin, "DELETE", "/api/v1/secrets/web/DB", nil), http.StatusNotFound, "not-found", "web/DB")
	s.problemOf(s.ask(admin, "PUT", "/api/v1/secrets/etl/1X", value), http.StatusUnprocessableEntity, "invalid-request", "the first no digit")
	if done := do[secret.Rekeyed](s, access.Admin, 200, "POST", "/api/v1/secrets/rekey", nil); done.Changed != 0 || done.Left == nil {
		t.Errorf("%+v", done)
	}
	entries := do[struct{ Items []document.AuditEntry }](s, access.Admin, 200, "GET", "/api/v1/audit?action=secret.set&target=secret+etl/DB", nil)
	if len(entries.Items) != 2 || entries.Items[0].Actor != "admin" {
		t.Errorf("%+v", entries)
	}
	if err := os.Remove(string(s.keys)); err != nil {
		t.Fatal(err)
	}
	p := s.problemOf(s.ask(admin, "PUT", "/api/v1/secrets/etl/DB", value), http.StatusServiceUnavailable, "no-secret-key", "--secret-key-file")
	if strings.Contains(p.Detail, string(s.keys)) {
		t.Errorf("the problem tells a path of the server: %s", p.Detail)
	}
}

// Page is a page whose items do not matter.
type Page struct {
	NextCursor string `json:"next_cursor"`
}

// A value is in no answer, log or row of the database, whether it was taken or refused.
func TestValuesOfSecretsAreWriteOnly(t *testing.T) {
	t.Parallel()
	s := start(t)
	const value = "Tr0ub4dor-and-3"
	for _, body := range []string{
		`{"value":"` + value + `"}`, `{"value":"` + value + `","vaule":"` + value + `"}`, `{"value":"` + value, `{"value":["` + value + `"]}`, `"` + value + `"`,
		`{"value":{"` + value + `":1}}`, `{"` + value + `":1}`, `{"value":"` + value + `\u0000"}`, "{\"value\":\"" + value + "\xff\"}", `{"value":"` + value + strings.Repeat("x", 70_000) + `"}`,
		value, `{"value":"` + value + `"} ` + value,
	} {
		for _, path := range []string{"etl/DB", "etl/1X", "a%20b/DB"} {
			r := s.ask(s.tokens[access.Admin], "PUT", "/api/v1/secrets/"+path, body, "Idempotency-Key", "k1")
			// A field that is no field is told by its name: that is what who mistypes needs.
			named := strings.HasPrefix(body, `{"`+value) || strings.Contains(body, `{"value":{"`)
			if strings.Contains(fmt.Sprint(r.header)+string(r.body), value) && !named {
				t.Errorf("%.60s: %d %s", body, r.status, r.body)
			}
			if good := body == `{"value":"`+value+`"}` && path == "etl/DB"; good != (r.status == 200) {
				t.Errorf("%.60s to %s: %d %s", body, path, r.status, r.body)
			}
		}
	}
	for _, path := range []string{"/api/v1/secrets", "/api/v1/audit", "/openapi.json"} {
		if r := s.ask(s.tokens[access.Admin], "GET", path, nil); r.status != 200 || strings.Contains(string(r.body), value) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if log := s.log.String(); strings.Contains(log, value) {
		t.Errorf("the log: %s", log)
	}
	s.nowhere(value)
}

// nowhere checks that no table has a text.
func (s *service) nowhere(text string) {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), `SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'pelton'::regnamespace`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			s.t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if len(tables) < 30 {
		s.t.Errorf("only %d tables", len(tables))
	}
	for _, name := range tables {
		var found int
		err := s.pool.QueryRow(s.t.Context(), `SELECT count(*) FROM `+name+` t WHERE position($1 IN t::text) > 0 OR position(encode($1::bytea, 'hex') IN t::text) > 0`, text).Scan(&found)
		if err != nil || found > 0 {
			s.t.Errorf("%s: %d rows, %v", name, found, err)
		}
	}
}
