package page_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

// queryNames are the names of all values that pages read from addresses, as the source has them.
func queryNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`(?:[qQ]uery(?:\(\))?\.Get|list|values\.Get|f\.text)\("([a-z_]+)"\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range read.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 20 {
		t.Fatalf("only %d names: %q", len(names), names)
	}
	return names
}

// Whatever an address says, the answer is a page or a refusal, and never a fault of the server.
func TestOddAddresses(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	admin := s.As("admin")
	pushFlow(t, s, "1") // what the paths name is there, so that what they lead to is reached
	put(t, s, nightly("1"))
	admin.WantPost(303, "/flows/1/daily/run", nil)
	s.Exec(`INSERT INTO pelton.job (id, kind, args) VALUES (1, 'noop', '{}')`)
	names := queryNames(t)
	odd := []string{"\x00", "\xff", "9223372036854775807", "-9223372036854775808", "99999999999", "1e9", "' OR 1=1 --", strings.Repeat("9", 3000)}
	ask := func(path string) {
		t.Helper()
		if a := admin.Get(path); a.Status >= http.StatusInternalServerError {
			t.Errorf("%.200s: %d %.300s", path, a.Status, regexp.MustCompile(`(?s).*<main[^>]*>`).ReplaceAllString(a.Body, ""))
		}
	}
	for _, pattern := range page.Patterns() {
		method, path := address(pattern)
		if method != http.MethodGet || strings.HasSuffix(path, "/follow") || path == "/live" { // streams do not end
			continue
		}
		for _, value := range odd {
			ask(wildcard.ReplaceAllString(strings.TrimPrefix(strings.ReplaceAll(pattern, "{$}", ""), "GET "), url.PathEscape(value)))
			if value == "\x00" || value == "\xff" { // refused before anybody looks at the name
				ask(path + "?q=" + url.QueryEscape(value))
				continue
			}
			for _, name := range names {
				if value == odd[2] || name == "after" || name == "q" { // the greatest number is the oddest
					ask(path + "?" + name + "=" + url.QueryEscape(value))
				}
			}
		}
	}
}

// A stream's inner addresses are held to the same as its own: bytes that no database can hold are refused before anything is opened.
func TestOddLiveParts(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	pushFlow(t, s, "1")
	put(t, s, nightly("1"))
	admin := s.As("admin")
	admin.WantPost(303, "/flows/1/daily/run", nil)
	admin.Client.Timeout = pagetest.Patience / 2 // a stream that is opened ends the test
	parts := 0
	for _, pattern := range page.Patterns() {
		path, live := strings.CutPrefix(pattern, "GET /live/")
		if !live {
			continue
		}
		parts++
		for _, odd := range []string{"%00", "%ff", "%zz"} {
			asked := []string{wildcard.ReplaceAllString(path, "1") + "?q=" + odd}
			if wildcard.MatchString(path) {
				asked = append(asked, wildcard.ReplaceAllString(path, odd))
			}
			for _, part := range asked {
				admin.Want(400, "/live?part="+url.QueryEscape("/live/"+part))
			}
		}
	}
	if parts < 6 {
		t.Errorf("%d parts were tried", parts)
	}
}
