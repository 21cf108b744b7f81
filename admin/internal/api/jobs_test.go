package api_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
)

// jobPage is a page of jobs.
type jobPage struct {
	Items         []document.Job
	NextCursor    string  `json:"next_cursor"`
	SearchedSince *string `json:"searched_since"`
}

// enqueue enqueues jobs with these fields beside kind, and returns their ids.
func (s *service) enqueue(list ...map[string]any) []int64 {
	s.t.Helper()
	for _, j := range list {
		if j["kind"] == nil {
			j["kind"] = "noop"
		}
	}
	many := do[struct{ Jobs []struct{ ID int64 } }](s, access.Operator, http.StatusCreated, "POST", "/api/v1/jobs/many", map[string]any{"jobs": list})
	ids := make([]int64, len(many.Jobs))
	for i, j := range many.Jobs {
		ids[i] = j.ID
	}
	return ids
}

func idsOf(list []document.Job) []int64 {
	var ids []int64
	for _, j := range list {
		ids = append(ids, j.ID)
	}
	return ids
}

func TestJobsListFilters(t *testing.T) {
	t.Parallel()
	s := start(t)
	ids := s.enqueue(
		map[string]any{"kind": "a", "queue": "q1", "tags": []string{"red", "big"}, "args": map[string]any{"customer": 7}},
		map[string]any{"kind": "b", "queue": "q2", "tags": []string{"red"}, "priority": 3, "at": "2999-01-01T00:00:00Z"},
		map[string]any{"kind": "a", "queue": "q2", "pending": true, "metadata": map[string]any{"origin": "x"}},
	)
	for query, want := range map[string][]int{
		"":                              {0, 1, 2},
		"desc=true":                     {2, 1, 0},
		"kind=a":                        {0, 2},
		"kind=a&kind=b":                 {0, 1, 2},
		"kind=a&queue=q2":               {2},
		"state=scheduled&state=pending": {1, 2},
		"tag=red":                       {0, 1},
		"tag=red&tag=big":               {0},
		"tag_any=big&tag_any=none":      {0},
		"priority=3":                    {1},
		"since=2000-01-01T00:00:00Z":    {0, 1, 2},
		"until=2000-01-01T00:00:00Z":    {},
		"args=" + url.QueryEscape(`{"customer":7}`):                            {0},
		"metadata=" + url.QueryEscape(`{"origin":"x"}`):                        {2},
		fmt.Sprintf("id=%d&id=%d", ids[1], ids[2]):                             {1, 2},
		"order=scheduled_at&desc=true&limit=1&since=" + "2000-01-01T00:00:00Z": {1},
	} {
		got := do[jobPage](s, access.Viewer, http.StatusOK, "GET", "/api/v1/jobs?"+query, nil)
		var wanted []int64
		for _, i := range want {
			wanted = append(wanted, ids[i])
		}
		if !slices.Equal(idsOf(got.Items), wanted) {
			t.Errorf("%s: %v, want %v", query, idsOf(got.Items), wanted)
		}
	}
	for query, says := range map[string]string{
		"knid=a":                           `did you mean "kind"`,
		"kind=":                            "empty",
		"limit=1&limit=2":                  "given 2 times",
		"limit=0":                          "query.limit",
		"limit=1001":                       "query.limit",
		"limit=x":                          "query.limit",
		"state=gone":                       "query.state",
		"since=yesterday":                  "query.since",
		"args=%7B":                         "query.args: not JSON",
		"kind=%00":                         "no text",
		"kind=%ff":                         "no text",
		"kind=%zz":                         "cannot be read",
		"order=finalized_at&state=running": "have ended",
		"id=9223372036854775808":           "query.id",
	} {
		r := s.ask(s.tokens[access.Viewer], "GET", "/api/v1/jobs?"+query, nil)
		s.problemOf(r, http.StatusUnprocessableEntity, "invalid-request", says)
	}
}

func TestJobsGet(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.enqueue(map[string]any{"args": map[string]any{"big": 12345678901234567}})[0]
	job := do[document.JobDetail](s, access.Viewer, http.StatusOK, "GET", fmt.Sprintf("/api/v1/jobs/%d", id), nil)
	if job.ID != id || job.State != "available" || string(job.Args) != `{"big":12345678901234567}` || job.Runs == nil || job.Logs == nil {
		t.Errorf("%+v", job)
	}
	for path, kind := range map[string]string{"/api/v1/jobs/7": "not-found", "/api/v1/jobs/7/runs": "not-found"} {
		s.problemOf(s.ask(s.tokens[access.Viewer], "GET", path, nil), http.StatusNotFound, kind, "7")
	}
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", "/api/v1/jobs/x", nil), http.StatusUnprocessableEntity, "invalid-request", "path.id")
}

