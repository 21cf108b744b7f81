package page_test

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs"
)

// idle is a queue that nobody works, so that what is in it stays where it is.
const idle = "idle"

// hidden is the value of a hidden field of a page.
func hidden(t *testing.T, a pagetest.Answer, name string) string {
	t.Helper()
	found := regexp.MustCompile(`type="hidden" name="` + name + `" value="([^"]*)"`).FindStringSubmatch(a.Body)
	if found == nil {
		t.Fatalf("no hidden field %s: %s", name, a.Body)
	}
	return html.UnescapeString(found[1])
}

// textarea is what is in a text field of a page.
func textarea(t *testing.T, a pagetest.Answer, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<textarea name="` + name + `"[^>]*>(.*?)</textarea>`).FindStringSubmatch(a.Body)
	if found == nil {
		t.Fatalf("no field %s: %s", name, a.Body)
	}
	return html.UnescapeString(found[1])
}

func count(t *testing.T, s *pagetest.Site, query string) (n int) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNewJob(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	operator := s.As("operator")
	s.As("viewer").Want(403, "/jobs/new")
	s.As("viewer").Want(200, "/jobs")
	operator.Want(200, "/jobs", `href="/jobs/new"`)
	a := operator.Want(200, "/jobs/new?kind=report&queue=idle", `value="report"`, `value="idle"`, `<option value="task">`, `<option value="mail">`)
	form := url.Values{
		"key": {hidden(t, a, "key")}, "kind": {"report"}, "args": {"{\r\n  \"n\": 12345678901234567890, \"what\": \"" + evil + "\"}"}, "queue": {idle}, "priority": {"2"}, "at": {"3d"},
		"max_attempts": {"7"}, "tags": {"red, blue"}, "metadata": {`{"ticket": "OPS-7"}`}, "unique_key": {"only"},
	}
	form.Set("args", strings.ReplaceAll(form.Get("args"), `"what": "`+evil+`"`, `"what": `+quoted(evil)))
	a = operator.WantPost(303, "/jobs/new", form, "The job is enqueued.", "scheduled", "priority 2", "0 of 7", "OPS-7", "12345678901234567890")
	checkEscaped(t, "the job", operator.Want(200, a.Header.Get("Location")))
	var id int64
	if _, err := fmt.Sscanf(a.Header.Get("Location"), "/jobs/%d", &id); err != nil {
		t.Fatal(err)
	}
	job, err := s.Jobs.JobGet(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if ahead := time.Until(job.ScheduledAt); ahead < 71*time.Hour || ahead > 73*time.Hour || strings.Join(job.Tags, ",") != "red,blue" || len(job.UniqueKey) == 0 || job.Kind != "report" || job.Queue != idle {
		t.Errorf("%+v", job)
	}
	operator.Want(200, "/audit?action=job.enqueue", "operator", fmt.Sprintf(`href="/jobs/%d"`, id))
	// The second press of the button enqueues nothing, also after some time; what is sent with other values does once the person insists.
	operator.WantPost(303, "/jobs/new", form, "the second one enqueued nothing")
	form.Set("unique_key", "")
	form.Set("pending", "1")
	form.Set("at", "")
	a = operator.WantPost(409, "/jobs/new", form, "has enqueued a job already", `value="report"`, `value="7"`, "checked")
	if n := count(t, s, `SELECT count(*) FROM pelton.job`); n != 1 {
		t.Fatalf("%d jobs, want 1", n)
	}
	form.Set("key", hidden(t, a, "key"))
	operator.WantPost(303, "/jobs/new", form, "The job is enqueued.", "pending")
	// Another person's form has another key, even if it is the same; and a unique key is one.
	s.As("admin").WantPost(303, "/jobs/new", form, "The job is enqueued.")
	form.Set("key", "")
	form.Set("unique_key", "only")
	operator.WantPost(303, "/jobs/new", form, "Nothing was enqueued: this job holds the unique key.", "scheduled")
	if n := count(t, s, `SELECT count(*) FROM pelton.job`); n != 3 {
		t.Errorf("%d jobs, want 3", n)
	}
	if n := count(t, s, `SELECT count(*) FROM pelton.audit WHERE action = 'job.enqueue'`); n != 3 {
		t.Errorf("%d entries of the audit, want 3", n)
	}
}

func quoted(text string) string {
	made, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(made)
}

// What is wrong is said beside its field, and what was typed stays.
func TestNewJobFaults(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	operator := s.As("operator")
	typed := url.Values{"kind": {"report"}, "args": {`{"typed": 1}`}, "tags": {"nightly"}, "queue": {idle}}
	for _, one := range []struct{ field, value, says string }{
		{"kind", " ", "say which kind of job"},
		{"kind", strings.Repeat("k", 129), "kind is 129 bytes"},
		{"args", `{"a":`, "no JSON"},
		{"args", `"` + strings.Repeat("x", jobs.MaxArgsBytes) + `"`, "args is 1048578 bytes"},
		{"queue", "No Queue", "queue name"},
		{"priority", "5", "no number from 1 to 4"},
		{"priority", "0", "no number from 1 to 4"},
		{"max_attempts", "many", "no number from 1 to 32767"},
		{"at", "soon", "is no time"},
		{"at", "-5m", "is no time"},
		{"tags", "x", `want 3 to 255`},
		{"metadata", `[1]`, "metadata is not a JSON object"},
	} {
		form := url.Values{"key": {"k"}}
		maps.Copy(form, typed)
		form.Set(one.field, one.value)
		a := operator.WantPost(422, "/jobs/new", form, "Nothing was enqueued", `name="key" value="k"`)
		// The fault stands between its field and the next.
		_, after, _ := strings.Cut(a.Body, ` name="`+one.field+`"`)
		if next := strings.Index(after, ` name="`); next >= 0 {
			after = after[:next]
		}
		if !strings.Contains(html.UnescapeString(after), one.says) {
			t.Errorf("%s = %.40q: %q is not beside it: %.2000s", one.field, one.value, one.says, after)
		}
		for name, values := range typed {
			if name != one.field && !strings.Contains(html.UnescapeString(a.Body), values[0]) {
				t.Errorf("%s = %.40q: what was typed into %s is gone", one.field, one.value, name)
			}
		}
	}
	operator.WantPost(422, "/jobs/new", url.Values{"kind": {"command"}, "args": {`{"comand": "x"}`}}, "comand")
	if n := count(t, s, `SELECT count(*) FROM pelton.job`); n != 0 {
		t.Errorf("%d jobs were enqueued", n)
	}
}

