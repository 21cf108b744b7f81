package page_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/internal/look"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs"
)

// evil is what must never be on a page as it is.
const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>'{{.}}` + "\u202e\x1b[31m\u2028"

func checkEscaped(t *testing.T, what string, a pagetest.Answer) {
	t.Helper()
	for _, bad := range []string{"<script>alert", "<img src=x", "\u202e", "\x1b", "\u2028", "\x00"} {
		if strings.Contains(a.Body, bad) {
			t.Errorf("%s has %q: %s", what, bad, a.Body)
		}
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	good := s.Insert(pagetest.Task{Note: "needle-1", Output: "42"}, &river.InsertOpts{Tags: []string{"red", "blue"}})
	bad := s.Insert(pagetest.Task{Note: "needle-2", Fail: "no luck"}, &river.InsertOpts{MaxAttempts: 1, Queue: "mail"})
	later := s.Insert(pagetest.Task{Note: "needle-3"}, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour), Queue: "mail"})
	again := s.Insert(pagetest.Task{Fail: "not yet"}, nil)
	runs := s.Insert(pagetest.Task{Wait: true}, nil)
	parked := s.Insert(pagetest.Task{Note: "needle-4"}, &river.InsertOpts{Pending: true})
	s.WaitState(good, rivertype.JobStateCompleted)
	s.WaitState(bad, rivertype.JobStateDiscarded)
	s.WaitState(again, rivertype.JobStateRetryable)
	s.WaitState(runs, rivertype.JobStateRunning)
	if err := s.Jobs.QueuePause(t.Context(), "default", nil); err != nil {
		t.Fatal(err)
	}
	other, err := s.Jobs.Insert(t.Context(), jobs.RawArgs{JobKind: "strange", JSON: []byte(`{"a": "x'; DROP TABLE pelton.job; --"}`)}, &river.InsertOpts{Queue: "idle"})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{"good": good, "bad": bad, "later": later, "again": again, "runs": runs, "parked": parked, "other": other.Job.ID}
	viewer := s.As("viewer")
	for query, want := range map[string][]string{
		"": {"good", "bad", "later", "again", "runs", "parked", "other"}, "state=completed": {"good"}, "state=discarded": {"bad"}, "state=scheduled": {"later"},
		"state=retryable": {"again"}, "state=running": {"runs"}, "state=pending": {"parked"}, "state=available": {"other"},
		"state=completed&state=running": {"good", "runs"}, "state=scheduled,pending": {"later", "parked"}, "state=cancelled": {},
		"kind=strange": {"other"}, "queue=mail": {"bad", "later"}, "queue=mail&state=scheduled": {"later"}, "tag=red": {"good"}, "tag=red,blue": {"good"},
		"tag=red,green": {}, "args=needle-3": {"later"}, "args=needle-&state=completed,pending": {"good", "parked"}, "args=needle%25": {},
		"since=1h": {"good", "bad", "later", "again", "runs", "parked", "other"}, "until=1h": {}, "since=2020-01-01&until=2020-01-02": {},
		fmt.Sprintf("id=%d,%d", good, later): {"good", "later"}, "args=" + url.QueryEscape("x'; DROP TABLE"): {"other"},
		"kind=" + url.QueryEscape("' OR 1=1 --"): {}, "queue=" + url.QueryEscape(`\'; SELECT`): {}, "tag=" + url.QueryEscape(`{red}"`): {},
		"args=" + url.QueryEscape(evil): {}, "args=%25&args=_": {},
	} {
		a := viewer.Want(200, "/jobs?"+query)
		checkEscaped(t, query, a)
		for name, id := range all {
			wanted := false
			for _, w := range want {
				wanted = wanted || w == name
			}
			if shown := strings.Contains(a.Body, fmt.Sprintf(`href="/jobs/%d"`, id)); shown != wanted {
				t.Errorf("/jobs?%s: %s is shown: %v", query, name, shown)
			}
		}
	}
	for _, query := range []string{
		"state=strange", "since=yesterday", "until=x", "id=abc", "id=-1", "after=x", "kind=a%00b", "args=" + strings.Repeat("x", 2000), "tag=" + strings.Repeat("x", 2000),
	} {
		viewer.Want(400, "/jobs?"+query)
	}
	viewer.Want(200, "/jobs", "which is all there is", "UTC")

	path := func(id int64, rest string) string { return fmt.Sprintf("/jobs/%d%s", id, rest) }
	viewer.Want(200, path(good, ""), "completed", "result", "&#34;42&#34;", `aria-label="run 1: completed, `, `href="/jobs?tag=red"`)
	viewer.Want(200, path(bad, ""), "discarded", "no luck", "1 of 1")
	viewer.Want(200, path(again, ""), "retryable", "errored", "again at")
	viewer.Want(404, path(1, ""), "there is no job 1")
	viewer.Want(404, "/jobs/x")
	viewer.Want(404, "/jobs/-1")
	viewer.Want(400, path(good, "?before=x"))
	if a := viewer.Want(200, path(again, "?before=1")); strings.Contains(a.Body, "not yet</bdi>") {
		t.Error("runs before the first")
	}
	a := viewer.Want(200, path(good, "/text/args"), `{"output":"42","note":"needle-1"}`)
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("args: %v", a.Header)
	}
	viewer.Want(404, path(good, "/text/password"))

	if a := viewer.Want(200, path(later, "")); strings.Contains(a.Body, `/cancel"`) || strings.Contains(a.Body, `/retry"`) || strings.Contains(a.Body, "/delete") {
		t.Error("a viewer sees buttons")
	}
	operator, admin := s.As("operator"), s.As("admin")
	if a := operator.Want(200, path(later, ""), path(later, "/cancel"), path(later, "/retry")); strings.Contains(a.Body, "/delete") {
		t.Error("an operator may delete")
	}
	operator.WantPost(303, path(later, "/cancel"), nil, "The job is cancelled.")
	operator.WantPost(303, path(later, "/cancel"), nil, "The job is cancelled.")
	operator.WantPost(303, path(later, "/retry"), nil, "The job was put in its line.")
	operator.WantPost(303, path(good, "/cancel"), nil, "has ended already: it is completed")
	operator.WantPost(404, "/jobs/1/retry", nil)
	admin.WantPost(409, path(runs, "/delete"), nil, "the job runs")
	operator.WantPost(303, path(runs, "/cancel"), nil)
	s.WaitState(runs, rivertype.JobStateCancelled)
	operator.WantPost(403, path(parked, "/delete"), nil)
	admin.Want(200, path(parked, "/delete"), "removed for good", "<button class=\"danger\">Delete the job</button>")
	admin.WantPost(303, path(parked, "/delete"), nil, "is deleted")
	viewer.Want(404, path(parked, ""))
	entries, err := s.Jobs.AuditList(t.Context(), &jobs.AuditListParams{Action: "job.delete"})
	if err != nil || len(entries) != 1 || entries[0].Actor != "admin" {
		t.Errorf("audit: %+v, %v", entries, err)
	}
}

