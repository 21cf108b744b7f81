package page_test

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

// furnishSchedules stores a few, with ticks behind them.
func furnishSchedules(s *pagetest.Site) {
	s.Exec(`SELECT pelton.enqueue('report')`)
	s.Exec(`WITH made AS (
		INSERT INTO pelton.schedule (name, spec, paused_at, paused_why, paused_by)
		SELECT name, json_build_object('name', name, 'cron', cron, 'time_zone', zone, 'description', 'Sums of the day before', 'job', json_build_object('kind', 'report')),
			CASE WHEN paused THEN now() END, CASE WHEN paused THEN 'person' END, CASE WHEN paused THEN 'alice' END
		FROM (VALUES ('team/nightly', '30 2 * * *', 'Europe/Berlin', false), ('team/weekly', '0 7 * * 1', 'America/New_York', true)) v(name, cron, zone, paused)
		RETURNING id
	), due AS (
		INSERT INTO pelton.schedule_due (schedule_id, decided, next_at, wake)
		SELECT id, now(), date_trunc('day', now()) + interval '25.5 hours', date_trunc('day', now()) + interval '25.5 hours' FROM made
	)
	INSERT INTO pelton.schedule_tick (schedule_id, tick, at, decided_at, source, outcome, reason, job_id)
	SELECT m.id, pelton.tick_key(t.at), t.at, t.at + interval '80 ms', 'clock', CASE WHEN n % 7 = 3 THEN 'skipped' ELSE 'fired' END,
		CASE WHEN n % 7 = 3 THEN 'overlap' END, CASE WHEN n % 7 <> 3 THEN (SELECT max(id) FROM pelton.job) END
	FROM made m, generate_series(1, 20) n, LATERAL (SELECT date_trunc('day', now()) + interval '1.5 hours' - n * interval '1 day' AS at) t`)
}

