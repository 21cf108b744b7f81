package page

import (
	"cmp"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/jobs/flow"
)

// The form of a run like another asks for just what that one was asked for: no option is lost on the way through it.
func TestAFormLikeARunHasAllItsOptions(t *testing.T) {
	t.Parallel()
	options := flow.Options{
		Params:     map[string]string{"day": "2026-02-01", "more": "a=b"},
		NodeParams: map[string]map[string]string{"a": {"of": "x"}},
		Disabled:   []string{"a"}, OnFailure: flow.FinishPossible, OnCancelledEnd: flow.EndKilled, MaxParallel: 3, Concurrent: flow.Pipeline2, Priority: 7, Queue: "etl", JobPriority: 2,
		SLAs:   []flow.SLA{{Node: "a", Within: flow.Duration(time.Hour), Succeed: true, Alert: true, Kill: true}},
		Notify: flow.Notify{Success: []string{"s@example.com"}, Failure: []string{"f@example.com"}, FirstFailure: []string{"n@example.com"}},
	}
	// Who adds an option sets it above, and gives the form a field for it.
	for value, i := reflect.ValueOf(options), 0; i < value.NumField(); i++ {
		if value.Field(i).IsZero() {
			t.Fatalf("option %s is not set: nothing tells whether the form has it", value.Type().Field(i).Name)
		}
	}
	graph := &flow.Graph{Name: "f", Config: map[string]string{"day": "2026-01-31"}, Nodes: []flow.GraphNode{{Path: "a", Type: "noop"}}}
	data := &flowPage{Project: "p", Flow: "f", Form: newRunForm(graph)}
	data.Form.fill(options)
	shown, err := execute("flow", "runForm", view{Actor: &access.Actor{}, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(sentBy(string(shown)).Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := r.ParseForm(); err != nil {
		t.Fatal(err)
	}
	again := newRunForm(graph)
	if got := again.parse(r); !reflect.DeepEqual(got, options) || len(again.Faults) > 0 {
		t.Errorf("the form asks for\n%+v\nwant\n%+v\n(faults %v)", got, options, again.Faults)
	}
}

var (
	inputTag  = regexp.MustCompile(`<input\b[^>]*>`)
	areaTag   = regexp.MustCompile(`<textarea name="([^"]*)"[^>]*>([^<]*)`)
	selectTag = regexp.MustCompile(`(?s)<select name="([^"]*)">(.*?)</select>`)
	chosenTag = regexp.MustCompile(`<option(?: value="([^"]*)")? selected>([^<]*)`)
	attribute = regexp.MustCompile(`(name|value)="([^"]*)"`)
)

// sentBy is what a browser would send of a form.
func sentBy(page string) url.Values {
	sent := url.Values{}
	for _, tag := range inputTag.FindAllString(page, -1) {
		of := map[string]string{}
		for _, a := range attribute.FindAllStringSubmatch(tag, -1) {
			of[a[1]] = html.UnescapeString(a[2])
		}
		switch {
		case !strings.Contains(tag, `type="checkbox"`):
			sent.Set(of["name"], of["value"])
		case strings.Contains(tag, " checked") && of["value"] == "":
			sent.Set(of["name"], "on")
		case strings.Contains(tag, " checked"):
			sent.Add(of["name"], of["value"])
		}
	}
	for _, tag := range areaTag.FindAllStringSubmatch(page, -1) {
		sent.Set(tag[1], html.UnescapeString(strings.TrimPrefix(tag[2], "\n")))
	}
	for _, tag := range selectTag.FindAllStringSubmatch(page, -1) {
		if chosen := chosenTag.FindStringSubmatch(tag[2]); chosen != nil {
			sent.Set(tag[1], html.UnescapeString(cmp.Or(chosen[1], chosen[2])))
		}
	}
	return sent
}
