package page_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs/flow"
)

var aForm = regexp.MustCompile(`<form[^>]*>`)

// A viewer gets no form that does something, on no page, but to their own account.
func TestViewerGetsNoActions(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	shots := furnish(t, s)
	pushFlow(t, s, "etl")
	run, err := s.Flows.Run(t.Context(), flow.RunParams{Project: "etl", Flow: "daily"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flows.Ended(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/flows", "/flows/etl", "/flows/etl/daily?node=0", "/runs", "/runs/1", "/runs/1/gantt", "/runs/1/logs?q=a", "/runs/1/nodes/0", "/runs/1/confirm/rerun?node=0"} {
		shots = append(shots, shot{"", path})
	}
	viewer, admin := s.As("viewer"), s.As("admin")
	acts := func(body string) (list []string) {
		for _, form := range aForm.FindAllString(body, -1) {
			if !strings.Contains(form, `role="search"`) && !strings.Contains(form, `class="row filter"`) && !strings.Contains(form, `action="/logout"`) {
				list = append(list, form)
			}
		}
		return list
	}
	offered := 0
	for _, one := range shots {
		a := viewer.Get(one.path)
		if a.Status != 200 && a.Status != 403 && one.path != "/nothing" {
			t.Errorf("%s: %d", one.path, a.Status)
		}
		if forms := acts(a.Body); len(forms) > 0 && one.path != "/account" {
			t.Errorf("%s offers a viewer %q", one.path, forms)
		}
		offered += len(acts(admin.Get(one.path).Body))
	}
	if offered < 30 {
		t.Errorf("an admin is offered %d forms: the test looks at hardly anything", offered)
	}
}
