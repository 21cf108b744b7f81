package page_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/periodic"
)

// house is a site that works jobs of kind test; what they do is decided by the node's path.
type house struct {
	*pagetest.Site

	mu    sync.Mutex
	does  map[string]func(ctx context.Context) (map[string]string, error)
	gates map[string]chan struct{}
}

func newHouse(t *testing.T, options pagetest.Options) *house {
	t.Helper()
	h := &house{does: map[string]func(context.Context) (map[string]string, error){}, gates: map[string]chan struct{}{}}
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, &flowtest.Worker{Decide: func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		h.mu.Lock()
		do := h.does[j.Node.Path]
		h.mu.Unlock()
		if do == nil {
			return nil, nil //nolint:nilnil // no outputs
		}
		return do(ctx)
	}})
	options.Jobs = jobs.Config{
		Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 20}}, Workers: workers, Heartbeat: 50 * time.Millisecond, PollInterval: 100 * time.Millisecond,
	}
	h.Site = pagetest.Start(t, options)
	return h
}

// do says what jobs of a node do.
func (h *house) do(node string, what func(ctx context.Context) (map[string]string, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.does[node] = what
}

// wait has jobs of a node wait until open.
func (h *house) wait(node string) (open func()) {
	gate := make(chan struct{})
	h.do(node, func(ctx context.Context) (map[string]string, error) {
		select {
		case <-gate:
			return nil, nil //nolint:nilnil // no outputs
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	return sync.OnceFunc(func() { close(gate) })
}

// push stores flows of a project.
func (h *house) push(t *testing.T, project string, builders ...*flow.Builder) {
	t.Helper()
	var flows []*flow.Flow
	for _, b := range builders {
		f, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		flows = append(flows, f)
	}
	if _, err := h.Flows.PushFlows(t.Context(), project, flows...); err != nil {
		t.Fatal(err)
	}
}

func (h *house) start(t *testing.T, project, name string, options flow.Options) int64 {
	t.Helper()
	run, err := h.Flows.Run(t.Context(), flow.RunParams{Project: project, Flow: name, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (h *house) ended(t *testing.T, run int64, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pagetest.Patience)
	defer cancel()
	r, err := h.Flows.Ended(ctx, run, nil)
	if err != nil || r.Status != want {
		t.Fatalf("the run ended as %+v, want %s (%v)", r, want, err)
	}
}

// status waits until a node has a status.
func (h *house) status(t *testing.T, run int64, node, want string) {
	t.Helper()
	pgtest.Eventually(t, pagetest.Patience, func() bool {
		r, err := h.Flows.Get(t.Context(), run)
		if err != nil {
			return false
		}
		for _, n := range r.Nodes {
			if n.Path == node && n.Status == want {
				return true
			}
		}
		return false
	}, "%s is %s", node, want)
}

func testArgs(name string) flowtest.Args { return flowtest.Args{"name": name} }

// zipped makes a zip of files: pairs of names and contents.
func zipped(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bomb makes a small zip whose one file says that it unpacks to 2 GiB.
func bomb(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "zeros", Method: zip.Deflate, UncompressedSize64: 2 << 30, CompressedSize64: 2})
	if err == nil {
		_, err = w.Write([]byte{3, 0}) // the shortest end of what was packed
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// upload sends a zip by a form; project is in the form unless it is "".
func upload(t *testing.T, v *pagetest.Visitor, path, project string, data []byte) pagetest.Answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if project != "" {
		if err := form.WriteField("project", project); err != nil {
			t.Fatal(err)
		}
	}
	w, err := form.CreateFormFile("zip", "x.zip")
	if err == nil {
		_, err = w.Write(data)
	}
	if err = errors.Join(err, form.Close()); err != nil {
		t.Fatal(err)
	}
	return v.Do(http.MethodPost, path, body.String(), "Content-Type", form.FormDataContentType(), "Sec-Fetch-Site", "same-origin")
}

const (
	projectFile = "azkaban-flow-version: 2.0\n"
	flowFile    = `
config: {day: 2026-01-31}
nodes:
  - {name: extract, type: noop}
  - {name: load, type: noop, dependsOn: [extract], config: {table: "t_${day}_${part}"}}
`
)

func TestUploadOfAProject(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // not parallel: what is left there is looked at
	s := pagetest.Start(t, pagetest.Options{})
	admin, operator, etl := s.As("admin"), s.As("operator"), s.As("etl")
	good := zipped(t, "p.project", projectFile, "nightly.flow", flowFile)
	if a := upload(t, admin, "/flows/push", "shop", good); a.Status != http.StatusSeeOther || a.Header.Get("Location") != "/flows/shop" {
		t.Fatalf("upload: %d %s", a.Status, a.Body)
	}
	admin.Want(200, "/flows/shop", "Stored version 1 of shop: 1 flow, 2 nodes.", "nightly", "by admin")
	if a := upload(t, admin, "/flows/shop/push", "", good); a.Status != http.StatusSeeOther {
		t.Errorf("the next version: %d %s", a.Status, a.Body)
	}
	for i := range 5 {
		put(t, s, periodic.Schedule{Name: fmt.Sprintf("daily%d", i), Cron: "0 3 * * *", Flow: &periodic.FlowTarget{Project: "shop", Flow: "nightly"}})
	}
	renamed := zipped(t, "p.project", projectFile, "weekly.flow", flowFile)
	if a := upload(t, admin, "/flows/shop/push", "", renamed); a.Status != http.StatusSeeOther {
		t.Errorf("with a flow renamed: %d %s", a.Status, a.Body)
	}
	admin.Want(200, "/flows/shop", "Note: schedule daily0 runs flow nightly, which this version lacks: its next tick, at ", "schedule daily2 runs", "So will those of 2 other schedules.")
	for what, refused := range map[string]struct {
		answer pagetest.Answer
		status int
		says   string
	}{
		"faults":        {upload(t, admin, "/flows/push", "bad", zipped(t, "p.project", projectFile, "f.flow", "nodes:\n  - {name: <b>, type: nowhere}\n")), 422, "nowhere"},
		"traversal":     {upload(t, admin, "/flows/push", "bad", zipped(t, "p.project", projectFile, "../../etc/x.flow", flowFile)), 422, "../../etc/x.flow"},
		"a bomb":        {upload(t, admin, "/flows/push", "bad", bomb(t)), 422, "zeros: has 2147483648 bytes, at most 1073741824 are allowed"},
		"no zip":        {upload(t, admin, "/flows/push", "bad", []byte("hello")), 400, "not a zip"},
		"a bad name":    {upload(t, admin, "/flows/push", "../x", good), 400, "project name"},
		"no name":       {upload(t, admin, "/flows/push", "", good), 400, "name before the file"},
		"no form":       {admin.Do("POST", "/flows/push", "x", "Sec-Fetch-Site", "same-origin"), 400, "want a form"},
		"an operator":   {upload(t, operator, "/flows/shop/push", "", good), 403, ""},
		"of a project":  {upload(t, etl, "/flows/etl/push", "", good), 403, ""},
		"another page":  {admin.Do("POST", "/flows/push", "", "Sec-Fetch-Site", "cross-site"), 403, ""},
		"not logged in": {s.As("").Do("POST", "/flows/push", "", "Sec-Fetch-Site", "same-origin"), 401, ""},
	} {
		if refused.answer.Status != refused.status || !strings.Contains(refused.answer.Body, refused.says) || strings.Contains(refused.answer.Body, "<b>,") {
			t.Errorf("%s: %d %s", what, refused.answer.Status, refused.answer.Body)
		}
	}
	admin.Want(404, "/flows/bad")
	// Who is admin of a project may make it, and pushes to no other.
	if err := s.Access.SetRole(t.Context(), "test", "etl", access.Grant{Project: "etl", Role: access.Admin}); err != nil {
		t.Fatal(err)
	}
	if a := upload(t, etl, "/flows/push", "etl", good); a.Status != http.StatusSeeOther {
		t.Errorf("the admin of a project: %d %s", a.Status, a.Body)
	}
	for _, path := range []string{"/flows/shop/push", "/flows/new/push"} {
		if a := upload(t, etl, path, "", good); a.Status != http.StatusForbidden {
			t.Errorf("the admin of another project, %s: %d %s", path, a.Status, a.Body)
		}
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range left {
		if strings.Contains(file.Name(), "upload") || strings.Contains(file.Name(), "multipart") {
			t.Errorf("there is %s left", file.Name())
		}
	}
}

// What belongs to a project is for those who have a role in it; to others there is no such thing, and lists leave it out.
func TestProjectsOfOthers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{})
	h.push(t, "etl", flow.New("own").Noop("a"))
	h.push(t, "secret", flow.New("hidden").Job("a", testArgs("a")))
	own, other := h.start(t, "etl", "own", flow.Options{}), h.start(t, "secret", "hidden", flow.Options{})
	h.ended(t, own, "SUCCEEDED")
	h.ended(t, other, "SUCCEEDED")
	etl := h.As("etl")
	run := "/runs/" + strconv.FormatInt(other, 10)
	for _, path := range []string{
		"/flows/secret", "/flows/secret/hidden", "/flows/secret/hidden/picture", "/flows/secret/hidden/picture.svg", "/versions/secret/1", "/runs?project=secret",
		run, run + "/gantt", run + "/logs?q=a", run + "/picture.svg", run + "/nodes/0", run + "/nodes/0/log?job=1&run=1", run + "/confirm/kill",
		"/live/runs/" + strconv.FormatInt(other, 10) + "/head", "/live/runs/" + strconv.FormatInt(other, 10) + "/statuses", "/live/runs/" + strconv.FormatInt(other, 10) + "/nodes",
		"/live/runs/" + strconv.FormatInt(other, 10) + "/gantt",
	} {
		a := etl.Want(404, path)
		if strings.Contains(a.Body, "hidden") && !strings.Contains(path, "hidden") {
			t.Errorf("%s tells what it should not: %s", path, a.Body)
		}
		nothing := etl.Get(strings.NewReplacer("secret", "nothing", strconv.FormatInt(other, 10), "999999").Replace(path))
		if nothing.Status != 404 {
			t.Errorf("%s answers otherwise than if there were nothing", path)
		}
	}
	for _, action := range []string{"kill", "retry", "pause", "rerun"} {
		etl.WantPost(404, run+"/"+action, url.Values{"node": {"0"}})
	}
	etl.WantPost(404, "/flows/secret/hidden/run", nil)
	for _, path := range []string{"/flows", "/runs", "/runs?status=SUCCEEDED"} {
		if a := etl.Want(200, path, "etl"); strings.Contains(a.Body, "secret") || strings.Contains(a.Body, "hidden") {
			t.Errorf("%s shows a project of others", path)
		}
		h.As("viewer").Want(200, path, "secret", "etl")
		h.As("nobody").Want(403, path)
	}
	etl.Want(200, "/runs/"+strconv.FormatInt(own, 10), "own")
	// A viewer sees everything, and does nothing.
	viewer := h.As("viewer")
	if a := viewer.Want(200, run); strings.Contains(a.Body, "method=\"post\" action=\"/runs") || strings.Contains(a.Body, "data-all") {
		t.Error("a viewer is shown buttons")
	}
	if a := viewer.Want(200, "/flows/secret/hidden"); strings.Contains(a.Body, "Start the run") {
		t.Error("a viewer is shown the form")
	}
	viewer.WantPost(403, run+"/retry", nil)
	viewer.WantPost(403, "/flows/secret/hidden/run", nil)
	// Who is operator here and viewer there is refused there, and told so.
	if err := h.Access.SetRole(t.Context(), "test", "etl", access.Grant{Project: "secret", Role: access.Viewer}); err != nil {
		t.Fatal(err)
	}
	etl.Want(200, run, "hidden")
	etl.WantPost(403, run+"/retry", nil)
	etl.WantPost(403, "/flows/secret/hidden/run", nil)
}

func TestRunForm(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{})
	h.push(t, "etl", flow.New("nightly").Param("day", "2026-01-31").Param("size", "10").
		Job("extract", flowtest.Args{"day": "${day}"}).Flow("inner", flow.New("inner").Noop("x").Noop("y").After("x")).After("extract").Node("last", "test", map[string]string{"of": "${table}"}).After("inner"))
	v := h.As("etl")
	v.Want(200, "/flows/etl/nightly", `name="p:day" value="2026-01-31"`, `name="p:table" value=""`, "some node refers to it", `value="inner:x"`, "and all in it")
	count := func() (n int) {
		if err := h.Pool.QueryRow(t.Context(), "SELECT count(*) FROM pelton.flow_run").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	bad := url.Values{
		"p:day": {"<i>"}, "params": {"azkaban.flow.x=1\nnothing"}, "node_params": {"nowhere:x=1"}, "off": {"extract"}, "disabled": {"gone"}, "on_failure": {"explode"}, "concurrent": {"maybe"},
		"priority": {"high"}, "max_parallel": {"20000"}, "job_priority": {"9"}, "success": {"nobody"}, "sla_within0": {"soon"}, "sla_within1": {"1h"}, "sla_node1": {"inner"}, "sla_do1": {"alert"},
	}
	// What cannot be read is told first, with nothing else.
	a := v.WantPost(422, "/flows/etl/nightly/run", bad, "want NAME=VALUE", "is no whole number", "is no time", `value="&lt;i&gt;"`, `value="extract" checked`)
	if strings.Contains(a.Body, "<i>") {
		t.Error("a parameter is not escaped")
	}
	bad.Set("params", "azkaban.flow.x=1")
	bad.Set("priority", "7")
	bad.Set("sla_within0", "")
	a = v.WantPost(422, "/flows/etl/nightly/run", bad, "engine&#39;s own", "no node &#34;nowhere&#34;", "no node &#34;gone&#34;", "failure action", "concurrent &#34;maybe&#34;", "want 1 to 10000", "want 1 to 4",
		"neither an e-mail address", "an embedded flow")
	for field, says := range map[string]string{"max_parallel": "20000 jobs at a time", "node_params": "nowhere"} {
		if !strings.Contains(a.Body, `name="`+field+`"`) || !strings.Contains(a.Body, says) {
			t.Errorf("%s: no fault beside it", field)
		}
	}
	good := url.Values{
		"version": {"1"}, "p:day": {"2026-02-01"}, "p:size": {"10"}, "p:table": {"t"}, "params": {"more=a=b"}, "node_params": {"last:of=x"}, "off": {"inner"}, "on_failure": {"finish_possible"}, "concurrent": {"skip"},
		"priority": {"7"}, "success": {"a@example.com, https://hooks.example.com/x"}, "sla_within0": {"2h 30m"}, "sla_do0": {"both"},
	}
	checked := url.Values{"check": {"1"}}
	maps.Copy(checked, good)
	v.WantPost(403, "/flows/etl/nightly/run", checked, "notices would go to a@example.com, https://hooks.example.com/x, whom the flow does not name",
		`name="p:day" value="2026-02-01"`, "more=a=b", `value="2h 30m"`)
	v = h.As("admin")
	v.WantPost(200, "/flows/etl/nightly/run", checked, "Nothing is wrong with it")
	if n := count(); n != 0 {
		t.Fatalf("%d runs were started", n)
	}
	open := h.wait("extract")
	defer open()
	good.Set("key", "the form's")
	a = v.WantPost(303, "/flows/etl/nightly/run", good, "Started run 1.", "2026-02-01")
	v.WantPost(303, "/flows/etl/nightly/run", good, "the second one started nothing")
	good.Set("priority", "8")
	v.WantPost(409, "/flows/etl/nightly/run", good, "has started a run already", `value="8"`)
	good.Del("key")
	if a.Header.Get("Location") != "/runs/1" {
		t.Errorf("sent to %s", a.Header.Get("Location"))
	}
	v.WantPost(409, "/flows/etl/nightly/run", good, "run 1 of flow nightly has not ended")
	open()
	h.ended(t, 1, "SUCCEEDED")
	var options string
	if err := h.Pool.QueryRow(t.Context(), "SELECT options FROM pelton.flow_run WHERE id = 1").Scan(&options); err != nil {
		t.Fatal(err)
	}
	const want = `{"params":{"day":"2026-02-01","more":"a=b","table":"t"},"node_params":{"last":{"of":"x"}},"disabled":["inner"],"on_failure":"finish_possible","concurrent":"skip",` +
		`"priority":7,"slas":[{"within":"2h30m0s","alert":true,"kill":true}],"notify":{"success":["a@example.com","https://hooks.example.com/x"]}}`
	if options != want {
		t.Errorf("options are\n%s, want\n%s", options, want)
	}
	v.Want(200, "/flows/etl/nightly?like=1", `name="p:day" value="2026-02-01"`, "more=a=b", `value="inner" checked`, `value="2h30m0s"`, "https://hooks.example.com/x")
	v.Want(400, "/flows/etl/nightly?like=x")
	v.Want(404, "/flows/etl/nightly?like=999")
	v.Want(404, "/flows/etl/nightly?version=9")
	v.Want(404, "/flows/etl/nothing")
	v.Want(404, "/flows/etl/nightly?node=99")
	v.Want(200, "/flows/etl/nightly?node=4&q=last", "1 of 5", "${table}")
}

// The newest version may lack a flow that older ones have: its runs still lead to it.
func TestFlowThatTheNewestVersionLacks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{})
	h.push(t, "etl", flow.New("kept").Noop("a"))
	h.push(t, "etl", flow.New("gone").Noop("a"), flow.New("kept").Noop("a"))
	run := h.start(t, "etl", "gone", flow.Options{Priority: 7})
	h.ended(t, run, "SUCCEEDED")
	h.push(t, "etl", flow.New("kept").Noop("a"))
	v := h.As("etl")
	v.Want(200, fmt.Sprintf("/runs/%d", run), `href="/flows/etl/gone"`, fmt.Sprintf(`href="/flows/etl/gone?like=%d#run"`, run))
	a := v.Want(200, fmt.Sprintf("/flows/etl/gone?like=%d", run), "the newest, 3", "does not have the flow any more", `name="priority" inputmode="numeric" size="4" value="7"`, `name="version" value="2"`)
	if strings.Contains(a.Body, "/flows/etl/gone?version=3") {
		t.Error("a version without the flow is offered")
	}
	kept := v.Want(200, "/flows/etl/kept?version=1", "the newest is 3")
	for _, version := range []string{"1", "2", "3"} {
		if !strings.Contains(kept.Body, `href="/flows/etl/kept?version=`+version+`"`) {
			t.Errorf("version %s is not offered", version)
		}
	}
	v.Want(404, "/flows/etl/gone?version=3", `href="/flows/etl"`)
	v.Want(404, "/flows/etl/never")
}

func TestActionsOnARun(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{})
	h.push(t, "etl", flow.New("f").Job("a", testArgs("a")).Job("b", testArgs("b")).After("a").Job("c", testArgs("c")).After("b"))
	v := h.As("etl")
	open := h.wait("a")
	defer open()
	failing := true
	h.do("b", func(ctx context.Context) (map[string]string, error) {
		if _, err := joblog.FromContext(ctx).Stream(joblog.Stdout).Write([]byte("B looks for the Needle\n<script>alert(1)</script>\n")); err != nil {
			return nil, err
		}
		if failing {
			return nil, errors.New("b is broken")
		}
		return map[string]string{"rows": "42"}, nil
	})
	run := h.start(t, "etl", "f", flow.Options{})
	where := fmt.Sprintf("/runs/%d", run)
	h.status(t, run, "a", "RUNNING")
	v.Want(200, where, "RUNNING", "Pause", "Kill", "data-live=\"/live/runs/1/statuses\">Rrr<")
	v.WantPost(409, where+"/retry", nil, "has not ended")
	v.WantPost(409, where+"/resume", nil)
	v.WantPost(303, where+"/pause", nil, "Paused the run")
	pgtest.Eventually(t, pagetest.Patience, func() bool { return strings.Contains(v.Get(where).Body, "Resume") }, "the pause")
	v.WantPost(303, where+"/resume", nil, "Resumed the run.")
	open()
	h.ended(t, run, "FAILED")
	v.Want(200, where, "Retry what failed", "b is broken", "sFc", "Start one like it")
	v.Want(200, where+"?status=FAILED", "/nodes/1\"")
	if a := v.Get(where + "?status=FAILED&q=b"); strings.Contains(a.Body, where+"/nodes/0\"") {
		t.Error("a filter shows other nodes")
	}
	v.Want(200, where+"/nodes/1", "b is broken", "B looks for the Needle", "discarded", "Parameters", "Mark as succeeded", "&lt;script&gt;")
	v.Want(404, where+"/nodes/9")
	v.Want(404, where+"/nodes/1/log?job=1&run=1")
	found := searched(t, v, where+"/logs?q=needle")
	shows(t, found, "B looks for the <mark>Needle</mark>", "node 2 of 3, b", "which is all there is", where+"/nodes/1/log?job=")
	if strings.Contains(found.Body, "<script>alert") {
		t.Error("a log is not escaped")
	}
	// A line that goes over the border of two pages of a search is on the second one.
	pos := 0
	for _, text := range []string{strings.Repeat("many\n", 2100) + "ma", "ny over the border\n"} {
		h.Exec("INSERT INTO pelton.job_log (job_id, run, pos, stream, data) SELECT job_id, 2, $1, 'o', $2 FROM pelton.flow_node WHERE run_id = $3 AND no = 1", pos, []byte(text), run)
		pos += len(text)
	}
	many := searched(t, v, where+"/logs?q=MANY")
	shows(t, many, "2,000</span> found", "until the page was full", "100 lines more")
	next := between(many.Body[strings.LastIndex(many.Body, `<a href="`):], `<a href="`, `" rel="next">`)
	shows(t, searched(t, v, html.UnescapeString(next)), `<span id="count">1</span> found`, "<mark>many</mark> over the border", "which is all there is", "of it before this page", "First page")
	shows(t, searched(t, v, where+"/logs?q=nowhere"), "Nothing found.")
	log := between(found.Body, `<p data-found><a href="`, `"`)
	shows(t, searched(t, v, html.UnescapeString(log)), "<mark>Needle</mark>")
	v.Want(200, where+"/gantt?order=longest", where+"/nodes/0", "fill-bad")
	failing = false
	v.WantPost(303, where+"/retry", nil, "goes on")
	h.ended(t, run, "SUCCEEDED")
	v.Want(200, where+"/nodes/1", "&#34;rows&#34;: &#34;42&#34;")
	v.Want(200, where+"/nodes/2", "42", "outputs of b")
	// What replaces results, or is said instead of them, is asked for once more.
	v.WantPost(200, where+"/confirm/rerun", url.Values{"node": {"1"}}, "run once more", "replaced: b", `name="node" value="1"`)
	v.WantPost(400, where+"/confirm/rerun", nil, "no node was chosen")
	v.WantPost(400, where+"/rerun", url.Values{"node": {"77"}}, "no such nodes")
	v.WantPost(400, where+"/rerun", url.Values{"node": {"1;DROP TABLE x"}}, "no number of a node")
	v.WantPost(404, where+"/explode", nil)
	openC := h.wait("c")
	defer openC()
	v.WantPost(303, where+"/rerun", url.Values{"node": {"1"}}, "goes on")
	h.status(t, run, "c", "RUNNING")
	v.Want(200, where+"/confirm/kill", "What runs is ended", "Kill it")
	v.WantPost(303, where+"/kill", nil, "being killed")
	h.ended(t, run, "KILLED")
	v.Want(200, where, "killed by etl")
	v.Want(200, where+"/confirm/succeed?node=2", "who said so: c")
	v.WantPost(303, where+"/succeed", url.Values{"node": {"2"}}, "Marked as succeeded.")
	h.ended(t, run, "SUCCEEDED")
	v.Want(200, where+"/nodes/2", "etl")
	v.Want(200, "/runs?project=etl&flow=f&status=SUCCEEDED&from=1d", fmt.Sprintf(">%d<", run))
	v.Want(200, "/runs?status=live", "No runs.")
	v.Want(400, "/runs?status=x")
	v.Want(400, "/runs?from=tomorrow")
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

// Whatever flows, nodes, parameters, outputs and errors are called, pages show it and nothing of it acts.
func TestFlowTextsAreShownAsTexts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{})
	const evil = `<img src=x onerror=alert(1)>"'&`
	h.push(t, "etl", flow.New(evil).Param(evil, evil).Job(evil, flowtest.Args{"x": evil}).Noop("next").After(evil))
	h.do(evil, func(ctx context.Context) (map[string]string, error) {
		_, _ = joblog.FromContext(ctx).Stream(joblog.Stderr).Write([]byte(evil + "\n"))
		return map[string]string{evil: evil}, nil
	})
	run := h.start(t, "etl", evil, flow.Options{Params: map[string]string{evil: evil}, NodeParams: map[string]map[string]string{evil: {evil: evil}}})
	ctx, cancel := context.WithTimeout(t.Context(), pagetest.Patience)
	defer cancel()
	if _, err := h.Flows.Ended(ctx, run, nil); err != nil {
		t.Fatal(err)
	}
	where := fmt.Sprintf("/runs/%d", run)
	of := "/flows/etl/" + url.PathEscape(evil)
	h.Exec("UPDATE pelton.flow_node SET reason = $1 WHERE run_id = $2", evil, run)
	h.Exec("UPDATE pelton.flow_run SET reason = $1, status = 'FAILED' WHERE id = $2", evil, run)
	v := h.As("etl")
	for _, path := range []string{
		"/flows", "/flows/etl", of, of + "?node=0", of + "?like=1", of + "?q=" + url.QueryEscape(evil), of + "/picture", of + "/picture.svg", "/runs", "/runs?flow=" + url.QueryEscape(evil), where,
		where + "?q=" + url.QueryEscape(evil), where + "/gantt", where + "/logs?q=" + url.QueryEscape(evil), where + "/picture.svg", where + "/nodes/0", where + "/nodes/1", where + "/confirm/rerun?node=0",
	} {
		a := v.Want(200, path)
		if strings.Contains(a.Body, "<img src=x") || strings.Contains(a.Body, `"'&<`) {
			t.Errorf("%s has it as it was written: %s", path, a.Body)
		}
	}
	v.Want(200, where+"/nodes/0", "&lt;img src=x onerror=alert(1)&gt;")
}

// A flow with very many nodes makes pages of bounded size, and its picture is sent by itself.
func TestPagesOfALargeFlow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{})
	b := flow.New("large")
	const nodes = 4000
	for i := range nodes {
		b.Noop("node-" + strconv.Itoa(i))
		if i >= 20 {
			b.After("node-" + strconv.Itoa(i-20))
		}
	}
	huge := flow.New("huge")
	for i := range flow.MaxDrawnNodes + 1 {
		huge.Noop("node-" + strconv.Itoa(i))
	}
	h.push(t, "etl", b, huge)
	run := h.start(t, "etl", "large", flow.Options{})
	h.ended(t, run, "SUCCEEDED")
	v := h.As("etl")
	where := fmt.Sprintf("/runs/%d", run)
	for path, most := range map[string]int{
		"/flows/etl/large": 60_000, where: 60_000, where + "/gantt": 90_000, where + "/nodes/1234": 20_000, "/live/runs/1/statuses": nodes + 1, "/flows/etl/huge": 60_000,
	} {
		if a := v.Want(200, path); len(a.Body) > most {
			t.Errorf("%s has %d bytes, want at most %d", path, len(a.Body), most)
		}
	}
	a := v.Want(200, where, strings.Repeat("s", nodes), "Next page")
	next := strings.ReplaceAll(between(a.Body, `<a href="`+where+`?after=`, `"`), "&amp;", "&")
	v.Want(200, where+"?after="+next, "node-50<")
	picture := v.Want(200, "/flows/etl/large/picture?version=1", `id="n3999"`)
	if strings.Contains(picture.Body, "style=") || strings.Contains(picture.Body, "fill=\"#dcf5e3\"") {
		t.Error("the picture for pages has styles or colours")
	}
	if tag := picture.Header.Get("ETag"); v.Get("/flows/etl/large/picture?version=1", "If-None-Match", tag).Status != http.StatusNotModified {
		t.Error("the picture is sent again")
	}
	file := v.Want(200, where+"/picture.svg")
	if got := strings.Count(file.Body, `fill="#dcf5e3"`); got != nodes {
		t.Errorf("%d nodes of the file are green", got)
	}
	v.Want(200, "/flows/etl/huge", "too many for a picture")
	v.Want(404, "/flows/etl/huge/picture", "not drawn")
}

