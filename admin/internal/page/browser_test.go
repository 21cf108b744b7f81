package page_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

// shot is a page to look at.
type shot struct{ name, path string }

// furnish fills a site with something of everything, and returns its pages.
func furnish(t *testing.T, s *pagetest.Site) []shot {
	t.Helper()
	s.FillTallies()
	s.Exec(`SELECT pelton.enqueue('strange', queue => 'reports') FROM generate_series(1, 1234)`)
	long := ""
	for n := range 60 {
		long += fmt.Sprintf("2026-01-31 12:00:%02d read file %d of 60, 12,345 rows, all of them good\n", n, n)
	}
	good := s.Insert(pagetest.Task{Note: "import of customers", Output: "12345 rows", Print: long}, &river.InsertOpts{Tags: []string{"nightly", "customers"}})
	s.Insert(pagetest.Task{Note: "sum up", Output: "7"}, nil)
	dead := s.Insert(pagetest.Task{
		Note: "send", Warn: "the server closed the connection\n", Panic: "runtime error: index out of range [3] with length 2",
	}, &river.InsertOpts{MaxAttempts: 1, Queue: "mail"})
	again := s.Insert(pagetest.Task{Fail: "dial tcp 192.0.2.17:25: connect: connection refused"}, &river.InsertOpts{Queue: "mail"})
	later := s.Insert(pagetest.Task{Note: "report"}, &river.InsertOpts{ScheduledAt: time.Now().Add(5 * time.Hour)})
	runs := s.Insert(pagetest.Task{Wait: true, Print: "begun\n"}, &river.InsertOpts{Tags: []string{"long"}})
	s.WaitState(good, rivertype.JobStateCompleted)
	s.WaitState(dead, rivertype.JobStateDiscarded)
	s.WaitState(again, rivertype.JobStateRetryable)
	s.WaitState(runs, rivertype.JobStateRunning)
	s.Exec(`SELECT pelton.pause_queue('reports', 'alice')`)
	furnishSchedules(s)
	furnishAdmin(t, s)
	job := func(id int64, rest string) string { return fmt.Sprintf("/jobs/%d%s", id, rest) }
	return []shot{
		{"overview", "/"},
		{"overview-day", "/?window=day"},
		{"jobs", "/jobs"},
		{"jobs-none", "/jobs?kind=nothing&state=completed"},
		{"job", job(good, "")},
		{"job-failed", job(dead, "")},
		{"job-retryable", job(again, "")},
		{"job-scheduled", job(later, "")},
		{"job-running", job(runs, "")},
		{"job-delete", job(good, "/delete")},
		{"log", job(good, "/log")},
		{"log-search", job(good, "/log?q=file+1")},
		{"queues", "/queues"},
		{"dead", "/dead"},
		{"letter", fmt.Sprintf("/dead/%d", dead)},
		{"executors", "/executors"},
		{"executor", "/executors/1"},
		{"audit", "/audit"},
		{"schedules", "/schedules"},
		{"schedule", "/schedules/team%2Fnightly"},
		{"schedule-new", "/schedule/new"},
		{"schedule-edit", "/schedules/team%2Fnightly/edit"},
		{"not-found", "/nothing"},
		{"account", "/account"},
		{"alerts", "/alerts?rule=waiting&subject=mail"},
		{"users", "/admin"},
		{"user", "/admin/users/carol"},
		{"user-self", "/admin/users/admin"},
		{"user-disable", "/admin/users/carol/disable"},
		{"tokens", "/admin/tokens?all=1"},
		{"secrets", "/admin/secrets"},
		{"secret-delete", "/admin/secrets/delete?project=etl&name=DB_PASSWORD"},
		{"job-erase", job(good, "/erase")},
		{"job-new", "/jobs/new"},
		{"job-new-like", "/jobs/new?like=" + strconv.FormatInt(good, 10)},
		{"job-change", job(later, "/change")},
		{"job-reschedule", job(later, "/reschedule")},
		{"partitions", "/partitions"},
		{"partitions-maintain", "/partitions/maintain"},
	}
}

