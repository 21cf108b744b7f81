package page_test

import (
	"bytes"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs"
)

func TestAdminOfUsers(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	admin := s.As("admin")
	carol := url.Values{"name": {"carol"}, "password": {"correct horse"}, "again": {"correct horse"}, "role": {"operator"}, "project": {"etl"}}
	with := func(name, value string) url.Values {
		form := maps.Clone(carol)
		form.Set(name, value)
		return form
	}
	for name, bad := range map[string]string{"name": "a b", "again": "another", "role": "king", "project": "a b"} {
		a := admin.WantPost(400, "/admin/users", with(name, bad))
		if strings.Contains(a.Body, "correct horse") {
			t.Errorf("%s: the answer holds the password", name)
		}
	}
	short := with("password", "short")
	short.Set("again", "short")
	admin.WantPost(400, "/admin/users", short, "at least 10 characters")
	checkEscaped(t, "a name", admin.WantPost(400, "/admin/users", with("name", evil)))
	admin.WantPost(303, "/admin/users", carol, "User carol is added.", "operator", "project", "etl")
	admin.WantPost(409, "/admin/users", with("name", "CAROL"), "CAROL")
	visitor := s.As("")
	visitor.LoginBy("carol", "correct horse")
	visitor.Want(200, "/flows")

	admin.Want(200, "/admin", "carol", "operator of", "everything", "OpenID Connect")
	if a := admin.Want(200, "/admin?q=caro", "carol"); strings.Contains(a.Body, ">nobody<") {
		t.Error("the filter lets through what does not fit")
	}
	checkEscaped(t, "the filter", admin.Want(200, "/admin?q="+url.QueryEscape(evil), "No users of that name"))

	const user = "/admin/users/carol"
	admin.WantPost(303, user+"/role", url.Values{"role": {"viewer"}}, "carol is viewer of everything.")
	visitor.Want(200, "/jobs")
	admin.WantPost(303, user+"/role", url.Values{"role": {"none"}, "project": {"*"}}, "no role for everything")
	visitor.Want(403, "/jobs")
	admin.WantPost(400, user+"/role", url.Values{"role": {""}})
	admin.WantPost(303, user+"/password", url.Values{"password": {"another horse"}, "again": {"another horse"}}, "is set")
	if a := visitor.Get("/flows"); a.Status != http.StatusSeeOther {
		t.Errorf("a session from before the password: %d", a.Status)
	}
	visitor.LoginBy("carol", "another horse")
	admin.Want(200, user+"/disable", "Disable carol?")
	visitor.Want(200, "/flows")
	admin.WantPost(303, user+"/disable", nil, "carol is disabled.", "disabled</span> since")
	if a := visitor.Get("/flows"); a.Status != http.StatusSeeOther {
		t.Errorf("a session of a disabled user: %d", a.Status)
	}
	admin.WantPost(303, user+"/enable", nil, "carol is enabled.")

	// Nobody locks themselves out.
	for path, form := range map[string]url.Values{
		"/disable": nil, "/role": {"role": {"none"}, "project": {"*"}}, "/password": {"password": {"another horse"}, "again": {"another horse"}},
	} {
		admin.WantPost(409, "/admin/users/ADMIN"+path, form, "your own account")
	}
	admin.WantPost(303, "/admin/users/admin/role", url.Values{"role": {"viewer"}, "project": {"etl"}}, "admin is viewer of project etl.")
	admin.Want(404, "/admin/users/zoe")
	admin.Want(400, "/admin/users/a%00b")
	for _, path := range []string{"/admin/users/zoe/disable", "/admin/users/zoe/enable", "/admin/users/zoe/password"} {
		admin.WantPost(404, path, nil)
	}
	for name, want := range map[string]int{"viewer": 403, "operator": 403, "etl": 403} {
		for _, path := range []string{"/admin", user, user + "/disable", "/admin/tokens"} {
			s.As(name).Want(want, path)
		}
		if a := s.As(name).Get("/"); strings.Contains(a.Body, `href="/admin"`) {
			t.Errorf("%s finds the room", name)
		}
	}
	checkAudit(t, s, "user.add", "user carol")
	admin.Want(200, "/audit?action=user.disable", `href="/admin/users/carol"`)
	if a := s.As("viewer").Want(200, "/audit?action=user.disable", "user carol"); strings.Contains(a.Body, `href="/admin`) {
		t.Error("a viewer is led to what they may not see")
	}
}

