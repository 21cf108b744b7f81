package api_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

// zipped is a zip of files by path.
func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for path, text := range files {
		f, err := w.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const (
	projectFile = "azkaban-flow-version: 2.0\n"
	twoNodes    = "nodes:\n- {name: first, type: command, config: {command: echo hello}}\n- {name: second, type: noop, dependsOn: [first]}\n"
)

// push pushes a project with the flow etl.
func (s *service) push(role access.Role, project string) {
	s.t.Helper()
	s.pushFiles(role, project, map[string]string{"p.project": projectFile, "etl.flow": twoNodes})
}

// pushFiles pushes a project with these files.
func (s *service) pushFiles(role access.Role, project string, files map[string]string) {
	s.t.Helper()
	r := s.ask(s.tokens[role], "POST", "/api/v1/projects/"+project+"/versions", zipped(s.t, files), "Content-Type", "application/zip")
	if r.status != http.StatusCreated {
		s.t.Fatalf("push: %d %s", r.status, r.body)
	}
}

// of makes a user with a role in a project, and returns a token.
func (s *service) of(project string, role access.Role) string {
	s.t.Helper()
	name := project + "-" + role.String()
	if _, err := s.access.AddUser(s.t.Context(), "test", access.NewUser{Name: name, Roles: []access.Grant{{Project: project, Role: role}}}); err != nil {
		s.t.Fatal(err)
	}
	return s.token(access.NewToken{User: name, Role: role})
}

// page is a page of a list.
type page[T any] struct {
	Items      []T
	NextCursor string `json:"next_cursor"`
}

// The cursors lead through all flows that one may see, and through all versions, also while others are pushed.
func TestPagesOfFlowsAndVersions(t *testing.T) {
	t.Parallel()
	s := start(t)
	files := map[string]string{"p.project": projectFile}
	for _, name := range []string{"a", "b", "B", "ä", "z"} {
		files[name+".flow"] = twoNodes
	}
	for _, project := range []string{"sales", "sales-2", "Sales", "hidden", "other"} {
		s.pushFiles(access.Admin, project, files)
	}
	s.push(access.Admin, "one")
	run := do[struct{ Run int64 }](s, access.Operator, 201, "POST", "/api/v1/projects/sales/flows/z/runs", map[string]any{}).Run
	names := func(list []flow.Entry) (all []string) {
		for _, e := range list {
			all = append(all, e.Project+"/"+e.Flow)
			if (e.LastRun != nil && *e.LastRun == run) != (e.Project == "sales" && e.Flow == "z") {
				t.Errorf("%s/%s: last run %v", e.Project, e.Flow, e.LastRun)
			}
		}
		return all
	}
	var want []string
	for _, project := range []string{"Sales", "hidden", "one", "other", "sales", "sales-2"} {
		for _, name := range []string{"B", "a", "b", "z", "ä"} {
			if project != "one" {
				want = append(want, project+"/"+name)
			}
		}
		if project == "one" {
			want = append(want, "one/etl")
		}
	}
	for _, limit := range []int{1, 2, 5, 7, len(want), 1000} {
		if got := names(walk[flow.Entry](s, fmt.Sprintf("/api/v1/flows?limit=%d", limit))); !slices.Equal(got, want) {
			t.Errorf("by %d: %q", limit, got)
		}
		if got := names(walk[flow.Entry](s, fmt.Sprintf("/api/v1/flows?project=sales&limit=%d", limit))); !slices.Equal(got, want[16:21]) {
			t.Errorf("of sales, by %d: %q", limit, got)
		}
	}
	entries := func(r response) (list page[flow.Entry]) {
		if err := json.Unmarshal(r.body, &list); err != nil || r.status != 200 {
			t.Fatalf("%d %s: %v", r.status, r.body, err)
		}
		return list
	}
	token := s.of("other", access.Viewer)
	first := entries(s.ask(token, "GET", "/api/v1/flows?limit=3", nil))
	rest := entries(s.ask(token, "GET", "/api/v1/flows?limit=3&cursor="+first.NextCursor, nil))
	if got := names(append(first.Items, rest.Items...)); !slices.Equal(got, want[11:16]) || rest.NextCursor != "" {
		t.Errorf("the viewer of other sees %q", got)
	}
	if r := s.ask(s.of("unpushed", access.Viewer), "GET", "/api/v1/flows", nil); r.status != 200 || !strings.Contains(string(r.body), `"items":[]`) {
		t.Errorf("the viewer of no project: %d %s", r.status, r.body)
	}
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", "/api/v1/flows?project=none", nil), 404, "not-found", `"none"`)
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", "/api/v1/projects/none/versions", nil), 404, "not-found", `"none"`)
	for range 4 {
		s.push(access.Admin, "one")
	}
	const versions = "/api/v1/projects/one/versions?limit=2"
	newest := do[page[flow.Version]](s, access.Viewer, 200, "GET", versions, nil)
	s.push(access.Admin, "one")
	older := do[page[flow.Version]](s, access.Viewer, 200, "GET", versions+"&cursor="+newest.NextCursor, nil)
	oldest := do[page[flow.Version]](s, access.Viewer, 200, "GET", versions+"&cursor="+older.NextCursor, nil)
	if oldest.NextCursor != "" || len(walk[flow.Version](s, versions)) != 6 {
		t.Errorf("the oldest: %+v", oldest)
	}
	var numbers []int
	for _, v := range slices.Concat(newest.Items, older.Items, oldest.Items) {
		numbers = append(numbers, v.No)
		if v.Project != "one" || v.Flows != 1 {
			t.Errorf("%+v", v)
		}
	}
	if !slices.Equal(numbers, []int{5, 4, 3, 2, 1}) {
		t.Errorf("versions: %v", numbers)
	}
	for _, path := range []string{"/api/v1/flows?cursor=" + newest.NextCursor, versions + "&cursor=" + first.NextCursor} {
		s.problemOf(s.ask(s.tokens[access.Viewer], "GET", path, nil), 422, "bad-cursor", "")
	}
}

func TestFlowsFromPushToKill(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.flows.Start(t.Context())
	defer s.flows.Stop()
	s.push(access.Admin, "sales")
	s.push(access.Admin, "sales")
	if versions := do[page[flow.Version]](s, access.Viewer, 200, "GET", "/api/v1/projects/sales/versions?limit=1", nil); len(versions.Items) != 1 || versions.Items[0].No != 2 ||
		versions.NextCursor == "" || versions.Items[0].PushedBy != "admin" {
		t.Errorf("versions: %+v", versions)
	}
	if flows := do[page[flow.Entry]](s, access.Viewer, 200, "GET", "/api/v1/flows", nil); len(flows.Items) != 1 || flows.Items[0].Flow != "etl" || flows.Items[0].Nodes != 2 {
		t.Errorf("flows: %+v", flows)
	}
	started := do[struct{ Run int64 }](s, access.Operator, 201, "POST", "/api/v1/projects/sales/flows/etl/runs",
		map[string]any{"options": map[string]any{"params": map[string]string{"date": "today"}, "queue": "nobody"}})
	at := fmt.Sprintf("/api/v1/runs/%d", started.Run)
	run := do[flow.RunDetail](s, access.Viewer, 200, "GET", at, nil)
	if run.Project != "sales" || run.CreatedBy != "operator" || len(run.Nodes) != 2 || !strings.Contains(string(run.Options), `"date":"today"`) {
		t.Errorf("run: %+v", run)
	}
	pgtest.Eventually(t, patience, func() bool {
		return do[flow.RunRow](s, access.Viewer, 200, "GET", at, nil).Status == "RUNNING"
	}, "the run's start")
	if why := do[struct{ Why string }](s, access.Viewer, 200, "GET", at+"/why?node=second", nil); !strings.Contains(why.Why, "first") {
		t.Errorf("why: %q", why.Why)
	}
	for _, path := range []string{at + "/graph", "/api/v1/projects/sales/flows/etl/graph?version=1"} {
		r := s.ask(s.tokens[access.Viewer], "GET", path, nil)
		if r.status != http.StatusOK || r.header.Get("Content-Type") != "image/svg+xml" || !bytes.Contains(r.body, []byte("<svg")) ||
			r.header.Get("Content-Security-Policy") != "default-src 'none'" {
			t.Errorf("%s: %d %s", path, r.status, r.header)
		}
	}
	s.problemOf(s.ask(s.tokens[access.Operator], "POST", at+"/retry", nil), 409, "run-live", "has not ended")
	s.problemOf(s.ask(s.tokens[access.Operator], "POST", at+"/resume", nil), 409, "refused", "")
	do[flow.RunRow](s, access.Operator, 200, "POST", at+"/pause", nil)
	do[flow.RunRow](s, access.Operator, 200, "POST", at+"/kill", nil)
	if _, err := s.flows.Ended(t.Context(), started.Run, nil); err != nil {
		t.Fatal(err)
	}
	if list := do[page[flow.RunRow]](s, access.Viewer, 200, "GET", "/api/v1/runs?project=sales&flow=etl&status=KILLED", nil); len(list.Items) != 1 || list.Items[0].ID != started.Run {
		t.Errorf("runs: %+v", list)
	}
	do[flow.RunRow](s, access.Operator, 200, "POST", at+"/succeed", map[string]any{"node": "first"})
	r, err := s.flows.Ended(t.Context(), started.Run, nil)
	if err != nil || r.Status != "SUCCEEDED" {
		t.Errorf("%+v, %v", r, err)
	}
	do[flow.RunRow](s, access.Operator, 200, "POST", at+"/rerun", map[string]any{"nodes": []string{"second"}})
	if r, err = s.flows.Ended(t.Context(), started.Run, nil); err != nil || r.Status != "SUCCEEDED" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestPushRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := start(t)
	push := func(project, body string) response {
		return s.ask(s.tokens[access.Admin], "POST", "/api/v1/projects/"+project, body, "Content-Type", "application/zip")
	}
	s.problemOf(push("p/versions", "no zip"), 422, "invalid-flow", "zip")
	s.problemOf(push("p/versions", ""), 400, "bad-body", "empty")
	s.problemOf(push("b%20d/versions", "x"), 422, "invalid-request", "project name")
	s.problemOf(push("p/versions?time_zone=Europe/Berlin", "x"), 422, "invalid-request", "with_schedule")
	s.problemOf(push("p/versions", zipped(t, map[string]string{"../../evil": "x", "p.project": projectFile, "etl.flow": twoNodes})), 422, "invalid-flow", "evil")
	faults := s.problemOf(push("p/versions", zipped(t, map[string]string{"p.project": projectFile, "a.flow": strings.Replace(twoNodes, "[first]", "[x, y]", 1)})), 422, "invalid-flow", "")
	if len(faults.Errors) < 2 || !strings.Contains(faults.Errors[0].At, "a.flow") {
		t.Errorf("faults: %+v", faults.Errors)
	}
	late := strings.Replace(twoNodes, "nodes:", "trigger: {schedule: {type: cron, value: 0 0 0 31 2 ? *}}\nnodes:", 1)
	s.problemOf(push("p/versions?with_schedule=true", zipped(t, map[string]string{"p.project": projectFile, "a.flow": late})), 422, "invalid-flow", "trigger")
	if r := push("p/versions?check=true", zipped(t, map[string]string{"p.project": projectFile, "etl.flow": twoNodes})); r.status != http.StatusCreated {
		t.Errorf("check: %d %s", r.status, r.body)
	}
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", "/api/v1/projects/p/versions", nil), 404, "not-found", "p")
}

func TestPushWithSchedules(t *testing.T) {
	t.Parallel()
	s := start(t)
	daily := strings.Replace(twoNodes, "nodes:", "trigger: {schedule: {type: cron, value: 0 0 7 * * ?}}\nnodes:", 1)
	r := s.ask(s.tokens[access.Admin], "POST", "/api/v1/projects/sales/versions?with_schedule=true&time_zone=Europe/Berlin",
		zipped(t, map[string]string{"p.project": projectFile, "etl.flow": daily}), "Content-Type", "application/zip")
	if r.status != http.StatusCreated || !bytes.Contains(r.body, []byte(`"name":"sales/etl","change":"created"`)) {
		t.Fatalf("%d %s", r.status, r.body)
	}
	e := do[periodic.Entry](s, access.Viewer, 200, "GET", "/api/v1/schedules/sales%2Fetl", nil)
	if e.Cron != "quartz:0 0 7 * * ?" || e.TimeZone != "Europe/Berlin" || e.NextAt == nil {
		t.Errorf("%+v", e)
	}
	// A version without the flow: the schedule is told of, but where the push pauses it.
	for _, query := range []string{"?check=true", "", "?with_schedule=true"} {
		r := s.ask(s.tokens[access.Admin], "POST", "/api/v1/projects/sales/versions"+query,
			zipped(t, map[string]string{"p.project": projectFile, "other.flow": twoNodes}), "Content-Type", "application/zip")
		if r.status != http.StatusCreated || bytes.Contains(r.body, []byte(`"stranded":[{"name":"sales/etl","flow":"etl","next_at":"`)) != (query != "?with_schedule=true") {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}

// If one schedule of a push is refused, no version is stored and the schedules before it stay as they were.
func TestPushWithARefusedScheduleStoresNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	push := func(hour string) response {
		t.Helper()
		daily := strings.Replace(twoNodes, "nodes:", "trigger: {schedule: {type: cron, value: 0 0 "+hour+" * * ?}}\nnodes:", 1)
		return s.ask(s.tokens[access.Admin], "POST", "/api/v1/projects/p/versions?with_schedule=true",
			zipped(t, map[string]string{"p.project": projectFile, "a.flow": daily, "b.flow": daily}), "Content-Type", "application/zip")
	}
	put := func(name string) {
		t.Helper()
		do[periodic.PutResult](s, access.Admin, 200, "PUT", "/api/v1/schedules/"+url.PathEscape(name), map[string]any{
			"name": name, "cron": "0 3 * * *", "job": map[string]any{"kind": "noop"},
		})
	}
	kept := func() string {
		t.Helper()
		var text string
		if err := s.pool.QueryRow(t.Context(), `SELECT concat_ws(' ', (SELECT count(*) FROM pelton.flow_project), (SELECT count(*) FROM pelton.flow_version),
			(SELECT count(*) FROM pelton.flow_content), (SELECT count(*) FROM pelton.audit), (SELECT string_agg(name || spec::text, ' ' ORDER BY name) FROM pelton.schedule))`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	put("p/b")
	before := kept()
	s.problemOf(push("7"), 409, "refused", "schedule \"p/b\" is there already and starts something else")
	if after := kept(); after != before {
		t.Errorf("of a new project there is\n%s, before it was\n%s", after, before)
	}
	do[periodic.Deleted](s, access.Admin, 200, "DELETE", "/api/v1/schedules/p%2Fb", nil)
	if r := push("7"); r.status != http.StatusCreated {
		t.Fatalf("push: %d %s", r.status, r.body)
	}
	do[periodic.Deleted](s, access.Admin, 200, "DELETE", "/api/v1/schedules/p%2Fb", nil)
	put("p/b")
	before = kept()
	s.problemOf(push("8"), 409, "refused", "p/b")
	if after := kept(); after != before {
		t.Errorf("of the second version there is\n%s, before it was\n%s", after, before)
	}
}

// What belongs to a project is for those of the project.
func TestProjectsAreKeptApart(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.push(access.Admin, "sales")
	s.push(access.Admin, "secret")
	sales, looks := s.of("sales", access.Operator), s.of("sales", access.Viewer)
	runs := map[string]int64{}
	for _, project := range []string{"sales", "secret"} {
		runs[project] = do[struct{ Run int64 }](s, access.Operator, 201, "POST", "/api/v1/projects/"+project+"/flows/etl/runs", map[string]any{}).Run
		do[periodic.PutResult](s, access.Admin, 200, "PUT", "/api/v1/schedules/"+project, map[string]any{
			"name": project, "cron": "0 3 * * *", "flow": map[string]any{"project": project, "flow": "etl"},
		})
	}
	do[periodic.PutResult](s, access.Admin, 200, "PUT", "/api/v1/schedules/plain", map[string]any{"name": "plain", "cron": "0 3 * * *", "job": map[string]any{"kind": "noop"}})
	for path, want := range map[string]string{"/api/v1/flows": `"project":"sales"`, "/api/v1/runs": `"project":"sales"`, "/api/v1/schedules": `"name":"sales"`} {
		r := s.ask(looks, "GET", path, nil)
		if r.status != http.StatusOK || !bytes.Contains(r.body, []byte(want)) || bytes.Contains(r.body, []byte("secret")) || bytes.Contains(r.body, []byte("plain")) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	hidden := []string{
		"GET /api/v1/schedules/secret", "GET /api/v1/schedules/plain", "GET /api/v1/schedules/nothing", "DELETE /api/v1/schedules/secret", "POST /api/v1/schedules/secret/trigger",
		"POST /api/v1/schedules/plain/pause", fmt.Sprintf("GET /api/v1/runs/%d", runs["secret"]), fmt.Sprintf("POST /api/v1/runs/%d/kill", runs["secret"]),
		fmt.Sprintf("GET /api/v1/runs/%d/logs", runs["secret"]), fmt.Sprintf("GET /api/v1/runs/%d", runs["secret"]+100), "GET /api/v1/backfills/77",
	}
	for _, ask := range hidden {
		method, path, _ := strings.Cut(ask, " ")
		s.problemOf(s.ask(sales, method, path, nil), 404, "not-found", "")
	}
	for _, ask := range []string{
		"GET /api/v1/projects/secret/versions", "GET /api/v1/flows?project=secret", "GET /api/v1/runs?project=secret", "GET /api/v1/projects/secret/flows/etl/graph",
		"POST /api/v1/projects/secret/versions", "GET /api/v1/jobs", "GET /api/v1/audit",
	} {
		method, path, _ := strings.Cut(ask, " ")
		s.problemOf(s.ask(sales, method, path, nil), 403, "forbidden", "")
	}
	own := fmt.Sprintf("/api/v1/runs/%d", runs["sales"])
	s.problemOf(s.ask(looks, "POST", own+"/kill", nil), 403, "forbidden", "operator")
	s.problemOf(s.ask(looks, "POST", "/api/v1/schedules/sales/pause", nil), 403, "forbidden", "operator")
	if r := s.ask(sales, "POST", own+"/kill", nil); r.status != http.StatusOK {
		t.Errorf("kill: %d %s", r.status, r.body)
	}
	// Nobody takes a schedule over into, or out of, a project of others, or learns whose a name is.
	rules := s.of("sales", access.Admin)
	into := func(name, project string) map[string]any {
		return map[string]any{"name": name, "cron": "0 3 * * *", "flow": map[string]any{"project": project, "flow": "etl"}}
	}
	s.problemOf(s.ask(rules, "PUT", "/api/v1/schedules/mine", into("mine", "secret")), 403, "forbidden", "")
	s.problemOf(s.ask(rules, "PUT", "/api/v1/schedules/other", map[string]any{"name": "other", "cron": "0 3 * * *", "job": map[string]any{"kind": "noop"}}), 403, "forbidden", "")
	for _, name := range []string{"plain", "secret"} {
		p := s.problemOf(s.ask(rules, "PUT", "/api/v1/schedules/"+name, into(name, "sales")), 409, "exists", "is taken")
		if want := fmt.Sprintf("body.name: the name %q is taken", name); p.Detail != want {
			t.Errorf("%q, want %q", p.Detail, want)
		}
	}
	s.problemOf(s.ask(sales, "PUT", "/api/v1/schedules/sales", into("sales", "sales")), 403, "forbidden", "admin")
	s.problemOf(s.ask(sales, "DELETE", "/api/v1/schedules/sales", nil), 403, "forbidden", "admin")
	// A backfill of others' is not told by the name of its schedule.
	past := time.Now().UTC().AddDate(0, 0, -3)
	b := do[periodic.Backfill](s, access.Operator, 201, "POST", "/api/v1/schedules/secret/backfills", map[string]any{"from": past, "to": past.AddDate(0, 0, 2)})
	for _, id := range []int64{b.ID, b.ID + 1} {
		for _, ask := range []string{"GET /api/v1/backfills/%d", "POST /api/v1/backfills/%d/cancel"} {
			method, path, _ := strings.Cut(fmt.Sprintf(ask, id), " ")
			if p := s.problemOf(s.ask(rules, method, path, nil), 404, "not-found", ""); p.Detail != fmt.Sprintf("there is no backfill %d", id) {
				t.Errorf("%s: %q", path, p.Detail)
			}
		}
	}
	if r := s.ask(rules, "DELETE", "/api/v1/schedules/sales", nil); r.status != http.StatusOK {
		t.Errorf("delete: %d %s", r.status, r.body)
	}
}

func TestSchedulesFromPutToDelete(t *testing.T) {
	t.Parallel()
	s := start(t)
	body := map[string]any{"name": "team/nightly", "cron": "30 2 * * *", "time_zone": "America/New_York", "missed": "all:3", "job": map[string]any{"kind": "noop", "args": map[string]any{"n": 1}}}
	const at = "/api/v1/schedules/team%2Fnightly"
	if r := do[periodic.PutResult](s, access.Admin, 200, "PUT", at, body); r.Change != periodic.Created || r.Schedule.Name != "team/nightly" || r.Schedule.NextAt == nil {
		t.Errorf("%+v", r)
	}
	if r := do[periodic.PutResult](s, access.Admin, 200, "PUT", at, body); r.Change != periodic.Unchanged {
		t.Errorf("%+v", r)
	}
	s.problemOf(s.ask(s.tokens[access.Admin], "PUT", "/api/v1/schedules/x", body), 422, "invalid-request", "not the name in the path")
	body["cron"], body["misssed"] = "61 2 * * *", "skip"
	s.problemOf(s.ask(s.tokens[access.Admin], "PUT", at, body), 422, "invalid-request", `did you mean "missed"?`)
	delete(body, "misssed")
	s.problemOf(s.ask(s.tokens[access.Admin], "PUT", at, body), 422, "invalid-schedule", "61")
	preview := do[struct{ Ticks []struct{ At, Note string } }](s, access.Viewer, 200, "POST", "/api/v1/schedules/preview",
		map[string]any{"cron": "30 2 * * *", "time_zone": "America/New_York", "from": "2026-03-07T12:00:00Z", "number": 2})
	if len(preview.Ticks) != 2 || preview.Ticks[0].At != "2026-03-08T03:00:00-04:00" || preview.Ticks[0].Note != "moved" {
		t.Errorf("%+v", preview)
	}
	do[periodic.Entry](s, access.Operator, 200, "POST", at+"/pause", nil)
	if list := do[page[periodic.Entry]](s, access.Viewer, 200, "GET", "/api/v1/schedules?paused=true&prefix=team/", nil); len(list.Items) != 1 || list.Items[0].PausedBy != "operator" {
		t.Errorf("%+v", list)
	}
	if e := do[periodic.Entry](s, access.Operator, 200, "POST", at+"/resume", nil); e.PausedAt != nil {
		t.Errorf("%+v", e)
	}
	// Under a key the second request starts nothing.
	var jobIDs []int64
	for i := range 2 {
		r := s.ask(s.tokens[access.Operator], "POST", at+"/trigger", nil, "Idempotency-Key", "once")
		if replayed := r.header.Get("Idempotent-Replayed"); r.status != 200 || (replayed == "true") != (i == 1) {
			t.Fatalf("%d %s %s", r.status, replayed, r.body)
		}
	}
	do[periodic.Triggered](s, access.Operator, 200, "POST", at+"/trigger", nil)
	ticks := do[page[periodic.TickState]](s, access.Viewer, 200, "GET", at+"/ticks?limit=1&source=trigger", nil)
	for {
		for _, tick := range ticks.Items {
			jobIDs = append(jobIDs, *tick.JobID)
			if tick.State != "available" || tick.Actor != "operator" {
				t.Errorf("%+v", tick)
			}
		}
		if ticks.NextCursor == "" {
			break
		}
		ticks = do[page[periodic.TickState]](s, access.Viewer, 200, "GET", at+"/ticks?limit=1&source=trigger&cursor="+ticks.NextCursor, nil)
	}
	if len(jobIDs) != 2 || jobIDs[0] == jobIDs[1] {
		t.Errorf("jobs %v, want two", jobIDs)
	}
	past := time.Now().UTC().AddDate(0, 0, -3)
	b := do[periodic.Backfill](s, access.Operator, 201, "POST", at+"/backfills", map[string]any{"from": past, "to": past.AddDate(0, 0, 2)})
	if b.Total != 2 || b.CreatedBy != "operator" {
		t.Errorf("%+v", b)
	}
	s.problemOf(s.ask(s.tokens[access.Operator], "POST", at+"/backfills", map[string]any{"from": past, "to": past.Add(-time.Hour)}), 422, "invalid-request", "")
	if got := do[periodic.Backfill](s, access.Operator, 200, "POST", fmt.Sprintf("/api/v1/backfills/%d/cancel", b.ID), nil); got.Status != periodic.BackfillCancelled {
		t.Errorf("%+v", got)
	}
	if list := do[page[periodic.Backfill]](s, access.Viewer, 200, "GET", at+"/backfills", nil); len(list.Items) != 1 {
		t.Errorf("%+v", list)
	}
	// Whoever says which version they change does not overwrite another.
	tag := s.ask(s.tokens[access.Viewer], "GET", at, nil).header.Get("ETag")
	body["cron"] = "40 2 * * *"
	if r := s.ask(s.tokens[access.Admin], "PUT", at, body, "If-Match", tag); r.status != 200 || r.header.Get("ETag") != strings.TrimSuffix(tag, `.1"`)+`.2"` {
		t.Errorf("with the tag %s: %d %s, %s", tag, r.status, r.header.Get("ETag"), r.body)
	}
	s.problemOf(s.ask(s.tokens[access.Admin], "PUT", at, body, "If-Match", tag), 412, "changed-meanwhile", "its version is 2, not 1")
	s.problemOf(s.ask(s.tokens[access.Admin], "PUT", at, body, "If-Match", "W/x"), 422, "invalid-request", "header.If-Match")
	s.problemOf(s.ask(s.tokens[access.Admin], "PUT", at, body, "If-Match", `"0.1"`), 422, "invalid-request", "want ID.VERSION")
	do[periodic.Deleted](s, access.Admin, 200, "DELETE", at, nil)
	second := strings.TrimSuffix(tag, `.1"`) + `.2"`
	s.problemOf(s.ask(s.tokens[access.Admin], "PUT", at, body, "If-Match", second), 412, "changed-meanwhile", "it was deleted meanwhile")
	// Nor one that was made under its name after a delete, though it has the same version.
	if r := s.ask(s.tokens[access.Admin], "PUT", at, body); r.status != 200 || r.header.Get("ETag") == tag {
		t.Errorf("made again: %d, ETag %s", r.status, r.header.Get("ETag"))
	}
	s.problemOf(s.ask(s.tokens[access.Admin], "PUT", at, body, "If-Match", tag), 412, "changed-meanwhile", "another one made under its name")
	do[periodic.Deleted](s, access.Admin, 200, "DELETE", at, nil)
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", at, nil), 404, "not-found", "team/nightly")
}

// Who may start runs and not push runs the programs that were pushed, and no others.
func TestOperatorsRunWhatWasPushed(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.push(access.Admin, "sales")
	operator, admin := s.of("sales", access.Operator), s.of("sales", access.Admin)
	const at = "/api/v1/projects/sales/flows/etl/runs"
	for _, name := range []string{"command", "command.1", "env.PATH", "env.LD_PRELOAD", "working.dir", "jvm.args", "main.args", "classpath", "java.class"} {
		for _, options := range []map[string]any{{"params": map[string]string{name: "x"}}, {"node_params": map[string]any{"first": map[string]string{name: "x"}}}} {
			s.problemOf(s.ask(operator, "POST", at, map[string]any{"options": options}), 403, "forbidden", name)
		}
	}
	// Nor do they say where the server sends to.
	for _, list := range []string{"success", "failure", "first_failure"} {
		options := map[string]any{"notify": map[string]any{list: []string{"http://169.254.169.254/"}}}
		s.problemOf(s.ask(operator, "POST", at, map[string]any{"options": options}), 403, "forbidden", "notices would go to http://169.254.169.254/, whom the flow does not name")
		if r := s.ask(admin, "POST", at, map[string]any{"options": options}); r.status != http.StatusCreated {
			t.Errorf("%v: %d %s", options, r.status, r.body)
		}
	}
	for who, options := range map[string]map[string]any{
		operator: {"params": map[string]string{"date": "today", "commander": "x", "environment": "y"}}, admin: {"node_params": map[string]any{"first": map[string]string{"command": "true"}}},
	} {
		if r := s.ask(who, "POST", at, map[string]any{"options": options}); r.status != http.StatusCreated {
			t.Errorf("%v: %d %s", options, r.status, r.body)
		}
	}
}