// Every page fits on a wide and on a narrow screen, and no script fails. With PELTON_SCREENSHOTS=DIR, pictures of all are written there.
func TestPagesFit(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true, Jobs: workingLongest()})
	shots := append(furnish(t, s), furnishLongest(t, s)...)
	b := s.Browser("admin")
	dir := os.Getenv("PELTON_SCREENSHOTS")
	look := func(one shot) {
		t.Helper()
		b.Go(one.path)
		for _, width := range []int64{1280, 390} {
			b.View(width, false)
			b.Fits()
			if dir == "" {
				continue
			}
			b.Screenshot(dir, one.name+"-"+strconv.FormatInt(width, 10)+"-light")
			b.View(width, true)
			b.Screenshot(dir, one.name+"-"+strconv.FormatInt(width, 10)+"-dark")
		}
	}
	for _, one := range shots {
		look(one)
	}
	b.View(1280, false)
	for _, path := range []string{"/jobs", "/dead"} {
		b.Go(path)
		if high := b.Eval(`[...document.querySelectorAll("tbody tr")].filter((e) => e.offsetHeight > 300).length`); high != "0" {
			t.Errorf("%s has %s rows that long names make higher than 300 px", path, high)
		}
		if narrow := b.Eval(`[...document.querySelectorAll("td.args")].filter((e) => e.offsetWidth < 280).length`); narrow != "0" {
			t.Errorf("%s has %s rows whose args are less than 280 px wide", path, narrow)
		}
	}
	b.ClickText("Log out")
	b.WaitFor("h1", "Log in")
	look(shot{"login", "/login"})
}

// What is live changes without a reload, and a person does with buttons what the page offers.
func TestJobInABrowser(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true, Jobs: pagetest.Working()})
	id := s.Insert(pagetest.Task{Wait: true}, nil)
	s.WaitState(id, rivertype.JobStateRunning)
	b := s.Browser("admin")
	b.Go("/jobs")
	b.ClickText(strconv.FormatInt(id, 10))
	b.WaitFor("#now", "running")
	b.WaitFor(".log", "step 3")
	b.ClickText("Cancel")
	b.WaitFor(".flash", "The job")
	b.WaitFor("#now", "cancelled")
	b.WaitFor(".log", "step 1")
	b.Go(fmt.Sprintf("/jobs/%d", id))
	b.ClickText("Run again")
	b.WaitFor(".flash", "The job was")
	b.WaitFor("#now", "running")
	// Enter in a list ticks, and does nothing to what is ticked there.
	b.Go("/jobs")
	b.Eval(`addEventListener("submit", (e) => { e.preventDefault(); window.sent = e.submitter.innerText; })`)
	b.Enter(`tbody [type="checkbox"]`)
	b.WaitUntil(`document.querySelector("tbody [type=checkbox]").checked`)
	if sent := b.Eval(`window.sent`); sent != "undefined" {
		t.Errorf("Enter on a tick pressed %s", sent)
	}
	b.ClickText("Cancel those ticked")
	b.WaitUntil(`window.sent === "Cancel those ticked"`)
	// Without scripts it presses a button that does nothing.
	b.Go("/jobs")
	b.Eval(`(document.querySelector("form[data-all]").onkeypress = null, addEventListener("submit", (e) => { window.sent = e.submitter.formMethod; }))`)
	b.Click(`tbody [type="checkbox"]`)
	b.Enter(`tbody [type="checkbox"]`)
	b.WaitUntil(`window.sent === "dialog" && (window.looks = (window.looks ?? 0) + 1) > 50 && document.querySelector("tbody [type=checkbox]").checked`)
	b.Go("/")
	b.WaitUntil(`document.querySelector("#figures").dataset.liveState === "live"`)
	if b.Eval(`document.querySelectorAll("#figures svg").length > 2`) != "true" {
		t.Error("no charts")
	}
}
