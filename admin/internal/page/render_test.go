package page_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/periodic"
)

// What is stored may be as far away, and as deep, as its types allow: pages show it all the same, and stay small.
func TestOddThingsAreShown(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	deep := []byte(`{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`)
	job, err := s.Jobs.Insert(t.Context(), jobs.RawArgs{JobKind: "deep", JSON: deep}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := job.Job.ID
	s.Exec(`INSERT INTO pelton.audit (actor, action, target, after) SELECT 'deep', 'job.update', '7', args::jsonb FROM pelton.job`)
	s.Exec(`INSERT INTO pelton.job_dead (job_id, created_at, priority, max_attempts, attempt, reason, kind, queue, args, attempts)
		SELECT id, now(), 1, 1, 1, 'exhausted', kind, queue, args, '[]' FROM pelton.job`)
	s.Exec(`SELECT pelton.enqueue('far', run_at => '9999-12-31 23:59:59+00')`)
	far := time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC)
	put(t, s, periodic.Schedule{Name: "far", At: &far, Job: &periodic.JobTarget{Kind: "far", Args: json.RawMessage(deep)}},
		periodic.Schedule{Name: "late", Cron: "@daily", StartAt: &far, Job: &periodic.JobTarget{Kind: "far"}})
	s.Exec(`UPDATE pelton.executor SET beat_at = '-infinity'`)
	viewer := s.As("viewer")
	for _, path := range []string{
		"/jobs", fmt.Sprintf("/jobs/%d", id), fmt.Sprintf("/dead/%d", id), "/dead", "/audit?actor=deep", "/schedules", "/schedules/far", "/schedules/late", "/executors?ended=1", "/",
	} {
		if a := viewer.Want(200, path); len(a.Body) > 1<<20 {
			t.Errorf("%s has %d bytes", path, len(a.Body))
		}
	}
	s.As("admin").WantPost(422, "/schedule", url.Values{"name": {".."}, "by": {"cron"}, "cron": {"@daily"}, "starts": {"job"}, "kind": {"noop"}, "do": {"save"}}, "no browser")
}

// The key Enter presses the first button of a form. Where a form has several, that one does nothing, or nothing yet.
func TestEnterDoesNothingYet(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	form, button := regexp.MustCompile(`(?s)<form\b.*?</form>`), regexp.MustCompile(`<button\b[^>]*>|\{\{template "noEnter"\}\}`)
	harmless := regexp.MustCompile(`noEnter|name="check"|value="show"|/confirm/`)
	several := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range form.FindAllString(string(text), -1) {
			buttons := button.FindAllString(f, -1)
			if len(buttons) < 2 {
				continue
			}
			several++
			if first := buttons[0]; !harmless.MatchString(first) {
				t.Errorf(`%s: Enter presses %s: put {{template "noEnter"}} first, or a button that changes nothing`, name, first)
			}
		}
	}
	if several < 5 {
		t.Errorf("%d forms of several buttons were found", several)
	}
}
