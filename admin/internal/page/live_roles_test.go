package page_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

// A live part is refused to whoever may not see its page, also when it is asked for as a part of a stream.
func TestLivePartsAreGuarded(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	variable := regexp.MustCompile(`\{[^}]*\}`)
	parts := 0
	for _, name := range []string{"nobody", "etl"} {
		v := s.As(name)
		v.Client.Timeout = pagetest.Patience // a stream that is opened ends the test
		for _, pattern := range page.Patterns() {
			path, live := strings.CutPrefix(pattern, "GET ")
			if !live || !strings.HasPrefix(path, "/live/") {
				continue
			}
			parts++
			part := variable.ReplaceAllString(path, "1")
			if a := v.Get("/live?part=" + url.QueryEscape(part)); a.Status != http.StatusForbidden && a.Status != http.StatusNotFound {
				t.Errorf("%s as %s: %d", part, name, a.Status)
			}
		}
		if a := v.Get("/live?part=/live/overview"); a.Status != http.StatusForbidden {
			t.Errorf("overview as %s: %d, want 403", name, a.Status)
		}
	}
	if parts < 6 {
		t.Errorf("%d parts were tried", parts)
	}
}