// A job's page leads to a form with its values, but for what others noted there. Characters that act come back as they were.
func TestNewJobLikeAnother(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	odd := "a\u200bb\u2028c" + evil
	id := s.Insert(pagetest.Task{Note: odd}, &river.InsertOpts{
		Queue: idle, Priority: 3, MaxAttempts: 4, Tags: []string{"red"}, Metadata: []byte(`{"mine": 1, "pelton:schedule": {"name": "x"}, "traceparent": "00-1"}`),
	})
	viewer, operator := s.As("viewer"), s.As("operator")
	like := fmt.Sprintf("/jobs/new?like=%d", id)
	if a := viewer.Want(200, fmt.Sprintf("/jobs/%d", id)); strings.Contains(a.Body, "/jobs/new") || strings.Contains(a.Body, "/change") {
		t.Error("a viewer is offered what would be refused")
	}
	viewer.Want(403, like)
	s.As("etl").Want(403, like)
	operator.Want(200, fmt.Sprintf("/jobs/%d", id), `href="`+like+`"`)
	operator.Want(400, "/jobs/new?like=x")
	operator.Want(404, "/jobs/new?like=77")
	a := operator.Want(200, like, `value="task"`, `value="idle"`, `value="3"`, `value="4"`, `value="red"`)
	checkEscaped(t, "the form", a)
	if strings.ContainsAny(a.Body, "\u200b\u2028") || strings.Contains(a.Body, "pelton:schedule") || strings.Contains(a.Body, "traceparent") {
		t.Errorf("the form has what it should not: %s", a.Body)
	}
	form := url.Values{"key": {hidden(t, a, "key")}, "kind": {"task"}, "args": {textarea(t, a, "args")}, "metadata": {textarea(t, a, "metadata")}}
	to := operator.WantPost(303, "/jobs/new", form, "The job is enqueued.").Header.Get("Location")
	var made int64
	if _, err := fmt.Sscanf(to, "/jobs/%d", &made); err != nil {
		t.Fatal(err)
	}
	job, err := s.Jobs.JobGet(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
	var task pagetest.Task
	if err := json.Unmarshal(job.EncodedArgs, &task); err != nil || task.Note != odd || strings.ReplaceAll(string(job.Metadata), " ", "") != `{"mine":1}` {
		t.Errorf("%q, %s, %v", task.Note, job.Metadata, err)
	}
}

func TestChangeJob(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	id := s.Insert(pagetest.Task{Note: evil + "\u200b"}, &river.InsertOpts{Queue: idle, Metadata: []byte(`{"a": 12345678901234567890}`)})
	at := fmt.Sprintf("/jobs/%d/change", id)
	viewer, operator, admin := s.As("viewer"), s.As("operator"), s.As("admin")
	viewer.Want(403, at)
	viewer.WantPost(403, at, nil)
	operator.Want(404, "/jobs/77/change")
	operator.Want(200, fmt.Sprintf("/jobs/%d", id), `href="`+at+`"`)
	a := operator.Want(200, at, `value="idle"`, `value="25"`, "12345678901234567890")
	checkEscaped(t, "the form of a change", a)
	asIs := func(a pagetest.Answer) url.Values {
		return url.Values{"seen": {hidden(t, a, "seen")}, "queue": {idle}, "priority": {"1"}, "max_attempts": {"25"}, "args": {textarea(t, a, "args")}}
	}
	operator.WantPost(303, at, asIs(a), "The job is changed.")
	if n := count(t, s, `SELECT count(*) FROM pelton.audit WHERE action = 'job.update'`); n != 0 {
		t.Errorf("%d entries of the audit of a change that changed nothing", n)
	}
	form := asIs(a)
	for name, value := range map[string]string{
		"queue": "No Queue", "priority": "5", "max_attempts": "", "args": "{", "metadata": "[]",
	} {
		wrong := asIs(a)
		wrong.Set(name, value)
		operator.WantPost(422, at, wrong, "Nothing was stored", `role="alert"`)
	}
	operator.WantPost(400, at, url.Values{"queue": {"other"}})
	// Two people have the form open. The second is told what the first has changed, and may insist.
	form.Set("queue", "idle-too")
	form.Set("priority", "3")
	form.Set("metadata", `{"b": 98765432109876543210}`)
	admin.WantPost(303, at, form, "The job is changed.", "idle-too", "priority 3", "98765432109876543210", "12345678901234567890")
	late := asIs(a)
	late.Set("args", `{"note": "late"}`)
	refused := operator.WantPost(409, at, late, "the job is not any more what you saw; admin changed it last", "the queue was idle and is idle-too", "the priority was 1 and is 3", "the metadata are others", `value="idle"`)
	if textarea(t, refused, "args") != `{"note": "late"}` {
		t.Errorf("what was typed is gone: %s", refused.Body)
	}
	if job, err := s.Jobs.JobGet(t.Context(), id); err != nil || job.Queue != "idle-too" || strings.Contains(string(job.EncodedArgs), "late") {
		t.Errorf("%+v, %v", job, err)
	}
	late.Set("seen", hidden(t, refused, "seen"))
	operator.WantPost(303, at, late, "The job is changed.", "late", "priority 1")
	operator.Want(200, fmt.Sprintf("/audit?action=job.update&target=%d", id), "queue:", "idle-too", "args_changed")
	// It ends while the form is open.
	if _, err := s.Jobs.JobCancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	operator.WantPost(409, at, late, "has ended, it is cancelled")
	operator.Want(409, at, "has ended, it is cancelled")
	if a := operator.Want(200, fmt.Sprintf("/jobs/%d", id)); strings.Contains(a.Body, "/change") {
		t.Error("a job that has ended is offered to be changed")
	}
}

// A job that has begun to run since the form was opened is changed for its next run alone, and the person is told before.
func TestChangeJobThatBeginsToRun(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	id := s.Insert(pagetest.Task{Wait: true}, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)})
	at := fmt.Sprintf("/jobs/%d/change", id)
	operator := s.As("operator")
	a := operator.Want(200, at)
	if _, err := s.Jobs.JobRetry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.WaitState(id, rivertype.JobStateRunning)
	form := url.Values{"seen": {hidden(t, a, "seen")}, "queue": {"default"}, "priority": {"1"}, "max_attempts": {"1"}, "args": {textarea(t, a, "args")}}
	refused := operator.WantPost(409, at, form, "it has begun to run")
	form.Set("seen", hidden(t, refused, "seen"))
	operator.WantPost(303, at, form, "The job is changed.", "1 of 1")
}