// checkAudit checks that admin has done something to a target.
func checkAudit(t *testing.T, s *pagetest.Site, action, target string) {
	t.Helper()
	list, err := s.Jobs.AuditList(t.Context(), &jobs.AuditListParams{Action: action, Target: target, Actor: "admin", Limit: 10})
	if err != nil || len(list) == 0 {
		t.Errorf("%s of %s by admin: %+v, %v", action, target, list, err)
	}
}

// Without users the page makes an admin first, so that it does not lock out who uses it.
func TestFirstUser(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	s.Exec(`DELETE FROM pelton.access_token`)
	s.Exec(`DELETE FROM pelton.access_role`)
	s.Exec(`DELETE FROM pelton.access_user`)
	local := s.As("")
	local.Want(200, "/admin", "There are no users yet")
	form := url.Values{"name": {"root"}, "password": {"correct horse"}, "again": {"correct horse"}, "role": {"viewer"}}
	local.WantPost(400, "/admin/users", form, "make them admin of everything")
	form.Set("role", "admin")
	form.Set("project", "etl")
	local.WantPost(400, "/admin/users", form, "make them admin of everything")
	form.Del("project")
	if a := local.Post("/admin/users", form); a.Status != http.StatusSeeOther {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := local.Get("/admin"); a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login") {
		t.Errorf("after the first user: %d", a.Status)
	}
}

