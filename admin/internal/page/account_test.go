package page_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

func TestAccount(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	here, there := s.As(""), s.As("")
	here.Login("admin")
	there.Login("admin")
	a := here.Want(200, "/account", "admin of everything", "this browser", "End all others")
	session := regexp.MustCompile(`name="session" value="([0-9a-f]{16})"`).FindStringSubmatch(a.Body)
	if len(session) != 2 {
		t.Fatalf("no other session: %s", a.Body)
	}
	here.WantPost(303, "/account/session", url.Values{"session": {session[1]}}, "The session has ended.")
	here.WantPost(404, "/account/session", url.Values{"session": {session[1]}})
	here.WantPost(404, "/account/session", url.Values{"session": {"' OR true --"}})
	if a := there.Get("/account"); a.Status != 303 {
		t.Errorf("an ended session: %d", a.Status)
	}
	there.Login("admin")

	fields := func(old, wanted, again string) url.Values {
		return url.Values{"old": {old}, "new": {wanted}, "again": {again}}
	}
	here.WantPost(400, "/account/password", fields(pagetest.Password, "short", "short"), "at least 10 characters")
	here.WantPost(400, "/account/password", fields(pagetest.Password, "long enough 1", "long enough 2"), "two ways")
	here.WantPost(403, "/account/password", fields("wrong", "long enough", "long enough"), "The old password is wrong.")
	here.WantPost(303, "/account/password", fields(pagetest.Password, "long enough", "long enough"), "The password is changed")
	here.Want(200, "/account", "this browser")
	if a := there.Get("/account"); a.Status != 303 {
		t.Errorf("a session from before the change: %d", a.Status)
	}
	if a := there.Post("/login", url.Values{"name": {"admin"}, "password": {"long enough"}}); a.Status != 303 {
		t.Errorf("the new password: %d", a.Status)
	}
	here.WantPost(303, "/account/sessions", nil, "1 other sessions have ended")

	form := url.Values{"name": {"ci " + evil[:20]}, "role": {"viewer"}, "days": {"30"}}
	a = here.WantPost(200, "/account/token", form, "This is the token", "pelton_")
	checkEscaped(t, "tokens", a)
	secret := regexp.MustCompile(`pelton_[A-Za-z0-9_-]{43}`).FindString(a.Body)
	program := s.As("")
	bearer := []string{"Authorization", "Bearer " + secret}
	if a := program.Get("/queues", bearer...); a.Status != 200 {
		t.Errorf("the token: %d", a.Status)
	}
	if a := program.Get("/account", bearer...); a.Status != 403 {
		t.Errorf("a token manages the account: %d", a.Status)
	}
	if a := program.Post("/account/token", form, bearer...); a.Status != 403 {
		t.Errorf("a token makes a token: %d", a.Status)
	}
	if a := here.Get("/account"); strings.Contains(a.Body, secret) {
		t.Error("the token is shown again")
	}
	viewer := s.As("")
	viewer.Login("viewer")
	token := regexp.MustCompile(`name="token" value="(\d+)"`).FindStringSubmatch(here.Get("/account").Body)[1]
	viewer.WantPost(404, "/account/token/revoke", url.Values{"token": {token}}, "you have no such token")
	here.WantPost(303, "/account/token/revoke", url.Values{"token": {token}}, "is revoked")
	if a := program.Get("/queues", bearer...); a.Status != 401 {
		t.Errorf("a revoked token: %d", a.Status)
	}
	for name, bad := range map[string]string{"role": "king", "days": "0", "name": "", "project": "a b"} {
		form := url.Values{"name": {"x"}, "role": {"viewer"}, "days": {"30"}}
		form.Set(name, bad)
		here.WantPost(400, "/account/token", form)
	}
}