// put stores schedules.
func put(t *testing.T, s *pagetest.Site, list ...periodic.Schedule) {
	t.Helper()
	for _, one := range list {
		if _, err := s.Schedules.Put(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
}

func nightly(name string) periodic.Schedule {
	return periodic.Schedule{Name: name, Cron: "30 2 * * *", TimeZone: "America/New_York", Description: evil, Job: &periodic.JobTarget{Kind: "noop"}}
}

// pushFlow stores a flow of one node in a project.
func pushFlow(t *testing.T, s *pagetest.Site, project string) {
	t.Helper()
	built, err := flow.New("daily").Noop("a").Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flows.PushFlows(t.Context(), project, built); err != nil {
		t.Fatal(err)
	}
}

// A button that is pressed twice starts one thing, and leads to it both times; a form that is loaded anew starts another.
func TestFormsThatAreSentTwice(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	pushFlow(t, s, "etl")
	put(t, s, nightly("team/nightly"))
	operator := s.As("operator")
	past := time.Now().AddDate(0, 0, -3).Format("2006-01-02")
	for _, c := range []struct {
		page, action, count string
		form                url.Values
	}{
		{"/flows/etl/daily", "/flows/etl/daily/run", `SELECT count(*) FROM pelton.flow_run`, url.Values{"params": {"x=1"}}},
		{"/schedules/team%2Fnightly", "/schedules/team%2Fnightly/trigger", `SELECT count(*) FROM pelton.job`, url.Values{}},
		{"/schedules/team%2Fnightly", "/schedules/team%2Fnightly/backfill", `SELECT count(*) FROM pelton.schedule_backfill`, url.Values{"from": {past}, "to": {past}}},
	} {
		for i := range 2 {
			page := operator.Want(200, c.page)
			_, form, ok := strings.Cut(page.Body, `action="`+c.action)
			if !ok {
				t.Fatalf("%s has no form for %s", c.page, c.action)
			}
			c.form.Set("key", hidden(t, pagetest.Answer{Body: form}, "key"))
			before := count(t, s, c.count)
			first := operator.WantPost(303, c.action, c.form)
			second := operator.WantPost(303, c.action, c.form)
			if n := count(t, s, c.count) - before; n != 1 {
				t.Errorf("%s: form %d started %d things, want 1", c.action, i, n)
			}
			if first.Header.Get("Location") != second.Header.Get("Location") {
				t.Errorf("%s: led to %s, then to %s", c.action, first.Header.Get("Location"), second.Header.Get("Location"))
			}
			c.form.Set("params", fmt.Sprintf("x=%d", i+2))
			operator.WantPost(409, c.action, c.form, "with other values")
		}
	}
	for _, action := range []string{"/schedules/team%2Fnightly/trigger", "/flows/etl/daily/run", "/jobs/new"} {
		operator.WantPost(400, action, url.Values{"key": {strings.Repeat("k", 201)}}, "at most 200")
	}
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	pushFlow(t, s, "etl")
	ofFlow := periodic.Schedule{Name: "etl/daily", Cron: "@daily", Flow: &periodic.FlowTarget{Project: "etl", Flow: "daily"}}
	strange := nightly(`x"><img src=x onerror=alert(1)>/y?z#%20`)
	put(t, s, nightly("team/nightly"), ofFlow, strange, periodic.Schedule{Name: "often", Every: periodic.Duration(time.Hour), Job: &periodic.JobTarget{Kind: "sum"}})
	viewer, operator, etl := s.As("viewer"), s.As("operator"), s.As("etl")
	for query, want := range map[string][]string{
		"": {"team/nightly", "etl/daily", "often"}, "prefix=team": {"team/nightly"}, "kind=sum": {"often"}, "flow=etl": {"etl/daily"}, "flow=etl/daily": {"etl/daily"},
		"state=paused": {}, "prefix=" + url.QueryEscape("' OR 1=1 --"): {}, "flow=" + url.QueryEscape(evil): {}, "after=often": {"team/nightly"},
	} {
		a := viewer.Want(200, "/schedules?"+query)
		checkEscaped(t, query, a)
		for _, name := range []string{"team/nightly", "etl/daily", "often"} {
			wanted := strings.Contains(strings.Join(want, " "), name)
			if shown := strings.Contains(a.Body, `href="/schedules/`+url.PathEscape(name)+`"`); shown != wanted {
				t.Errorf("/schedules?%s: %s is shown: %v", query, name, shown)
			}
		}
	}
	viewer.Want(400, "/schedules?state=strange")
	viewer.Want(400, "/schedules?prefix=a%00b")
	a := viewer.Want(200, "/schedules/team%2Fnightly", "America/New_York", "30 2 * * *", "To come")
	checkEscaped(t, "a schedule", a)
	if strings.Contains(a.Body, "/pause") || strings.Contains(a.Body, "/edit") {
		t.Error("a viewer is offered what would be refused")
	}
	checkEscaped(t, "a strange name", operator.Want(200, "/schedules/"+url.PathEscape(strange.Name), "Pause"))
	viewer.Want(404, "/schedules/nothing")
	// Who has a role in a project sees what belongs to it, and nothing else.
	if a := etl.Want(200, "/schedules", "etl/daily"); strings.Contains(a.Body, "nightly") || strings.Contains(a.Body, "often") {
		t.Errorf("too much: %s", a.Body)
	}
	etl.Want(200, "/schedules/etl%2Fdaily", "Start a run now")
	for _, path := range []string{"/schedules/etl%2Fdaily/edit", "/schedules/etl%2Fdaily/delete"} {
		etl.Want(403, path)
	}
	for _, path := range []string{"/schedules/often", "/schedules/often/edit", "/live/schedules/often", "/live?part=/live/schedules/often"} {
		etl.Want(404, path)
	}
	etl.WantPost(404, "/schedules/often/pause", nil)
	etl.WantPost(303, "/schedules/etl%2Fdaily/pause", nil, "Paused", "by <bdi>etl</bdi>")
	operator.WantPost(303, "/schedules/team%2Fnightly/pause", nil, "Paused", "Resume")
	viewer.Want(200, "/schedules?state=paused", "team/nightly")
	operator.WantPost(303, "/schedules/team%2Fnightly/resume", nil, "Resumed", "Pause")
	operator.WantPost(409, "/schedules/team%2Fnightly/resume", nil)
	operator.WantPost(303, "/schedules/team%2Fnightly/trigger", nil, "was started", "fired", "available", "by <bdi>operator</bdi>")
	operator.WantPost(303, "/schedules/etl%2Fdaily/trigger", nil, "Run 1 was started", `href="/runs/1"`)
	viewer.Want(200, "/schedules/team%2Fnightly?outcome=fired&since=1h", "operator")
	viewer.Want(200, "/schedules/team%2Fnightly?outcome=skipped", "None yet")
	viewer.Want(400, "/schedules/team%2Fnightly?outcome=x")
	viewer.Want(400, "/schedules/team%2Fnightly?after=x")
	past := time.Now().AddDate(0, 0, -3)
	day := func(n int) string { return past.AddDate(0, 0, n).Format("2006-01-02") }
	operator.WantPost(303, "/schedules/team%2Fnightly/backfill", url.Values{"from": {day(0)}, "to": {day(2)}, "parallel": {"2"}}, "3 ticks", "Cancel backfill 1")
	operator.WantPost(400, "/schedules/team%2Fnightly/backfill", url.Values{"from": {day(2)}, "to": {day(0)}}, `value="`+day(2)+`"`)
	operator.WantPost(400, "/schedules/team%2Fnightly/backfill", url.Values{"from": {"yesterday"}, "to": {day(2)}, "parallel": {"7"}, "all": {"1"}},
		"both in America/New_York", `<details id="backfill" open`, `name="from" value="yesterday"`, `name="to" value="`+day(2)+`"`, `name="parallel" value="7"`, `value="1" checked`)
	operator.WantPost(404, "/schedules/often/backfill/cancel", url.Values{"backfill": {"1"}})
	operator.WantPost(303, "/schedules/team%2Fnightly/backfill/cancel", url.Values{"backfill": {"1"}}, "starts nothing more", "cancelled")
	if _, err := s.Pool.Exec(t.Context(), `UPDATE pelton.schedule_backfill SET left_out = 3, not_started = 2, why = 'no <flow>'`); err != nil {
		t.Fatal(err)
	}
	viewer.Want(200, "/schedules/team%2Fnightly", "3, of these 2 could not be started: no &lt;flow&gt;")
	if a := operator.Want(200, "/schedules/often", "Start a run now"); strings.Contains(a.Body, "/delete") || strings.Contains(a.Body, "/edit") {
		t.Error("an operator is offered what would be refused")
	}
	admin := s.As("admin")
	admin.Want(200, "/schedules/often", "/delete", "/edit")
	admin.Want(200, "/schedules/often/delete", "The schedule is removed")
	admin.WantPost(303, "/schedules/often/delete", nil, "Deleted schedule often")
	viewer.Want(404, "/schedules/often")
}

func TestScheduleForm(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	viewer, admin, etl := s.As("viewer"), s.As("admin"), s.As("etl")
	viewer.Want(403, "/schedule/new")
	s.As("operator").Want(403, "/schedule/new")
	admin.Want(200, "/schedule/new?kind=report", `value="report"`)
	form := url.Values{
		"name": {"night"}, "by": {"cron"}, "cron": {"30 2 * * *"}, "zone": {"America/New_York"}, "starts": {"job"}, "kind": {"noop"}, "args": {`{"n": 1}`},
		"missed": {"all:3"}, "gap": {"next"}, "repeat": {"both"}, "tags": {"red, blue"}, "description": {evil},
	}
	change := func(pairs ...string) url.Values {
		changed := url.Values{}
		maps.Copy(changed, form)
		for i := 0; i < len(pairs); i += 2 {
			changed.Set(pairs[i], pairs[i+1])
		}
		return changed
	}
	// The ticks to come are shown before anything is stored, with what clock changes do to them.
	at := change("cron", "30 2 8 3 *", "start", "2027-01-01")
	a := admin.WantPost(200, "/schedule", at, "2028-03-08 02:30:00 -05:00")
	checkEscaped(t, "the form", a)
	admin.WantPost(200, "/schedule", change("cron", "30 2 14 3 *", "start", "2027-01-01"), "2027-03-14 03:00:00 -04:00", "moved, 02:30:00 on the wall")
	admin.WantPost(200, "/schedule", change("by", "delay", "delay", "5m"), "5m after the end")
	viewer.Want(404, "/schedules/night")
	for name, value := range map[string]string{
		"cron": "61 2 * * *", "zone": "Mars/Base", "args": "[1]", "missed": "sometimes", "overlap": "x", "grace": "soon", "priority": "9", "by": "whim", "start": "whenever", "name": " ",
		"kind": "", "metadata": "{", "max_attempts": "-1",
	} {
		admin.WantPost(422, "/schedule", change(name, value, "do", "save"), "Nothing was stored")
	}
	admin.WantPost(422, "/schedule", change("kind", "command", "do", "save"), "args: ")
	viewer.WantPost(403, "/schedule", change("do", "save"))
	s.As("operator").WantPost(403, "/schedule", change("do", "save"))
	etl.WantPost(403, "/schedule", change("do", "save"))
	admin.WantPost(303, "/schedule", change("do", "save"), "Schedule night: created")
	admin.WantPost(409, "/schedule", change("do", "save"), "the name &#34;night&#34; is taken")
	// Leaving the form leads back, also where the name has a slash.
	put(t, s, nightly("sales/etl"))
	admin.Want(200, "/schedules/sales%2Fetl/edit", `<a href="/schedules/sales%2Fetl">Cancel</a>`)
	admin.Want(200, "/schedule/new", `<a href="/schedules">Cancel</a>`)
	e, err := s.Schedules.Get(t.Context(), "night")
	if err != nil || e.Missed.String() != "all:3" || e.DSTOverlap.String() != "both" || len(e.Job.Tags) != 2 || strings.ReplaceAll(string(e.Job.Args), " ", "") != `{"n":1}` || e.Description != strings.TrimSpace(evil) {
		t.Fatalf("%+v, %v", e, err)
	}
	// The form of a schedule that is there says what it is, so that saving it unchanged changes nothing.
	a = admin.Want(200, "/schedules/night/edit", `name="old" value="night"`)
	checkEscaped(t, "the form of a schedule", a)
	admin.WantPost(303, "/schedule", change("old", "night", "seen_edition", e.Edition().String(), "do", "save"), "Schedule night: unchanged")
	admin.WantPost(303, "/schedule", change("old", "night", "seen_edition", e.Edition().String(), "cron", "0 4 * * *", "do", "save"), "Schedule night: changed", "0 4 * * *")
	admin.WantPost(400, "/schedule", change("old", "night", "do", "save"), "open it again")
	// Schedules of a project's flows are made by its admins, who do not take other's.
	pushFlow(t, s, "etl")
	ofFlow := url.Values{"name": {"mine"}, "by": {"every"}, "every": {"1h"}, "starts": {"flow"}, "project": {"etl"}, "flow": {"daily"}, "options": {`{"params": {"a": "b"}}`}, "do": {"save"}}
	etl.WantPost(403, "/schedule", ofFlow)
	if err := s.Access.SetRole(t.Context(), "test", "etl", access.Grant{Project: "etl", Role: access.Admin}); err != nil {
		t.Fatal(err)
	}
	etl.WantPost(303, "/schedule", ofFlow, "Schedule mine: created")
	// Whose a name is that is taken is not told.
	ofFlow.Set("name", "night")
	if a := etl.WantPost(409, "/schedule", ofFlow, "the name &#34;night&#34; is taken"); strings.Contains(a.Body, "0 4 * * *") {
		t.Errorf("it tells of a schedule of others: %s", a.Body)
	}
	ofFlow.Set("name", "mine")
	ofFlow.Set("options", `{"parms": {}}`)
	etl.WantPost(422, "/schedule", ofFlow, "parms")
	ofFlow.Set("options", "")
	ofFlow.Set("old", "night")
	ofFlow.Set("seen_edition", e.Edition().String())
	etl.WantPost(404, "/schedule", ofFlow)
	if got, err := s.Schedules.Get(t.Context(), "mine"); err != nil || got.Flow.Options.Params["a"] != "b" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Two people change a schedule: the second is told what the first did, and overwrites it when they insist.
func TestScheduleChangedByTwo(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	s.Add("ann", access.Grant{Project: access.Everything, Role: access.Admin})
	long := strings.Repeat("long ", 60)
	if _, err := s.Schedules.Put(t.Context(), periodic.Schedule{
		Name: "shared", Cron: "0 3 * * *", Job: &periodic.JobTarget{Kind: "noop", Args: []byte(`{"odd": "a` + "\u200b" + `b ` + long + `"}`)},
	}); err != nil {
		t.Fatal(err)
	}
	ann, admin := s.As("ann"), s.As("admin")
	form := func(a pagetest.Answer, cron, description string) url.Values {
		return url.Values{
			"old": {"shared"}, "name": {"shared"}, "seen": {hidden(t, a, "seen")}, "seen_edition": {hidden(t, a, "seen_edition")}, "by": {"cron"}, "cron": {cron}, "zone": {"UTC"},
			"starts": {"job"}, "kind": {"noop"}, "gap": {"next"}, "repeat": {"first"}, "description": {description}, "args": {textarea(t, a, "args")}, "do": {"save"},
		}
	}
	opened := admin.Want(200, "/schedules/shared/edit")
	if !strings.Contains(textarea(t, opened, "args"), `a\u200bb`) {
		t.Errorf("what acts is no escape: %s", opened.Body)
	}
	changed := form(ann.Want(200, "/schedules/shared/edit"), "0 4 * * *", evil)
	changed.Set("args", "{}")
	ann.WantPost(303, "/schedule", changed, "Schedule shared: changed")
	mine := form(opened, "0 5 * * *", "")
	refused := admin.WantPost(409, "/schedule", mine, "the schedule is not any more what you saw; ann changed it last", "cron: it was &#34;0 3 * * *&#34;, and is &#34;0 4 * * *&#34;",
		"args: it was a long text, and is &#34;{}&#34;", "description: it was nothing", `value="0 5 * * *"`)
	checkEscaped(t, "the form that is refused", refused)
	if e, err := s.Schedules.Get(t.Context(), "shared"); err != nil || e.Cron != "0 4 * * *" {
		t.Errorf("%+v, %v", e, err)
	}
	// To look at the ticks does not forget what was seen.
	mine.Set("do", "show")
	if a := admin.WantPost(200, "/schedule", mine, "05:00:00"); hidden(t, a, "seen_edition") != mine.Get("seen_edition") || hidden(t, a, "seen") != mine.Get("seen") {
		t.Error("the form forgets what was seen")
	}
	admin.WantPost(303, "/schedule", form(refused, "0 5 * * *", ""), "Schedule shared: changed", "0 5 * * *")
	// One that was made under the name of one that was deleted is another one, though its version is that which was seen.
	if _, err := s.Schedules.Delete(t.Context(), "shared"); err != nil {
		t.Fatal(err)
	}
	put(t, s, nightly("shared"))
	admin.WantPost(409, "/schedule", form(opened, "0 6 * * *", ""), "the schedule is not any more what you saw")
	if e, err := s.Schedules.Get(t.Context(), "shared"); err != nil || e.Cron == "0 6 * * *" {
		t.Errorf("%+v, %v", e, err)
	}
}

// The form shows what it will do, also by the key Enter, and a person pauses and resumes by buttons.
func TestScheduleInABrowser(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	b := s.Browser("admin")
	b.Go("/schedule/new")
	b.Fill(`[name="name"]`, "nightly")
	b.Fill(`[name="cron"]`, "30 2 * * *")
	b.Fill(`[name="zone"]`, "Europe/Berlin")
	b.Fill(`[name="kind"]`, "noop")
	for _, field := range []string{`[name="cron"]`, `[name="from"]`} {
		b.Enter(field)
		b.WaitUntil(`location.hash === "#to-come"`)
		b.WaitFor("ol.ticks", "02:30:00")
		b.Fill(`[name="from"]`, "2031-05-06")
	}
	b.ClickText("Show the next ticks")
	b.WaitFor("ol.ticks", "2031-05-06 02:30:00")
	if _, err := s.Schedules.Get(t.Context(), "nightly"); !errors.Is(err, periodic.ErrNotFound) {
		t.Errorf("Enter has stored it: %v", err)
	}
	// What belongs to another choice is not shown.
	shows := func(names string) {
		t.Helper()
		b.WaitUntil(`String([...document.querySelectorAll("[data-of]")].filter((e) => e.checkVisibility()).map((e) => e.querySelector("[name]").name)) === "` + names + `"`)
	}
	shows("cron,kind,args,queue,priority,max_attempts,tags,metadata")
	b.Click(`[name="by"][value="every"]`)
	b.Click(`[name="starts"][value="flow"]`)
	shows("every,project,flow,version,options")
	b.Click(`[name="by"][value="cron"]`)
	b.Click(`[name="starts"][value="job"]`)
	b.ClickText("Save")
	b.WaitFor("h1", "nightly")
	b.ClickText("Pause")
	b.WaitFor("#schedule", "paused")
	b.ClickText("Resume")
	b.WaitFor("#schedule", "active")
	// Somebody else's pause shows by itself.
	if _, err := s.Schedules.Pause(t.Context(), "nightly"); err != nil {
		t.Fatal(err)
	}
	b.WaitFor("#schedule", "paused")
}