func TestAdminOfTokens(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	made, _, err := s.Access.AddToken(t.Context(), "test", access.NewToken{User: "etl", Name: evil[:20], Role: access.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	admin := s.As("admin")
	checkEscaped(t, "tokens", admin.Want(200, "/admin/tokens", "etl", "operator"))
	if a := admin.Want(200, "/admin/tokens?user=etl"); strings.Contains(a.Body, ">operator</bdi>") {
		t.Error("the filter lets through what does not fit")
	}
	admin.Want(400, "/admin/tokens?user=%00")
	id := strconv.FormatInt(made.ID, 10)
	admin.WantPost(303, "/admin/tokens/revoke", url.Values{"token": {id}, "back": {"/admin/tokens?user=etl"}}, "Token "+id+" is revoked.", "Tokens of")
	admin.WantPost(303, "/admin/tokens/revoke", url.Values{"token": {id}}, "was revoked before")
	if a := admin.Get("/admin/tokens"); strings.Contains(a.Body, `id="token`+id) {
		t.Error("a revoked token is among those that hold")
	}
	admin.Want(200, "/admin/tokens?all=1", `id="token`+id+`"`, "revoked")
	admin.WantPost(404, "/admin/tokens/revoke", url.Values{"token": {"4711"}})
	admin.WantPost(400, "/admin/tokens/revoke", url.Values{"token": {"x"}})
	admin.Want(200, "/audit?action=token.revoke", `href="/admin/tokens?all=1#token`+id+`"`)
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	if _, err := s.Access.AddUser(t.Context(), "test", access.NewUser{Name: "boss", Roles: []access.Grant{{Project: "web", Role: access.Admin}}}); err != nil {
		t.Fatal(err)
	}
	_, token, err := s.Access.AddToken(t.Context(), "test", access.NewToken{User: "boss", Name: "test", Role: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	boss, bearer := s.As(""), []string{"Authorization", "Bearer " + token}
	admin := s.As("admin")
	const value, newer = "Tr0ub4dor-and-3", "line one\nline two"
	set := func(project, name, value string) url.Values {
		return url.Values{"project": {project}, "name": {name}, "value": {value}}
	}
	never := func(what string, a pagetest.Answer) {
		t.Helper()
		if strings.Contains(a.Body+a.Header.Get("Set-Cookie"), value) || strings.Contains(a.Body, "line two") {
			t.Errorf("%s holds a value", what)
		}
	}
	never("set", admin.WantPost(303, "/admin/secrets/set", set("etl", "DB", value), "Secret DB is set, version 1.", "DB"))
	never("again", admin.WantPost(303, "/admin/secrets/set", set("*", "ALL", value), "ALL"))
	admin.WantPost(400, "/admin/secrets/set", set("etl", "DB", "abc"), "want 4 or more")
	checkEscaped(t, "a name", admin.WantPost(400, "/admin/secrets/set", set("etl", evil, value)))
	never("a bad name", admin.WantPost(400, "/admin/secrets/set", set("etl", "1X", value)))
	never("a bad project", admin.WantPost(400, "/admin/secrets/set", set("a b", "X", value)))

	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_, _ = form.CreateFormField("value")
	for name, text := range map[string]string{"project": "web", "name": "PEM"} {
		_ = form.WriteField(name, text)
	}
	file, _ := form.CreateFormFile("file", "key.pem")
	_, _ = file.Write([]byte(newer + "\n"))
	_ = form.Close()
	a := boss.Do(http.MethodPost, "/admin/secrets/set", body.String(), append([]string{"Content-Type", form.FormDataContentType(), "Sec-Fetch-Site", "same-origin"}, bearer...)...)
	if a.Status != http.StatusSeeOther {
		t.Errorf("a file: %d %s", a.Status, a.Body)
	}
	never("a file", a)

	list := boss.Get("/admin/secrets", bearer...)
	if list.Status != 200 || !strings.Contains(list.Body, "PEM") || strings.Contains(list.Body, "ALL") || strings.Contains(list.Body, ">DB<") || !strings.Contains(list.Body, "<option>web</option>") {
		t.Errorf("what an admin of a project sees: %d %s", list.Status, list.Body)
	}
	if a := boss.Get("/admin", bearer...); a.Status != http.StatusSeeOther || a.Header.Get("Location") != "/admin/secrets" {
		t.Errorf("the room for an admin of a project: %d", a.Status)
	}
	for _, project := range []string{"etl", "*", ""} {
		if a := boss.Post("/admin/secrets/set", set(project, "X", value), bearer...); a.Status != 403 {
			t.Errorf("set for %q by an admin of another: %d", project, a.Status)
		}
		if a := boss.Post("/admin/secrets/delete", set(project, "DB", ""), bearer...); a.Status != 403 {
			t.Errorf("delete for %q by an admin of another: %d", project, a.Status)
		}
	}
	viewer := s.As("viewer")
	a = viewer.Want(200, "/admin/secrets", "DB", "ALL", "PEM")
	if strings.Contains(a.Body, `type="password"`) || strings.Contains(a.Body, "Delete...") {
		t.Error("a viewer is offered what would be refused")
	}
	never("the list", a)
	etl := s.As("etl")
	if a := etl.Want(200, "/admin/secrets?project=etl", "DB"); strings.Contains(a.Body, "ALL") {
		t.Error("those for all are shown to who has no role for everything")
	}
	etl.Want(403, "/admin/secrets?project=web")
	etl.Want(403, "/admin/secrets?project=*")
	etl.Want(403, "/admin/secrets/delete?project=etl&name=DB")
	checkEscaped(t, "the form", admin.Want(200, "/admin/secrets?project="+url.QueryEscape(evil)+"&name="+url.QueryEscape(evil)))

	admin.Want(200, "/admin/secrets/delete?project=etl&name=DB", "Secret DB of project etl will be removed")
	admin.Want(404, "/admin/secrets/delete?project=etl&name=NO")
	admin.Want(200, "/audit?action=secret.set", `href="/admin/secrets?project=etl"`, `href="/admin/secrets?project=%2A"`)
	never("the audit", admin.Want(200, "/audit?action=secret.set"))
	admin.WantPost(303, "/admin/secrets/delete", set("etl", "DB", ""), "Secret DB is deleted.")
	if a := admin.Get("/admin/secrets"); strings.Contains(a.Body, ">DB<") {
		t.Error("a deleted secret is listed")
	}
	admin.WantPost(404, "/admin/secrets/delete", set("etl", "DB", ""))
	checkAudit(t, s, "secret.delete", "secret etl/DB")
}

func TestSecretsWithoutAKey(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{NoKey: true})
	admin := s.As("admin")
	a := admin.Want(200, "/admin/secrets", "has no key for secrets", "pelton secret key FILE", "--secret-key-file")
	if strings.Contains(a.Body, `type="password"`) {
		t.Error("there is a form")
	}
	admin.WantPost(409, "/admin/secrets/set", url.Values{"project": {"etl"}, "name": {"DB"}, "value": {"correct horse"}}, "--secret-key-file")
}

// An erase is asked for once more, and blanks the job.
func TestEraseAJob(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	s.Exec(`SELECT pelton.enqueue('mail', '{"to": "jane@example.com"}', run_at => now() + interval '1 h')`)
	list, err := s.Jobs.JobList(t.Context(), nil)
	if err != nil || len(list.Jobs) != 1 {
		t.Fatal(list, err)
	}
	path := "/jobs/" + strconv.FormatInt(list.Jobs[0].ID, 10)
	admin, operator := s.As("admin"), s.As("operator")
	if a := admin.Want(200, path, "jane@example.com"); strings.Contains(a.Body, "Erase...") {
		t.Error("one that has not ended can be erased")
	}
	admin.WantPost(409, path+"/erase", nil, "has not ended")
	operator.WantPost(303, path+"/cancel", nil, "cancelled")
	if a := operator.Want(200, path); strings.Contains(a.Body, "Erase...") {
		t.Error("an operator is offered what would be refused")
	}
	admin.Want(200, path, "Erase...")
	operator.Want(403, path+"/erase")
	admin.Want(200, path+"/erase", "blanked for good", "backups")
	admin.Want(200, path, "jane@example.com")
	admin.WantPost(303, path+"/erase", nil, "The job is erased.")
	if a := admin.Want(200, path); strings.Contains(a.Body, "jane") {
		t.Error("it is not erased")
	}
	admin.WantPost(303, path+"/erase", nil, "held nothing any more")
	operator.WantPost(409, path+"/retry", nil, "was erased")
	admin.Want(404, "/jobs/77/erase")
	admin.WantPost(404, "/jobs/77/erase", nil)
	checkAudit(t, s, "job.erase", strings.TrimPrefix(path, "/jobs/"))
}

// furnishAdmin fills the rooms of alerts and of administration.
func furnishAdmin(t *testing.T, s *pagetest.Site) {
	t.Helper()
	store := furnishAlerts(t, s)
	s.Exec(`UPDATE pelton.alert_turn SET evaluated_at = now(), evaluated_by = 'server-1'`)
	_, err := store.Mute(t.Context(), "alice", alert.Mute{Rule: "failing", Subject: "payments", Until: time.Now().Add(2 * time.Hour), Reason: "the bank's maintenance"})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a.very.long.name-", 5) + "@example.com"
	for _, u := range []access.NewUser{
		{Name: "carol", Roles: []access.Grant{{Project: access.Everything, Role: access.Viewer}, {Project: "etl", Role: access.Admin}, {Project: "nightly-reports", Role: access.Operator}}},
		{Name: "dave"},
		{Name: long, Roles: []access.Grant{{Project: "etl", Role: access.Viewer}}},
	} {
		if _, err := s.Access.AddUser(t.Context(), "alice", u); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Access.Disable(t.Context(), "alice", "dave"); err != nil {
		t.Fatal(err)
	}
	made, _, err := s.Access.AddToken(t.Context(), "alice", access.NewToken{User: long, Name: "the build of the nightly reports", Role: access.Operator, Project: "etl"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Access.RevokeToken(t.Context(), "alice", made.ID); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"*/DEPLOY_KEY", "etl/DB_PASSWORD", "etl/A_NAME_THAT_IS_RATHER_LONG_AND_SAYS_WHAT_IT_IS_FOR"} {
		project, name, _ := strings.Cut(name, "/")
		if _, err := s.Secrets.Set(jobs.WithActor(t.Context(), "alice"), project, name, []byte("correct horse")); err != nil {
			t.Fatal(err)
		}
	}
}

// A person sets a secret in a browser, is asked before it is deleted, and mutes what fires.
func TestAdminInABrowser(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	furnishAdmin(t, s)
	b := s.Browser("admin")
	b.Go("/")
	b.WaitFor("#figures .warning", "Alerts fire: failing, waiting")
	b.ClickText("Alerts fire")
	b.WaitFor("h1", "Alerts")
	b.ClickText("Mute...")
	b.WaitUntil(`document.querySelector("#mute [name=subject]").value === "mail"`)
	b.ClickText("Mute")
	b.WaitFor(".flash", "Rule waiting, subject mail, is muted until")
	b.WaitFor("#fires", "by admin")
	b.ClickText("Admin")
	b.ClickText("carol")
	b.WaitFor("h1", "User carol")
	b.ClickText("Take back")
	b.WaitFor(".flash", "carol has no role for everything any more")
	b.ClickText("Secrets")
	b.Fill(`#set [name="project"]`, "etl")
	b.Fill(`#set [name="name"]`, "TOKEN")
	b.Fill(`#set [name="value"]`, "correct horse battery")
	b.ClickText("Set")
	b.WaitFor(".flash", "Secret TOKEN is set, version 1.")
	if text := b.Eval(`document.documentElement.outerHTML`); strings.Contains(text, "battery") {
		t.Error("the value is on the page")
	}
	b.Go("/admin/secrets/delete?project=etl&name=TOKEN")
	b.ClickText("Delete the secret")
	b.WaitFor(".flash", "Secret TOKEN is deleted.")
}

// An admin makes a token for somebody else, who may do with it what they may, and no more. Its secret is shown once.
func TestAdminMakesATokenForAnother(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	admin := s.As("admin")
	form := url.Values{"user": {"operator"}, "name": {"ci \"><b>"}, "role": {"operator"}, "days": {"30"}}
	s.As("operator").WantPost(403, "/admin/tokens", form)
	for field, value := range map[string]string{"user": "ghost", "name": " ", "role": "king", "days": "soon", "project": "no project!"} {
		wrong := maps.Clone(form)
		wrong.Set(field, value)
		a := admin.WantPost(422, "/admin/tokens", wrong, "Nothing was made", `name="days" value="`+wrong.Get("days")+`"`)
		checkEscaped(t, field, a)
		if strings.Contains(a.Body, access.TokenPrefix) {
			t.Errorf("%s = %q: a token was made", field, value)
		}
	}
	admin.Want(200, "/admin/tokens?user=operator", `name="user" value="operator" required`)
	a := admin.WantPost(200, "/admin/tokens", form, "It is shown this once", "Tokens of <bdi>operator</bdi>")
	secret := regexp.MustCompile(access.TokenPrefix + `[A-Za-z0-9_-]+`).FindString(a.Body)
	as := func(path, method string) int {
		return s.As("").Do(method, path, "", "Authorization", "Bearer "+secret, "Sec-Fetch-Site", "same-origin").Status
	}
	if as("/jobs", "GET") != 200 || as("/jobs/77/cancel", "POST") != 404 || as("/admin", "GET") != 403 {
		t.Errorf("as the user: %d, %d, %d", as("/jobs", "GET"), as("/jobs/77/cancel", "POST"), as("/admin", "GET"))
	}
	if a := admin.Want(200, "/admin/tokens?user=operator", "ci "); strings.Contains(a.Body, secret) {
		t.Error("the secret is shown again")
	}
	checkEscaped(t, "the audit", admin.Want(200, "/audit?action=token.create&actor=admin", "operator"))
	tokens, err := s.Access.TokenList(t.Context(), access.TokenListParams{User: "operator"})
	if err != nil || len(tokens) != 2 || tokens[0].Role != access.Operator || tokens[0].ExpiresAt.Sub(tokens[0].CreatedAt) != 30*24*time.Hour {
		t.Fatalf("%+v, %v", tokens, err)
	}
	admin.WantPost(303, "/admin/tokens/revoke", url.Values{"token": {fmt.Sprint(tokens[0].ID)}}, "is revoked")
	if status := as("/jobs", "GET"); status == 200 {
		t.Error("a token that is revoked holds")
	}
}

// An admin has all secrets encrypted anew, and is told which no key opens.
func TestRekeySecrets(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	admin := s.As("admin")
	admin.Want(200, "/admin/secrets", "Encrypt all with the newest key")
	s.As("operator").WantPost(403, "/admin/secrets/rekey", nil)
	if _, err := s.Secrets.Set(t.Context(), "etl", "DB", []byte("no secret")); err != nil {
		t.Fatal(err)
	}
	admin.WantPost(303, "/admin/secrets/rekey", nil, "0 secrets were encrypted with the newest key")
	s.Exec(`UPDATE pelton.secret SET key = 'gone'`)
	admin.WantPost(303, "/admin/secrets/rekey", nil, "0 secrets were encrypted with the newest key", "no key of this server opens them", "gone")
	pagetest.Start(t, pagetest.Options{NoKey: true}).As("admin").WantPost(409, "/admin/secrets/rekey", nil, "has no key for secrets")
}