// Whatever is stored of a job is escaped wherever it is shown.
func TestJobsAreEscaped(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	id := s.Insert(pagetest.Task{Note: evil, Output: evil, Print: evil + "\n", Warn: evil + "\xff\n", Panic: evil},
		&river.InsertOpts{MaxAttempts: 1, Metadata: []byte(`{"x": "<script>alert(3)</script>\u202e"}`)})
	s.WaitState(id, rivertype.JobStateDiscarded)
	s.Exec(`UPDATE pelton.job SET kind = 'kind ' || $2, tags = ARRAY['tag ' || $2] WHERE id = $1`, id, evil)
	s.Exec(`UPDATE pelton.executor SET name = 'name ' || $1, host = $1`, evil)
	viewer := s.As("viewer")
	for path, shows := range map[string]string{
		"/jobs": "kind &#34;&gt;&lt;script&gt;", "/jobs?tag=" + url.QueryEscape(evil): "value=\"&#34;&gt;&lt;script&gt;",
		"/jobs?args=" + url.QueryEscape(evil): "&lt;script&gt;", fmt.Sprintf("/jobs/%d", id): "\u241b[31m", fmt.Sprintf("/live/jobs/%d", id): "⟦U+202E⟧",
		fmt.Sprintf("/jobs/%d/log", id): "&lt;script&gt;alert(1)", fmt.Sprintf("/jobs/%d/log?q=script", id): "&lt;<mark>script</mark>&gt;alert(1)",
		fmt.Sprintf("/jobs/%d/log?q=%s", id, url.QueryEscape(evil)): "</span> found with",
	} {
		checkEscaped(t, path, viewer.Want(200, path, shows))
	}
	a := viewer.Want(200, fmt.Sprintf("/jobs/%d/log/download?stream=o", id), evil)
	if a.Header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment; filename=job-") {
		t.Errorf("download: %v", a.Header)
	}
	if a := viewer.Get("/jobs?state=" + url.QueryEscape(evil)); a.Status != 400 {
		t.Errorf("state: %d", a.Status)
	} else {
		checkEscaped(t, "a fault", a)
	}
}

