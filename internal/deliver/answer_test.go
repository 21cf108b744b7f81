package deliver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/deliver"
)

// An error says what a webhook answered: its status, and a little of what it says of a wrong request; never a page.
func TestPostTellsLittleOfTheAnswer(t *testing.T) {
	t.Parallel()
	answer := func(status int, kind, body string) string {
		t.Helper()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		defer server.Close()
		err := deliver.Post(t.Context(), server.URL+"/key?token=secret", []byte("{}"), nil)
		if err == nil {
			return ""
		}
		return strings.ReplaceAll(err.Error(), server.URL, "URL")
	}
	for _, c := range []struct {
		status           int
		kind, body, want string
	}{
		{204, "text/plain", "", ""},
		{404, "text/plain; charset=utf-8", "no_such_channel\n", "webhook URL answered 404 Not Found: no_such_channel"},
		{400, "application/json", "{\n\t\"error\": 1}", `webhook URL answered 400 Bad Request: { "error": 1}`},
		{400, "text/plain", strings.Repeat("x", 99) + "\u00e9 and more", "webhook URL answered 400 Bad Request: " + strings.Repeat("x", 99)},
		{404, "text/html", "<h1>internal</h1>", "webhook URL answered 404 Not Found"},
		{500, "text/plain", "stack trace", "webhook URL answered 500 Internal Server Error"},
	} {
		if got := answer(c.status, c.kind, c.body); got != c.want {
			t.Errorf("%d %s: %q, want %q", c.status, c.kind, got, c.want)
		}
	}
}

// A webhook that sends elsewhere is not followed, with the method kept (307) or not.
func TestPostFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked", r.URL) }))
	defer elsewhere.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/internal", status))
		err := deliver.Post(t.Context(), server.URL, []byte("{}"), nil)
		if err == nil || !strings.Contains(err.Error(), http.StatusText(status)) || strings.Contains(err.Error(), elsewhere.URL) {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
	}
}
