package page_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

// formRoutes are the paths of all forms; uploads: of those that take a large file.
func formRoutes(t *testing.T) (forms, uploads []string) {
	t.Helper()
	for _, pattern := range page.Patterns() {
		method, path := address(pattern)
		switch {
		case method != http.MethodPost:
		case strings.HasSuffix(path, "/push"):
			uploads = append(uploads, path)
		default:
			forms = append(forms, path)
		}
	}
	if len(forms) < 30 || len(uploads) != 2 {
		t.Fatalf("%d forms, uploads %q", len(forms), uploads)
	}
	return forms, uploads
}

// audited is how many changes were made.
func audited(t *testing.T, s *pagetest.Site) (n int) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.audit`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A form that is too large is refused, whichever it is and however it is encoded, and nothing is done.
func TestFormsAreBounded(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	admin := s.As("")
	admin.Login("admin") // some forms are for sessions only
	before := audited(t, s)
	large := strings.Repeat("x", 2<<20)
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	file, err := parts.CreateFormFile("file", "large")
	if err == nil {
		_, err = file.Write([]byte(large))
	}
	if err != nil || parts.Close() != nil {
		t.Fatal(err)
	}
	forms, uploads := formRoutes(t)
	for _, path := range forms {
		for kind, text := range map[string]string{"application/x-www-form-urlencoded": "x=" + large, parts.FormDataContentType(): body.String()} {
			a := admin.Do(http.MethodPost, path, text, "Content-Type", kind, "Sec-Fetch-Site", "same-origin")
			if a.Status != http.StatusRequestEntityTooLarge || !strings.Contains(a.Body, "the form has more than 2097152 bytes") {
				t.Errorf("%s (%.30s): %d %s", path, kind, a.Status, a.Body)
			}
		}
	}
	for _, path := range uploads { // by what it says that it has: nothing of it is read
		a, err := admin.Stuck(path, 259<<20)
		if err != nil || a.Status != http.StatusRequestEntityTooLarge || !strings.Contains(a.Body, "the file has more than 256 MiB") {
			t.Errorf("%s: %d %s (%v)", path, a.Status, a.Body, err)
		}
	}
	if after := audited(t, s); after != before {
		t.Errorf("%d changes were made", after-before)
	}
}

// A form that does not come holds nothing up: it is answered when its time is over, and nothing is done.
func TestFormsThatDoNotCome(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	admin := s.As("")
	admin.Login("admin") // some forms are for sessions only
	before := audited(t, s)
	forms, _ := formRoutes(t)
	faults := make([]string, len(forms))
	var all sync.WaitGroup
	for i, path := range forms {
		all.Go(func() {
			a, err := admin.Stuck(path, 100)
			if err != nil || a.Status != http.StatusRequestTimeout || !strings.Contains(a.Body, "The form came too slowly. Nothing was done.") {
				faults[i] = fmt.Sprintf("%s: %d %s (%v)", path, a.Status, a.Body, err)
			}
		})
	}
	all.Wait()
	for _, fault := range faults {
		if fault != "" {
			t.Error(fault)
		}
	}
	if after := audited(t, s); after != before {
		t.Errorf("%d changes were made", after-before)
	}
}