// The list goes on page by page, and misses none.
func TestJobsPaging(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	s.Exec(`INSERT INTO pelton.job (id, kind, args, created_at)
		SELECT pelton.id_at(now() - n * interval '3 minutes') + n, 'k' || n % 3, '{}', now() - n * interval '3 minutes' FROM generate_series(1, 240) n`)
	s.Exec(`INSERT INTO pelton.job_parked (job_id) SELECT id FROM pelton.job`)
	viewer := s.As("viewer")
	for _, query := range []string{"kind=k1", "kind=k1&state=pending", "kind=k1&state=pending,completed"} {
		seen := map[string]bool{}
		path := "/jobs?" + query
		for range 10 {
			a := viewer.Want(200, path)
			for _, part := range strings.Split(a.Body, `<th scope="row" class="mono"><a href="/jobs/`)[1:] {
				id, _, _ := strings.Cut(part, `"`)
				if seen[id] {
					t.Errorf("%s shows %s twice", query, id)
				}
				seen[id] = true
			}
			before, _, more := strings.Cut(a.Body, `" rel="next"`)
			if !more {
				before, _, more = strings.Cut(a.Body, `">Search further back`)
			}
			if !more {
				break
			}
			path = html.UnescapeString(before[strings.LastIndex(before, `href="`)+6:])
		}
		if len(seen) != 80 {
			t.Errorf("%s shows %d jobs, want 80", query, len(seen))
		}
	}
}

// A search that does not find enough in its time goes on behind its link.
func TestJobsSearchGoesOn(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	s.Exec(`INSERT INTO pelton.job (id, kind, args, created_at) SELECT pelton.id_at(now() - interval '1 day') + n, CASE n WHEN 1 THEN 'rare' ELSE 'k' END, '{}', now() - interval '1 day'
		FROM generate_series(1, 150000) n`)
	viewer := s.As("viewer")
	path := "/jobs?kind=rare"
	for range 100 {
		a := viewer.Want(200, path)
		if strings.Contains(a.Body, "<bdi>rare</bdi>") {
			if strings.Contains(a.Body, "Search further back") || !strings.Contains(a.Body, "which is all there is") {
				t.Error("there is nothing to search any more")
			}
			return
		}
		before, _, more := strings.Cut(a.Body, `">Search further back`)
		if !more {
			t.Fatalf("%s ends without the job", path)
		}
		path = html.UnescapeString(before[strings.LastIndex(before, `href="`)+6:])
	}
	t.Error("not found")
}

func TestLog(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	viewer := s.As("viewer")
	id := s.Insert(pagetest.Task{Wait: true}, nil)
	s.WaitState(id, rivertype.JobStateRunning)
	path := fmt.Sprintf("/jobs/%d/log", id)
	a := viewer.Want(200, path, "data-follow=")
	_, rest, _ := strings.Cut(a.Body, `data-follow="`)
	follow, _, _ := strings.Cut(rest, `"`)
	events := viewer.Stream(html.UnescapeString(follow))
	var text strings.Builder
	limit := time.After(pagetest.Patience)
	for over, cancelled := false, false; !over; {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatal("the stream ended without a word")
			}
			over = e.Name == "over"
			text.WriteString(e.Data)
			if e.Name == "more" && !cancelled && strings.Contains(text.String(), "step 5") {
				cancelled = true
				if _, err := s.Jobs.JobCancel(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		case <-limit:
			t.Fatal("nothing came")
		}
	}
	if !strings.Contains(text.String(), "step 5\n") || !strings.HasSuffix(text.String(), "end") {
		t.Errorf("followed: %q", text.String())
	}
	viewer.Want(200, path, "step 1\n")
	shows(t, searched(t, viewer, path+"?q=STEP+1"), "<mark>step 1</mark>", "which is all there is")
	for _, query := range []string{"?run=x", "?run=0", "?stream=x", "?charset=klingon", "?after=x", "?before=-1", "?to=noon"} {
		viewer.Want(400, path+query)
	}
	viewer.Want(200, path+"?run=7", "Nothing was printed")
}

