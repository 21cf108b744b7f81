package page_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

func TestRescheduleJob(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	due := time.Date(2031, 2, 3, 4, 5, 6, 789000, time.UTC)
	id := s.Insert(pagetest.Task{}, &river.InsertOpts{Queue: idle, ScheduledAt: due})
	waits := s.Insert(pagetest.Task{}, &river.InsertOpts{Queue: idle})
	node := s.Insert(pagetest.Task{}, &river.InsertOpts{Queue: idle, ScheduledAt: due})
	s.Exec(`UPDATE pelton.job SET metadata = '{"pelton:flow": {"run": 7, "node": 2, "path": "a:b"}}' WHERE id = $1`, node)
	page := func(id int64) string { return fmt.Sprintf("/jobs/%d", id) }
	at := page(id) + "/reschedule"
	viewer, operator, admin := s.As("viewer"), s.As("operator"), s.As("admin")
	viewer.Want(403, at)
	viewer.WantPost(403, at, nil)
	operator.Want(404, "/jobs/77/reschedule")
	operator.Want(200, page(id), `href="`+at+`"`)
	for _, other := range []int64{waits, node} {
		if a := operator.Want(200, page(other)); strings.Contains(a.Body, "/reschedule") {
			t.Errorf("job %d is offered what would be refused", other)
		}
	}
	if a := viewer.Want(200, page(id)); strings.Contains(a.Body, "/reschedule") {
		t.Error("a viewer is offered what would be refused")
	}
	operator.Want(409, page(waits)+"/reschedule", "is available: only one that is scheduled or retryable waits for a time")
	operator.Want(409, page(node)+"/reschedule", "works for node a:b of run 7")
	a := operator.Want(200, at, `value="2031-02-03 04:05:06"`, "UTC", "scheduled")
	form := url.Values{"seen": {hidden(t, a, "seen")}}
	for _, typed := range []string{"", "soon", "-5m", "2031-02-30", "3000000d", "0000-01-01", "0001-01-01"} {
		form.Set("at", typed)
		operator.WantPost(422, at, form, `role="alert"`, `name="at" value="`+typed+`"`, "Reschedule")
	}
	// Left as it is shown it changes nothing, not even fractions of a second: no entry of the audit.
	form.Set("at", "2031-02-03 04:05:06")
	operator.WantPost(303, at, form, "The job is due at 2031-02-03 04:05:06 UTC.")
	form.Set("at", "2031-02-03 05:00")
	operator.WantPost(400, at, url.Values{"at": form["at"]}, "open it again")
	operator.WantPost(303, at, form, "The job is due at 2031-02-03 05:00:00 UTC.", "2031-02-03 05:00:00")
	operator.WantPost(303, at, form, "The job is due at 2031-02-03 05:00:00 UTC.") // pressed twice
	// Somebody had the form open since before that, and is told; they may insist.
	form.Set("at", "2031-02-04")
	late := admin.WantPost(409, at, form, "the job was due at 2031-02-03 04:05:06 UTC, and is due at 2031-02-03 05:00:00 UTC now; operator changed it last", `value="2031-02-04"`)
	form.Set("seen", hidden(t, late, "seen"))
	admin.WantPost(303, at, form, "The job is due at 2031-02-04 00:00:00 UTC.")
	operator.Want(200, fmt.Sprintf("/audit?action=job.reschedule&target=%d", id), "operator", "admin", "2031-02-03T04:05:06", "2031-02-04T00:00:00")
	if n := count(t, s, `SELECT count(*) FROM pelton.audit WHERE action = 'job.reschedule'`); n != 2 {
		t.Errorf("%d entries of the audit, want 2", n)
	}
	// It ends while the form is open.
	if _, err := s.Jobs.JobCancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	operator.WantPost(409, at, form, "is cancelled: it has ended")
	operator.WantPost(409, page(node)+"/reschedule", form, "works for node a:b of run 7")
	operator.WantPost(409, page(waits)+"/reschedule", form, "is available: its time has come")
}

// Those that are ticked get another time in two steps; those that wait for none are left out.
func TestRescheduleTickedJobs(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	later := func() int64 {
		return s.Insert(pagetest.Task{}, &river.InsertOpts{Queue: idle, ScheduledAt: time.Now().Add(time.Hour)})
	}
	one, two, waits := later(), later(), s.Insert(pagetest.Task{}, &river.InsertOpts{Queue: idle})
	operator := s.As("operator")
	s.As("viewer").WantPost(403, "/jobs/reschedule", url.Values{"id": {fmt.Sprint(one)}})
	operator.Want(200, "/jobs", `formaction="/jobs/reschedule"`)
	operator.WantPost(400, "/jobs/reschedule", nil, "tick some jobs first")
	form := url.Values{"id": {fmt.Sprint(one), fmt.Sprint(two), fmt.Sprint(waits)}, "back": {"/jobs?queue=idle"}}
	operator.WantPost(200, "/jobs/reschedule", form, "Reschedule 3 jobs", fmt.Sprintf(`name="id" value="%d"`, two), `name="back" value="/jobs?queue=idle"`)
	form.Set("at", "whenever")
	operator.WantPost(422, "/jobs/reschedule", form, `value="whenever"`, "is no time", fmt.Sprintf(`name="id" value="%d"`, waits))
	form.Set("at", "2031-02-03 05:00")
	a := operator.WantPost(303, "/jobs/reschedule", form, "Gave 2 jobs another time.", "Left out a job:", "is available: its time has come")
	if to := a.Header.Get("Location"); to != "/jobs?queue=idle" {
		t.Errorf("it leads to %s", to)
	}
	if n := count(t, s, `SELECT count(*) FROM pelton.job_scheduled WHERE due = '2031-02-03 05:00+00'`); n != 2 {
		t.Errorf("%d jobs are due then, want 2", n)
	}
}

// A person gives a job another time, by the keyboard.
func TestRescheduleInABrowser(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	id := s.Insert(pagetest.Task{}, &river.InsertOpts{Queue: idle, ScheduledAt: time.Now().Add(time.Hour)})
	b := s.Browser("admin")
	b.Go(fmt.Sprintf("/jobs/%d", id))
	b.ClickText("Reschedule...")
	b.Fill(`[name="at"]`, "2031-02-03 05:00")
	b.ClickText("Reschedule")
	b.WaitFor(".flash", "The job is due at 2031-02-03 05:00:00 UTC.")
	b.Go("/jobs")
	b.Eval(`document.querySelector("tbody input[name=id]").click()`)
	b.ClickText("Reschedule those ticked...")
	b.WaitFor("h1", "Reschedule a job")
	b.Fill(`[name="at"]`, "2031-03-04 05:00")
	b.ClickText("Reschedule")
	b.WaitFor(".flash", "Gave a job another time.")
}
