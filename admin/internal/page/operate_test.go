package page_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

// bury makes dead letters, and returns their jobs.
func bury(s *pagetest.Site, n int, queue string) (ids []int64) {
	for i := range n {
		ids = append(ids, s.Insert(pagetest.Task{Note: evil, Fail: fmt.Sprintf("broken %d %s", i, evil)}, &river.InsertOpts{MaxAttempts: 1, Queue: queue}))
	}
	for _, id := range ids {
		s.WaitState(id, rivertype.JobStateDiscarded)
	}
	return ids
}

func letters(t *testing.T, s *pagetest.Site) int {
	t.Helper()
	list, err := s.Jobs.DeadList(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	ids := append(bury(s, 3, "default"), bury(s, 2, "mail")...)
	viewer, operator, admin := s.As("viewer"), s.As("operator"), s.As("admin")
	for query, want := range map[string]int{
		"": 5, "queue=mail": 2, "queue=mail,default": 5, "kind=nothing": 0, "reason=exhausted": 5, "reason=poison": 0, "since=1h": 5, "until=1h": 0,
		"queue=" + url.QueryEscape("' OR 1=1 --"): 0, "kind=" + url.QueryEscape(evil): 0,
	} {
		a := viewer.Want(200, "/dead?"+query)
		checkEscaped(t, query, a)
		if n := strings.Count(a.Body, `<a href="/dead/`); n != want {
			t.Errorf("/dead?%s: %d letters, want %d", query, n, want)
		}
		if strings.Contains(a.Body, "Redrive") || strings.Contains(a.Body, "checkbox") {
			t.Error("a viewer is offered what would be refused")
		}
	}
	for _, query := range []string{"reason=x", "since=x", "after=x", "queue=a%00"} {
		viewer.Want(400, "/dead?"+query)
	}
	checkEscaped(t, "a letter", viewer.Want(200, fmt.Sprintf("/dead/%d", ids[0]), "its attempts were used up", "broken 0"))
	viewer.Want(404, "/dead/77")
	for _, path := range []string{"/dead", fmt.Sprintf("/dead/%d", ids[0])} {
		if a := operator.Want(200, path, "Redrive"); strings.Contains(a.Body, "Discard") {
			t.Errorf("%s: an operator is offered what would be refused", path)
		}
		admin.Want(200, path, "Redrive", "Discard")
	}
	s.Exec(`UPDATE pelton.job_dead SET queue = queue || '-idle'`) // which nobody works, so that what is redriven stays where it is
	operator.WantPost(400, "/dead/redrive", nil, "tick some")
	operator.WantPost(400, "/dead/redrive", url.Values{"back": {"/dead?reason=exhausted"}}, "tick some", "Redrive all that match", fmt.Sprintf(`value="%d"`, ids[0]), "<option selected>exhausted")
	operator.WantPost(303, "/dead/redrive", url.Values{"id": {fmt.Sprint(ids[0])}}, fmt.Sprintf("new job of dead letter %d", ids[0]), "available")
	// The old job leads to the new one and back.
	made, err := s.Jobs.RedrivenAs(t.Context(), ids[0])
	if err != nil || len(made) != 1 {
		t.Fatalf("made of dead letter %d: %v, %v", ids[0], made, err)
	}
	link := `<a class="mono" href="/jobs/%d">`
	viewer.Want(200, fmt.Sprintf("/jobs/%d", ids[0]), "Redriven as", fmt.Sprintf(link, made[0]))
	viewer.Want(200, fmt.Sprintf("/jobs/%d", made[0]), "Redriven from", fmt.Sprintf(link, ids[0]))
	viewer.Want(404, fmt.Sprintf("/dead/%d", ids[0]), fmt.Sprintf("it was redriven as job %d", made[0]))
	operator.WantPost(303, "/dead/redrive", url.Values{"id": {fmt.Sprint(ids[1]), fmt.Sprint(ids[2])}}, "Made 2 new jobs")
	admin.Want(200, "/dead/discard?all=1&queue=mail-idle", "All dead letters that match the filter")
	admin.Want(200, fmt.Sprintf("/dead/discard?id=%d", ids[3]), fmt.Sprintf("The dead letter of job %d", ids[3]))
	if n := letters(t, s); n != 2 {
		t.Errorf("%d letters before anything was confirmed, want 2", n)
	}
	admin.WantPost(303, "/dead/discard", url.Values{"ids": {fmt.Sprint(ids[3])}}, "Discarded a dead letter")
	operator.WantPost(303, "/dead/redrive", url.Values{"all": {"1"}, "queue": {"nothing"}}, "Made 0 new jobs")
	operator.WantPost(303, "/dead/redrive", url.Values{"all": {"1"}, "queue": {"mail-idle"}})
	if n := letters(t, s); n != 0 {
		t.Errorf("%d letters are left", n)
	}
}

// A person redrives what they tick.
func TestRedriveInABrowser(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true, Jobs: pagetest.Working()})
	ids := bury(s, 2, "default")
	s.Exec(`UPDATE pelton.job_dead SET queue = 'idle'`) // which nobody works
	b := s.Browser("admin")
	b.Go("/dead")
	b.Click(fmt.Sprintf(`input[value="%d"]`, ids[0]))
	b.ClickText("Redrive those ticked")
	b.WaitFor("main", fmt.Sprintf("new job of dead letter %d", ids[0]))
	b.Go("/dead")
	if text := b.Text("tbody"); strings.Contains(text, fmt.Sprint(ids[0])) || !strings.Contains(text, fmt.Sprint(ids[1])) {
		t.Errorf("left: %s", text)
	}
	b.Click(`thead input[type="checkbox"]`)
	b.ClickText("Discard those ticked...")
	b.ClickText("Discard")
	b.WaitFor("main", "Discarded a dead letter")
	if n := letters(t, s); n != 0 {
		t.Errorf("%d letters are left", n)
	}
}

