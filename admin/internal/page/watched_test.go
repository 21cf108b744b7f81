package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/internal/look"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/periodic"
)

// What went wrong comes first where an error is cut: of a program that is its last line on stderr.
func TestReasonComesFirst(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	noise := strings.Repeat("a line that says nothing of what went wrong\n", 20)
	failed := &command.ExitError{Program: "sh", ExitCode: 3, Stderr: noise + "cannot open /data/in.csv"}
	id := s.Insert(pagetest.Task{Fail: failed.Error()}, &river.InsertOpts{MaxAttempts: 1})
	s.WaitState(id, rivertype.JobStateDiscarded)
	viewer := s.As("viewer")
	for _, path := range []string{"/jobs", "/dead", fmt.Sprintf("/dead/%d", id), fmt.Sprintf("/jobs/%d", id)} {
		viewer.Want(200, path, `bad-text">cannot open /data/in.csv (program &#34;sh&#34; exited with code 3)</bdi>`)
	}
	viewer.Want(200, fmt.Sprintf("/jobs/%d", id), fmt.Sprintf(`href="/dead/%d">a dead letter`, id))
}

// A queue or a kind that nobody works is said to be so wherever somebody would wait for its jobs.
func TestNobodyWorks(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	lonely := s.Insert(pagetest.Task{}, &river.InsertOpts{Queue: "nobody"})
	strange, err := s.Jobs.Insert(t.Context(), jobs.RawArgs{JobKind: "strange", JSON: []byte(`{}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	paused := s.Insert(pagetest.Task{}, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour), Queue: "mail"})
	s.Exec(`SELECT pelton.pause_queue('mail', 'alice')`)
	viewer := s.As("viewer")
	page := func(id int64) string { return fmt.Sprintf("/jobs/%d", id) }
	viewer.Want(200, page(lonely), "no executor that works kind task takes jobs of queue nobody")
	viewer.Want(200, page(strange.Job.ID), "no executor works kind strange")
	viewer.Want(200, page(paused), "queue mail is paused")
	for _, path := range []string{"/", "/queues"} {
		n := 0
		pgtest.Eventually(t, pagetest.Patience, func() bool { // what waits may not have been read yet
			n = strings.Count(viewer.Want(200, path).Body, "no executor takes its jobs")
			return n > 0
		}, "%s says of no queue that nobody works it", path)
		if n != 1 {
			t.Errorf("%s: %d queues are said to have no executor", path, n)
		}
	}
}

// The overview says how flows and schedules stand, and leads there.
func TestOverviewStanding(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	viewer := s.As("viewer")
	viewer.Want(200, "/", "0 runs are live", "none failed", "no tick is to come")
	other := pagetest.Start(t, pagetest.Options{})
	if _, err := other.Schedules.Put(t.Context(), periodic.Schedule{Name: "team/nightly", Cron: "0 3 * * *", Job: &periodic.JobTarget{Kind: "task"}}); err != nil {
		t.Fatal(err)
	}
	other.Exec(`INSERT INTO pelton.schedule_tick (schedule_id, tick, at, source, outcome, reason)
		SELECT s.id, pelton.tick_key(now() - interval '1 hour'), now() - interval '1 hour', 'clock', 'skipped', 'missed' FROM pelton.schedule s`)
	other.As("viewer").Want(200, "/", "next <a href=\"/schedules/team%2Fnightly\">", "ticks of 1 schedule failed or were missed")
}

// The overview says which queues are paused, and of none that it is idle before what waits was read.
func TestOverviewPauses(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	if err := s.Jobs.QueuePause(t.Context(), "mail", nil); err != nil {
		t.Fatal(err)
	}
	if a := s.As("viewer").Want(200, "/", `<a href="/jobs?queue=mail">`, ">paused<"); strings.Contains(a.Body, "All queues are paused") {
		t.Error("one paused queue is said to be all")
	}
	other := pagetest.Start(t, pagetest.Options{})
	if err := other.Jobs.QueuePause(t.Context(), jobs.AllQueues, nil); err != nil {
		t.Fatal(err)
	}
	if a := other.As("viewer").Want(200, "/", "All queues are paused"); strings.Contains(a.Body, "/jobs?queue=*") {
		t.Error("all queues are shown as one")
	}
}

// A filter that cannot be read is shown again as it was typed, with what is wrong.
func TestBadFiltersStay(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	viewer := s.As("viewer")
	for path, typed := range map[string]string{
		"/jobs?kind=mine&since=yesterday": `name="kind" value="mine"`, "/dead?kind=mine&since=yesterday": `name="kind" value="mine"`,
		"/audit?actor=mine&since=yesterday": `name="actor" value="mine"`, "/runs?flow=mine&from=yesterday": `name="flow" value="mine"`,
	} {
		viewer.Want(400, path, typed, `value="yesterday"`, "is no time", `role="alert"`)
	}
}

// Operators cancel and run again what they have ticked.
func TestTickedJobs(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	failed := s.Insert(pagetest.Task{Fail: "no luck"}, &river.InsertOpts{MaxAttempts: 1})
	s.WaitState(failed, rivertype.JobStateDiscarded)
	runs := s.Insert(pagetest.Task{Wait: true}, nil)
	s.WaitState(runs, rivertype.JobStateRunning)
	later := s.Insert(pagetest.Task{}, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)})
	viewer, operator := s.As("viewer"), s.As("operator")
	if a := viewer.Want(200, "/jobs", "1 of 25"); strings.Contains(a.Body, "checkbox") || strings.Contains(a.Body, "ticked") {
		t.Error("a viewer is offered what would be refused")
	}
	viewer.WantPost(403, "/jobs/cancel", url.Values{"id": {fmt.Sprint(later)}})
	operator.WantPost(400, "/jobs/cancel", nil, "tick some")
	operator.WantPost(400, "/jobs/retry", url.Values{"id": {"x"}})
	operator.Want(200, "/jobs", "Cancel those ticked")
	operator.WantPost(303, "/jobs/cancel", url.Values{"id": {fmt.Sprint(failed), fmt.Sprint(later), "77"}},
		"Cancelled a job. Left out a job that had ended. Left out a job: job 77")
	operator.WantPost(303, "/jobs/cancel", url.Values{"id": {fmt.Sprint(runs)}}, " a job") // it may have ended already when it is looked at
	s.WaitState(later, rivertype.JobStateCancelled)
	s.WaitState(runs, rivertype.JobStateCancelled)
	if err := s.Jobs.QueuePause(t.Context(), "default", nil); err != nil {
		t.Fatal(err)
	}
	operator.WantPost(303, "/jobs/retry", url.Values{"id": {fmt.Sprint(failed), fmt.Sprint(later)}}, "Put 2 jobs in line.")
	s.WaitState(failed, rivertype.JobStateAvailable)
}

// What the overview reads of flows and schedules goes by indexes, however many there were.
func TestOverviewPlans(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	s.Exec(`WITH p AS (INSERT INTO pelton.flow_project (name) VALUES ('etl') RETURNING id), v AS (
			INSERT INTO pelton.flow_version (project_id, no, pushed_by, format) SELECT p.id, 1, 'x', 'code' FROM p RETURNING id, project_id)
		INSERT INTO pelton.flow_run (version_id, project_id, flow, status, created_by, options, ended_at)
		SELECT v.id, v.project_id, 'nightly', 'SUCCEEDED', 'x', '{}', CASE WHEN n > 20 THEN now() - n * interval '10 minutes' END FROM v, generate_series(1, 40000) n`)
	s.Exec(`INSERT INTO pelton.schedule (name, spec) SELECT 's' || n, '{}' FROM generate_series(1, 20000) n`)
	s.Exec(`INSERT INTO pelton.schedule_due (schedule_id, wake, next_at, decided) SELECT id, now() + id * interval '1 minute', now() + id * interval '1 minute', now() FROM pelton.schedule`)
	s.Exec(`INSERT INTO pelton.schedule_tick (schedule_id, tick, at, source, outcome)
		SELECT id, pelton.tick_key(now()) - n, now(), 'clock', 'fired' FROM pelton.schedule, generate_series(1, 3) n`)
	s.Exec(`ANALYZE`)
	for _, name := range []string{"overview_flows", "overview_bad_ticks", "overview_ticks"} {
		rows, err := s.Pool.Query(t.Context(), "EXPLAIN "+look.Load("pelton").Get(name))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if plan := strings.Join(lines, "\n"); strings.Contains(strings.ReplaceAll(plan, "Seq Scan on schedule_tick_old", ""), "Seq Scan") { // that one is empty
			t.Errorf("%s scans:\n%s", name, plan)
		}
	}
}

// The dead letter of a flow's node leads to its run, and is not offered to be redriven.
func TestDeadLetterOfANode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{})
	night := flow.New("nightly")
	night.Job("load", flowtest.Args{})
	h.push(t, "etl", night)
	h.do("load", func(context.Context) (map[string]string, error) { return nil, errors.New("no luck") })
	id := h.start(t, "etl", "nightly", flow.Options{})
	h.ended(t, id, "FAILED")
	letters, err := h.Jobs.DeadList(t.Context(), nil)
	if err != nil || len(letters) != 1 {
		t.Fatalf("%d dead letters (%v)", len(letters), err)
	}
	operator := h.As("operator")
	link := fmt.Sprintf(`<a href="/runs/%d">run %d</a>`, id, id)
	operator.Want(200, "/dead", link)
	if a := operator.Want(200, fmt.Sprintf("/dead/%d", letters[0].JobID), link, "retry the run"); strings.Contains(a.Body, "Redrive</button>") {
		t.Error("what would be refused is offered")
	}
}