// Whoever follows the cursors sees every job exactly once, in each order.
func TestCursorsFindEverythingOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	var list []map[string]any
	for i := range 57 {
		list = append(list, map[string]any{"at": fmt.Sprintf("2999-01-01T00:00:%02dZ", i%7)})
	}
	want := s.enqueue(list...)
	for _, query := range []string{"limit=10", "limit=10&desc=true", "limit=9&order=scheduled_at", "limit=57", "limit=1000", "limit=1&order=time&state=scheduled"} {
		var got []int64
		for path := "/api/v1/jobs?" + query; path != ""; {
			page := do[jobPage](s, access.Viewer, http.StatusOK, "GET", path, nil)
			got = append(got, idsOf(page.Items)...)
			path = ""
			if page.NextCursor != "" {
				path = "/api/v1/jobs?" + query + "&cursor=" + url.QueryEscape(page.NextCursor)
			}
			if len(got) > len(want) {
				break
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d jobs, want the %d that there are", query, len(got), len(want))
		}
	}
	page := do[jobPage](s, access.Viewer, http.StatusOK, "GET", "/api/v1/jobs?limit=1", nil)
	forged := func(inner string) string { // as a list's cursor is made, around a job list's own
		made, err := base64.RawURLEncoding.DecodeString(page.NextCursor)
		if err != nil {
			t.Fatal(err)
		}
		own := regexp.MustCompile(`"[\w-]+=*"`).FindAll(made, -1)
		return base64.RawURLEncoding.EncodeToString(bytes.Replace(made, own[len(own)-1], []byte(`"`+base64.URLEncoding.EncodeToString([]byte(inner))+`"`), 1))
	}
	for _, query := range []string{
		"order=scheduled_at&cursor=" + page.NextCursor, "cursor=x", "cursor=" + page.NextCursor[1:],
		"cursor=" + forged(`{"id":1,"order":"finalized_at"}`), "cursor=" + forged(`{"id":1,"order":"x"}`), "cursor=" + forged(`{"id":"x"}`),
	} {
		s.problemOf(s.ask(s.tokens[access.Viewer], "GET", "/api/v1/jobs?"+query, nil), http.StatusUnprocessableEntity, "bad-cursor", "cursor")
	}
}

// Who enqueues by the API is named in the audit, in the transaction that enqueues, without the args.
func TestEnqueuingIsAudited(t *testing.T) {
	t.Parallel()
	s := start(t)
	one := do[document.EnqueuedJob](s, access.Operator, 201, "POST", "/api/v1/jobs", `{"kind":"mail","args":{"to":"SECRET"},"unique_key":"k"}`)
	do[document.EnqueuedJob](s, access.Operator, 201, "POST", "/api/v1/jobs", `{"kind":"mail","unique_key":"k"}`)
	do[struct{ Enqueued int }](s, access.Admin, 201, "POST", "/api/v1/jobs/many", `{"jobs":[{"kind":"b","args":{"a":"SECRET"}},{"kind":"a","queue":"etl"},{"kind":"a"},{"kind":"mail","unique_key":"k"}]}`)
	s.ask(s.tokens[access.Operator], "POST", "/api/v1/jobs/many", `{"jobs":[{"kind":"b"},{"kind":"a","queue":"No Queue"}]}`)
	s.enqueue(map[string]any{})
	entries := do[struct{ Items []document.AuditEntry }](s, access.Viewer, 200, "GET", "/api/v1/audit?action=job.enqueue", nil).Items
	var told []string
	for _, e := range entries {
		told = append(told, fmt.Sprintf("%s %s %s", e.Actor, e.Target, regexp.MustCompile(`\d{5,}`).ReplaceAllString(string(e.After), "ID")))
	}
	want := []string{
		fmt.Sprintf(`operator %d {"ids":[ID],"jobs":1,"kinds":["mail"],"queues":["default"]}`, one.ID),
		`admin jobs {"ids":[ID,ID,ID],"jobs":3,"kinds":["a","b"],"queues":["default","etl"]}`,
	}
	slices.Reverse(told)
	if len(told) < 2 || !slices.Equal(told[:2], want) {
		t.Errorf("%q, want %q", told, want)
	}
	// A change of args says that they are other, and how large: what they are is not the audit's to keep.
	at := fmt.Sprintf("/api/v1/jobs/%d", one.ID)
	for _, args := range []string{`{"to":"HIDDEN"}`, `{"to":"HIDDEN"}`} {
		do[document.Job](s, access.Operator, 200, "PATCH", at, `{"args":`+args+`}`)
	}
	entries = do[struct{ Items []document.AuditEntry }](s, access.Viewer, 200, "GET", "/api/v1/audit?action=job.update", nil).Items
	if len(entries) != 2 || !strings.Contains(string(entries[1].Before), `"args_bytes":15`) || !strings.Contains(string(entries[1].After), `"args_changed":true`) ||
		!strings.Contains(string(entries[0].After), `"args_changed":false`) || strings.Contains(string(entries[1].Before)+string(entries[1].After), "HIDDEN") {
		t.Errorf("%+v", entries)
	}
}
