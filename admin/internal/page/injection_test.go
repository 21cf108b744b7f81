package page_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

// What SQL would take for its own finds nothing by any text filter of any list, and changes nothing where a filter says which dead letters are meant.
func TestInjectionsFindNothing(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	admin := s.As("admin")
	pushFlow(t, s, "sales")
	put(t, s, nightly("etl"))
	admin.WantPost(303, "/flows/sales/daily/run", nil)
	s.Exec(`SELECT pelton.enqueue('waits', '[1]', queue => 'mail', tags => '{red}')`)
	s.Exec(`INSERT INTO pelton.job_dead (job_id, created_at, priority, max_attempts, attempt, reason, kind, queue, args, attempts)
		SELECT n, now(), 1, 1, 1, 'exhausted', 'broken', 'mail', '{}', '[]' FROM generate_series(1, 3) n`)
	injections := []string{`'`, `' OR '1'='1`, `') OR ('1'='1`, `' OR 1=1 --`, `"`, `\`, `%`, `_`, `*`}
	form := regexp.MustCompile(`(?s)<form[^>]*role="search".*?</form>`)
	field := regexp.MustCompile(`<input( type="search")? name="([a-z_]+)"`)
	rows := func(a pagetest.Answer) int {
		return strings.Count(form.ReplaceAllString(a.Body, ""), `<th scope="row"`)
	}
	tried := map[string]bool{}
	for _, path := range []string{"/jobs", "/dead", "/audit", "/schedules", "/runs", "/flows", "/admin", "/admin/tokens"} {
		all := admin.Want(200, path)
		for _, name := range field.FindAllStringSubmatch(form.FindString(all.Body), -1) {
			filter := name[2]
			if filter == "since" || filter == "until" || filter == "id" {
				continue // times and numbers, which are read before anything is asked
			}
			tried[path+" "+filter] = true
			if rows(all) == 0 {
				t.Errorf("%s shows nothing that could be found", path)
			}
			for _, value := range injections {
				a := admin.Get(path + "?" + filter + "=" + url.QueryEscape(value))
				if a.Status >= http.StatusInternalServerError || a.Status == http.StatusOK && rows(a) > 0 {
					t.Errorf("%s?%s=%s: %d, %d rows", path, filter, value, a.Status, rows(a))
				}
			}
		}
	}
	for _, want := range []string{
		"/jobs kind", "/jobs queue", "/jobs tag", "/jobs args", "/dead kind", "/dead queue", "/audit actor", "/audit action", "/audit target",
		"/schedules prefix", "/schedules kind", "/schedules flow", "/admin q",
	} {
		if !tried[want] {
			t.Errorf("%s was not tried: %v", want, tried)
		}
	}
	for _, verb := range []string{"redrive", "discard"} {
		for _, filter := range []string{"kind", "queue", "reason"} {
			for _, value := range injections {
				if a := admin.Post("/dead/"+verb, url.Values{"all": {"1"}, filter: {value}}); a.Status >= http.StatusInternalServerError {
					t.Errorf("%s of %s %s: %d %.300s", verb, filter, value, a.Status, a.Body)
				}
			}
		}
	}
	var left int
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.job_dead`).Scan(&left); err != nil || left != 3 {
		t.Errorf("%d of 3 dead letters are left (%v)", left, err)
	}
}