// unmarked is a page without the marks of what was searched for.
func unmarked(page string) string {
	return strings.NewReplacer("<mark>", "", "</mark>", "").Replace(page)
}

// The log of a job that has not begun says so, and what it waits for.
func TestLogOfAJobThatWaits(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	later := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	scheduled, pending, cancelled := s.Insert(pagetest.Task{}, &river.InsertOpts{ScheduledAt: later}), s.Insert(pagetest.Task{}, &river.InsertOpts{Pending: true}), s.Insert(pagetest.Task{}, nil)
	line := s.Insert(pagetest.Task{}, nil)
	if _, err := s.Jobs.JobCancel(t.Context(), cancelled); err != nil {
		t.Fatal(err)
	}
	for job, says := range map[int64]string{
		scheduled: "is scheduled for 2099-01-01T00:00:00Z", pending: "is pending: it waits to be released", cancelled: "This run never began: the job is cancelled",
		line: "is in the line of queue default since",
	} {
		a := s.As("viewer").Want(200, fmt.Sprintf("/jobs/%d/log", job), says)
		if strings.Contains(a.Body, "Nothing was printed") || job != cancelled && !strings.Contains(a.Body, "had not begun when the page was made") {
			t.Errorf("the log of a job that %q: %s", says, a.Body)
		}
	}
	if _, err := s.Jobs.JobRetry(t.Context(), cancelled); err != nil {
		t.Fatal(err)
	}
	s.As("viewer").Want(200, fmt.Sprintf("/jobs/%d/log?run=1", cancelled), "This run never began: it was cancelled. The job is in the line of queue default since")
}

