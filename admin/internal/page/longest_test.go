package page_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/periodic"
)

// longest is a name of n letters that can be broken nowhere.
func longest(n int) string { return strings.Repeat("abcdefghijklmnopqrstuvwxyz0123456789", n/36+1)[:n] }

// workingLongest is pagetest.Working with a queue whose name is as long as it may be.
func workingLongest() jobs.Config {
	working := pagetest.Working()
	working.Queues[longest(64)] = jobs.QueueConfig{MaxWorkers: 2}
	working.ID = longest(100)
	return working
}

// furnishLongest fills the rooms with names that are as long as they may be, and returns pages with them. The site works by workingLongest.
func furnishLongest(t *testing.T, s *pagetest.Site) []shot {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	queue, kind, user, project := longest(64), longest(128), longest(100), longest(64)
	tags := []string{longest(255), "short"}
	dead := s.Insert(pagetest.Task{Fail: longest(500), Note: longest(500)}, &river.InsertOpts{MaxAttempts: 1, Queue: queue, Tags: tags})
	s.WaitState(dead, rivertype.JobStateDiscarded)
	var waits int64
	must(s.Pool.QueryRow(t.Context(), `SELECT pelton.enqueue($1, json_build_object('note', $2::text)::jsonb, queue => $3, tags => $4)`,
		kind, longest(300), "un"+longest(62), tags).Scan(&waits))
	s.Exec(`SELECT pelton.pause_queue($1, $2)`, "un"+longest(62), user)
	s.Exec(`UPDATE pelton.executor SET host = $1, labels = ARRAY[$1], kinds = kinds || $2::text`, longest(100), kind)
	s.Exec(`UPDATE pelton.duty SET failing_since = now() - interval '2 min', failed_at = now(), failed_by = $1, error = $2 WHERE duty = 'keeper'`, longest(100), longest(500))
	ctx := jobs.WithActor(t.Context(), user)
	schedule := periodic.Schedule{
		Name: longest(200), Cron: "30 2 * * *", TimeZone: "America/Argentina/ComodRivadavia", Description: longest(1000),
		Job: &periodic.JobTarget{Kind: kind, Queue: queue, Tags: tags},
	}
	_, err := s.Schedules.Put(ctx, schedule)
	must(err)
	_, err = s.Schedules.Pause(ctx, schedule.Name)
	must(err)
	furnishLongestAdmin(ctx, t, s)
	job := func(id int64, rest string) string { return fmt.Sprintf("/jobs/%d%s", id, rest) }
	return []shot{
		{"longest-job", job(dead, "")},
		{"longest-job-waits", job(waits, "")},
		{"longest-job-change", job(waits, "/change")},
		{"longest-letter", fmt.Sprintf("/dead/%d", dead)},
		{"longest-jobs", "/jobs?queue=" + queue + "&kind=task&tag=" + tags[0]},
		{"longest-schedule", "/schedules/" + schedule.Name},
		{"longest-schedule-edit", "/schedules/" + schedule.Name + "/edit"},
		{"longest-user", "/admin/users/" + user},
		{"longest-tokens", "/admin/tokens?user=" + user},
		{"longest-secrets", "/admin/secrets?project=" + project},
		{"longest-secret-delete", "/admin/secrets/delete?project=" + project + "&name=" + longest(64)},
		{"longest-alerts", "/alerts?rule=" + longest(64) + "&subject=" + queue},
		{"longest-nothing", "/jobs/" + longest(255)},
	}
}

func furnishLongestAdmin(ctx context.Context, t *testing.T, s *pagetest.Site) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	user, project := longest(100), longest(64)
	_, err := s.Access.AddUser(ctx, user, access.NewUser{Name: user, Roles: []access.Grant{{Project: project, Role: access.Operator}, {Project: "etl", Role: access.Viewer}}})
	must(err)
	_, _, err = s.Access.AddToken(ctx, user, access.NewToken{User: user, Name: longest(200), Role: access.Operator, Project: project})
	must(err)
	_, err = s.Secrets.Set(ctx, project, longest(64), []byte("correct horse"))
	must(err)
	rules, err := alert.Parse("/etc/"+longest(100), fmt.Appendf(nil, `
channels:
  %[1]s: {type: mail, to: [ops@example.com], from: pelton@example.com}
rules:
  failing: {type: failure_rate, queues: [payments], over: 12.5%%, until: 5%%, for: 2m, severity: critical}
  waiting: {type: oldest_age, over: 10m}
  %[1]s: {type: oldest_age, queues: [%[1]s], over: 10m}
`, longest(64)))
	must(err)
	store, err := alert.NewStore(s.Pool, "")
	must(err)
	_, err = store.Publish(ctx, user, rules)
	must(err)
	s.Exec(`INSERT INTO pelton.alert_state (rule, subject, bad_since, firing_since, noticed_at, notices, value, text, told)
		VALUES ($1, $1, now() - interval '1 h', now() - interval '50 min', now() - interval '50 min', 1, 900, $2, ARRAY[$1])`, longest(64), longest(300))
	_, err = store.Mute(ctx, user, alert.Mute{Rule: longest(64), Subject: longest(64), Until: time.Now().Add(time.Hour), Reason: longest(500)})
	must(err)
}

// furnishLongestFlow pushes and runs a flow whose names are as long as they may be, and returns its pages.
func furnishLongestFlow(t *testing.T, h *house) []shot {
	t.Helper()
	project, name := longest(64), longest(255)
	inner := flow.New("in").Job("a"+longest(254), flowtest.Args{"x": longest(500)})
	f := flow.New(name).Param(longest(200), longest(500))
	f.Flow("b"+longest(254), inner)
	f.Noop("c" + longest(254)).After("b" + longest(254))
	h.push(t, project, f)
	h.do("b"+longest(254)+":a"+longest(254), func(context.Context) (map[string]string, error) {
		return map[string]string{longest(100): longest(500)}, fmt.Errorf("%s", longest(500))
	})
	run := h.start(t, project, name, flow.Options{Disabled: []string{"c" + longest(254)}})
	h.ended(t, run, "FAILED")
	at := func(rest string) string { return fmt.Sprintf("/runs/%d%s", run, rest) }
	return []shot{
		{"longest-project", "/flows/" + project},
		{"longest-flow", "/flows/" + project + "/" + name + "?node=1"},
		{"longest-flow-form", fmt.Sprintf("/flows/%s/%s?like=%d", project, name, run)},
		{"longest-run", at("")},
		{"longest-run-gantt", at("/gantt")},
		{"longest-run-logs", at("/logs?q=a")},
		{"longest-node", at("/nodes/1")},
		{"longest-run-confirm", at("/confirm/rerun?node=1")},
		{"longest-runs", "/runs?project=" + project + "&flow=" + name},
	}
}