// A person enqueues a job, changes it, and enqueues one like it with a button that is pressed twice.
func TestNewJobInABrowser(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	b := s.Browser("admin")
	b.Go("/jobs")
	b.ClickText("New job...")
	b.Fill(`[name="kind"]`, "report")
	b.Fill(`[name="args"]`, `{"n": `)
	b.ClickText("Enqueue")
	b.WaitFor("main form", "no JSON")
	b.Fill(`[name="args"]`, `{"n": 1}`)
	b.ClickText("Enqueue")
	b.WaitFor(".flash", "The job is enqueued")
	b.ClickText("Change...")
	b.Fill(`[name="priority"]`, "4")
	b.ClickText("Change")
	b.WaitFor(".flash", "The job is changed")
	b.WaitFor("#now", "priority 4")
	b.ClickText("Enqueue one like it...")
	b.WaitFor("h1", "New job")
	b.WaitUntil(`document.querySelector("[name=priority]").value === "4" && document.querySelector("[name=kind]").value === "report"`)
	b.Eval(`document.querySelector("button.main").dispatchEvent(new MouseEvent("click")), document.querySelector("button.main").click()`)
	b.WaitFor(".flash", "job")
	if n := count(t, s, `SELECT count(*) FROM pelton.job`); n != 2 {
		t.Errorf("%d jobs, want 2", n)
	}
}
