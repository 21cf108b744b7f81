package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/loadtest"
)

// The whole scenario at the least size: a server in a process of its own, whose pages are found by their links.
func TestLoadtestOfPages(t *testing.T) {
	t.Parallel()
	if !pgtest.FullSize() {
		t.Skip("it takes half a minute of a quiet machine; `make scenarios` runs it")
	}
	p := launch(t, nil, "loadtest", "pages", "--finished", "7000", "--ready", "100", "--nodes", "40", "--log-bytes", "100000", "--reads", "3", "--for", "1s", "--json")
	if code := p.exit(); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	var report loadtest.PagesReport
	if err := json.Unmarshal([]byte(p.out.String()), &report); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, page := range report.Pages {
		kinds = append(kinds, page.Page)
		if page.Status != 200 || page.Median <= 0 || page.P95 < page.Median {
			t.Errorf("%+v", page)
		}
	}
	for _, kind := range []string{"/", "/jobs", "/jobs/*", "/jobs/*/log", "/runs/*", "/flows", "/schedules", "/schedules/*", "/dead", "/audit", "/executors", "/api/v1/jobs"} {
		if !slices.Contains(kinds, kind) && !slices.Contains(kinds, kind+"?run") {
			t.Errorf("%s was not visited: %q", kind, kinds)
		}
	}
	if report.Finished != 7000 || report.LiveP50 <= 0 || report.LiveMax < report.LiveP50 || report.Viewers != 10 {
		t.Errorf("%+v", report)
	}
}