// Who has roles in single projects only sees what there is of those, and nothing of others.
func TestOverviewOfSingleProjects(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{})
	for _, project := range []string{"etl", "shop"} {
		night := flow.New(project + "-flow")
		night.Job("load", flowtest.Args{})
		h.push(t, project, night)
		target := &periodic.FlowTarget{Project: project, Flow: project + "-flow"}
		put(t, h.Site, periodic.Schedule{Name: project + "-tick", Cron: "0 3 * * *", Flow: target})
	}
	put(t, h.Site, nightly("shop-job"))
	h.do("load", func(context.Context) (map[string]string, error) { return nil, errors.New("no luck") })
	failed := map[string]int64{}
	for _, project := range []string{"etl", "shop"} {
		failed[project] = h.start(t, project, project+"-flow", flow.Options{})
		h.ended(t, failed[project], "FAILED")
	}
	open := h.wait("load")
	defer open()
	live := map[string]int64{}
	for _, project := range []string{"etl", "shop"} {
		live[project] = h.start(t, project, project+"-flow", flow.Options{})
		h.status(t, live[project], "load", "RUNNING")
	}
	of := func(project string) []string {
		return []string{
			`href="/flows/` + project + `"`, fmt.Sprintf(`href="/runs/%d"`, live[project]), fmt.Sprintf(`href="/runs/%d"`, failed[project]), `href="/schedules/` + project + `-tick"`,
		}
	}
	etl := h.As("etl")
	etl.Client.Timeout = pagetest.Patience // a stream that is opened ends the test
	for _, path := range []string{"/", "/live/mine?project=etl"} {
		if a := etl.Want(200, path, of("etl")...); strings.Contains(a.Body, "shop") || strings.Contains(a.Body, fmt.Sprintf(`/runs/%d"`, live["shop"])) {
			t.Errorf("%s shows another project: %s", path, a.Body)
		}
	}
	etl.Want(200, "/", `<a href="/" aria-current="page">Overview</a>`, `data-live="/live/mine?project=etl"`)
	for _, others := range []string{"project=shop", "project=etl&project=shop", "project=none", ""} {
		etl.Want(404, "/live/mine?"+others)
		etl.Want(404, "/live?part="+url.QueryEscape("/live/mine?"+others))
	}
	h.Add("both", access.Grant{Project: "etl", Role: access.Viewer}, access.Grant{Project: "shop", Role: access.Viewer})
	a := h.As("both").Want(200, "/", append(of("etl"), of("shop")...)...)
	if strings.Contains(a.Body, "shop-job") {
		t.Error("a schedule of no project is shown")
	}
	h.As("nobody").Want(403, "/")
}

// The form to run a flow, shown again with its faults, stands on a page like the flow's own: its filter and its list of nodes lead on from there, and not to where
// the form was sent.
func TestTheRunFormShownAgainLeadsOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{})
	many := flow.New("many")
	for i := range 60 {
		many.Noop(fmt.Sprintf("node-%02d", i))
	}
	h.push(t, "etl", many)
	h.push(t, "etl", flow.New("many").Noop("node-00"))
	v := h.As("etl")
	a := v.WantPost(422, "/flows/etl/many/run", url.Values{"version": {"1"}, "priority": {"high"}}, "is no whole number", "Next page")
	filter := html.UnescapeString(between(a.Body, `role="search" action="`, `"`))
	v.Want(200, strings.Replace(filter, "#", "?version=1&q=node-59#", 1), "1 of 60")
	next := html.UnescapeString(between(a.Body, `aria-label="Pages"><a href="`, `"`))
	v.Want(200, next, "<bdi>node-59</bdi></a>", "First page")
}