func TestExecutors(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()})
	job := s.Insert(pagetest.Task{Wait: true}, nil)
	s.WaitState(job, rivertype.JobStateRunning)
	s.Exec(`INSERT INTO pelton.executor (pid, name, host, queues, labels, stopped_at) VALUES (7, 'gone', '` + strings.ReplaceAll(evil, "'", "''") + `', '{etl}', '{gpu}', now())`)
	viewer := s.As("viewer")
	a := viewer.Want(200, "/executors", s.Jobs.ID(), "alive")
	if strings.Contains(a.Body, "gone") {
		t.Error("one that has ended is shown")
	}
	a = viewer.Want(200, "/executors?ended=1", s.Jobs.ID(), "gone", "stopped", "gpu")
	checkEscaped(t, "executors", a)
	viewer.Want(400, "/executors?after=x")
	viewer.Want(404, "/executors/77")
	list, err := s.Jobs.ExecutorList(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if x.Name == s.Jobs.ID() {
			viewer.Want(200, fmt.Sprintf("/executors/%d", x.ID), "What it runs", fmt.Sprintf(`href="/jobs/%d"`, job))
		}
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	operator := s.As("operator")
	operator.WantPost(303, "/queues/pause", url.Values{"queue": {"mail"}})
	s.Exec(`INSERT INTO pelton.audit (actor, action, target, before, after)
		SELECT 'mallory', 'job.update', '4711', json_build_object('queue', t), json_build_object('queue', 'b', 'new', t) FROM (SELECT '` + strings.ReplaceAll(evil, "'", "''") + `'::text AS t) e`)
	s.Exec(`INSERT INTO pelton.audit (actor, action, target) SELECT 'many', 'queue.resume', 'q' || n FROM generate_series(1, 150) n`)
	s.Exec(`INSERT INTO pelton.audit (actor, token, token_name, action, target) VALUES ('ann', 17, '` + strings.ReplaceAll(evil, "'", "''") + `', 'queue.pause', 'x')`)
	viewer := s.As("viewer")
	checkEscaped(t, "a token", viewer.Want(200, "/audit?actor=ann", "by token 17"))
	if a := viewer.Want(200, "/audit?actor=mallory"); strings.Contains(a.Body, "by token") {
		t.Error("what was done without a token is said to be done by one")
	}
	checkEscaped(t, "the audit", viewer.Want(200, "/audit?actor=mallory", "queue:", "&rarr;", `href="/jobs/4711"`))
	viewer.Want(200, "/audit?action=queue.pause&since=1h", "operator", "mail")
	if a := viewer.Want(200, "/audit?target="+url.QueryEscape("' OR 1=1 --"), "that fits"); strings.Contains(a.Body, "mallory") {
		t.Error("a filter lets through what does not fit")
	}
	a := viewer.Want(200, "/audit?actor=many", "Next page")
	if n := strings.Count(a.Body, "queue.resume"); n != 100 {
		t.Errorf("%d entries on a page", n)
	}
	for _, query := range []string{"since=x", "after=x", "actor=%00", "target=%ff"} {
		viewer.Want(400, "/audit?"+query)
	}
	s.As("etl").Want(403, "/audit")
}