// A search finds each line once, also where it crosses from one page, or one chunk, into the next.
func TestLogSearchFindsEachLineOnce(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	viewer := s.As("viewer")
	s.Exec(`INSERT INTO pelton.job (id, kind, args, created_at) VALUES (pelton.id_at(now() - interval '1 hour'), 'k', '{}', now() - interval '1 hour')`)
	s.Exec(`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) SELECT id, 1, 'completed', 1 FROM pelton.job`)
	var want []string
	lines := func(name string, n int) string {
		var text strings.Builder
		for i := range n {
			want = append(want, fmt.Sprintf("needle %s-%d.", name, i))
			text.WriteString(want[len(want)-1] + "\nhay\n")
		}
		return text.String()
	}
	crossing := func(name string) { want = append(want, "needle "+name+".") }
	positions := map[string]int{}
	for i, chunk := range []struct{ stream, text string }{
		{"o", lines("first", 650) + "nee"},
		{"e", lines("other", 300) + "need"},
		{"o", "dle over-out.\n" + lines("second", 150)},
		{"o", lines("third", 60) + "needle "},
		{"e", "le over-err.\n"},
		{"o", "over-end.\n" + lines("many", 2100) + "needle open."},
	} {
		s.Exec(`INSERT INTO pelton.job_log (id, job_id, run, stream, pos, at, data)
			SELECT pelton.id_at(now() - interval '1 hour') + $1::integer, id, 1, $2, $3::integer, now() - interval '1 hour', convert_to($4, 'UTF8') FROM pelton.job`,
			i, chunk.stream, positions[chunk.stream], chunk.text)
		positions[chunk.stream] += len(chunk.text)
	}
	for _, name := range []string{"over-out", "over-err", "over-end", "open"} {
		crossing(name)
	}
	var id int64
	if err := s.Pool.QueryRow(t.Context(), `SELECT id FROM pelton.job`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	found, left, pages := map[string]int{}, 0, 0
	for next := fmt.Sprintf("/jobs/%d/log?q=NEEDLE", id); next != ""; pages++ {
		a := viewer.Want(200, next)
		for _, line := range regexp.MustCompile(`needle [-a-z0-9]+\.`).FindAllString(unmarked(a.Body), -1) {
			found[line]++
		}
		if m := regexp.MustCompile(`([\d,]+) lines more`).FindStringSubmatch(a.Body); m != nil {
			n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
			left += n
		}
		next = ""
		if m := regexp.MustCompile(`href="([^"]*)"(?: rel="next">Next page|>Search further)`).FindStringSubmatch(a.Body); m != nil {
			next = html.UnescapeString(m[1])
		}
	}
	missing := 0
	for _, line := range want {
		switch {
		case found[line] > 1:
			t.Errorf("%q was found %d times", line, found[line])
		case found[line] == 0 && !strings.HasPrefix(line, "needle many-") && line != "needle open.":
			t.Errorf("%q was not found", line)
		case found[line] == 0:
			missing++
		}
	}
	if missing == 0 || missing != left || pages < 3 {
		t.Errorf("%d lines are missing, and pages told of %d; %d pages", missing, left, pages)
	}
}

// A long log opens at its end, and is paged, jumped and searched by position; each page is small.
func TestLongLog(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	viewer := s.As("viewer")
	s.Exec(`INSERT INTO pelton.job (id, kind, args, created_at) VALUES (pelton.id_at(now() - interval '1 hour'), 'k', '{}', now() - interval '1 hour')`)
	s.Exec(`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) SELECT id, 1, 'completed', 1 FROM pelton.job`)
	const chunks = 800 // of 64 KiB: 50 MiB
	s.Exec(`INSERT INTO pelton.job_log (id, job_id, run, stream, pos, at, data)
		SELECT pelton.id_at(now() - interval '1 hour' + n * interval '1 second') + n, j.id, 1, 'o', n * 65536::bigint, now() - interval '1 hour' + n * interval '1 second',
			convert_to('chunk ' || n || E'\n' || repeat('x', 65536 - 8 - length(n::text)) || E'\n', 'UTF8')
		FROM pelton.job j, generate_series(0, $1::integer - 1) n`, chunks)
	var id int64
	if err := s.Pool.QueryRow(t.Context(), `SELECT id FROM pelton.job`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/jobs/%d/log", id)
	link := func(a pagetest.Answer, text string) string {
		t.Helper()
		before, _, ok := strings.Cut(a.Body, text)
		if !ok {
			t.Fatalf("no link %q", text)
		}
		to, _, _ := strings.Cut(before[strings.LastIndex(before, `href="`)+6:], `"`)
		return html.UnescapeString(to)
	}
	small := func(a pagetest.Answer) {
		t.Helper()
		if len(a.Body) > 700<<10 {
			t.Errorf("a page of %d bytes", len(a.Body))
		}
	}
	a := viewer.Want(200, path, "chunk 799\n", "50.0 MiB printed")
	small(a)
	seen := 0
	for range chunks {
		seen += strings.Count(a.Body, "chunk ")
		small(a)
		if !strings.Contains(a.Body, "Before this") {
			break
		}
		if seen > 40 {
			break
		}
		a = viewer.Want(200, link(a, `" rel="prev">Before this`))
	}
	if seen < 40 {
		t.Errorf("%d chunks seen backwards", seen)
	}
	a = viewer.Want(200, link(a, `">Beginning`), "chunk 0\n")
	small(a)
	a = viewer.Want(200, link(a, `" rel="next">After this`), "chunk 4\n")
	if strings.Contains(a.Body, "chunk 3\n") || strings.Contains(a.Body, "chunk 0\n") {
		t.Error("pages overlap")
	}
	a = searched(t, viewer, path+"?q=CHUNK+777")
	shows(t, a, `<span id="count">1</span> found`, "<mark>chunk 777</mark>")
	viewer.Want(200, link(a, `"><time`), "chunk 777\n")
	var at time.Time
	if err := s.Pool.QueryRow(t.Context(), `SELECT at FROM pelton.job_log WHERE pos = 400 * 65536`).Scan(&at); err != nil {
		t.Fatal(err)
	}
	viewer.Want(200, path+"?to="+url.QueryEscape(at.UTC().Format("2006-01-02 15:04:05")), "chunk 401\n")
}

// What was printed in another charset is read as the reader says, over the borders of chunks.
func TestCharsets(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	viewer := s.As("viewer")
	id := s.Insert(pagetest.Task{}, nil)
	s.Exec(`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) VALUES ($1, 1, 'completed', 1)`, id)
	pos := int64(0)
	put := func(data ...[]byte) {
		s.Exec(`DELETE FROM pelton.job_log`)
		pos = 0
		for i, d := range data {
			s.Exec(`INSERT INTO pelton.job_log (id, job_id, run, stream, pos, data) VALUES ($1, $2, 1, 'o', $3, $4)`, id+int64(i)+1, id, pos, d)
			pos += int64(len(d))
		}
	}
	path := fmt.Sprintf("/jobs/%d/log?charset=", id)
	put([]byte("Gr\xfc\xdfe, \x80 5"))
	viewer.Want(200, path+"latin-1", "Grüße, \u27e6U+0080\u27e7 5")
	viewer.Want(200, path+"windows-1252", "Grüße, € 5")
	viewer.Want(200, path+"utf-8", "Gr\ufffd\ufffde")
	put([]byte("a\xe2"), []byte("\x82"), []byte("\xac b"))
	viewer.Want(200, path+"utf-8", "a€ b")
	put([]byte("h\x00\xac"), []byte(" \x3d"), []byte("\xd8\x00\xde!\x00"))
	viewer.Want(200, path+"utf-16le", "h€😀!")
	put([]byte("\x00h\x20\xac"))
	viewer.Want(200, path+"utf-16be", "h€")
}

// Statements that read large tables use the index that they are meant to use.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	s.Exec(`INSERT INTO pelton.job (id, kind, args, created_at)
		SELECT pelton.id_at(now() - n * interval '1 second') + n, 'k' || n % 3, '{}', now() FROM generate_series(1, 20000) n`)
	s.Exec(`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) SELECT id, 1, 'completed', 1 FROM pelton.job`)
	s.Exec(`INSERT INTO pelton.job_log (job_id, run, stream, pos, data) SELECT id, 1, 'o', 0, 'x' FROM pelton.job`)
	s.FillTallies()
	s.Exec(`ANALYZE`)
	var newest int64
	if err := s.Pool.QueryRow(t.Context(), `SELECT max(id) FROM pelton.job`).Scan(&newest); err != nil {
		t.Fatal(err)
	}
	hour := time.Now().Add(-time.Hour)
	for name, args := range map[string][]any{
		"job_runs": {newest, 99, 20, 100}, "flow_job_logs": {newest, 0, int64(0), 32, int64(1) << 62},
		"log_before": {newest, 1, int64(1) << 62, []string{"o"}, int64(100), 100}, "job_running": {newest},
		"queue_charts": {hour, time.Now(), 60}, "last_changes": {[]string{"mail"}, []string{"queue.pause"}},
	} {
		rows, err := s.Pool.Query(t.Context(), "EXPLAIN "+look.Load("pelton").Get(name), append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plan := strings.Join(lines, "\n")
		for _, table := range []string{"job", "job_attempt", "job_log", "queue_tally", "audit"} {
			for _, line := range lines {
				if strings.Contains(line, "Seq Scan on "+table+"_") && !strings.Contains(line, "Seq Scan on job_old") && !strings.Contains(line, "Seq Scan on job_attempt_old") &&
					!strings.Contains(line, "job_scheduled") && !strings.Contains(line, "job_parked") && !strings.Contains(line, "job_lease") && !strings.Contains(line, "job_change") && !strings.Contains(line, "job_ready") && !strings.Contains(line, "job_void") ||
					strings.HasSuffix(strings.SplitN(line, "  (", 2)[0], "Seq Scan on "+table) {
					t.Errorf("%s scans: %s\n%s", name, line, plan)
				}
			}
		}
	}
}
