package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
)

// previewed are the ticks that preview prints, "at note" each.
func (s *shell) previewed(args ...string) []string {
	s.t.Helper()
	var ticks []string
	for _, v := range as[[]any](s.t, s.object(append([]string{"schedule", "preview"}, args...)...)["ticks"]) {
		tick := as[map[string]any](s.t, v)
		if len(tick) != 2 {
			s.t.Errorf("a tick has other fields than at and note: %v", tick)
		}
		ticks = append(ticks, strings.TrimSpace(fmt.Sprint(tick["at"], " ", tick["note"])))
	}
	return ticks
}

// S4, as preview shows it. It needs no database.
func TestSchedulePreview(t *testing.T) {
	t.Parallel()
	s := shellOn(t, "postgres://nobody@127.0.0.1:1/nothing")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{
			[]string{"30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07", "-n", "3"},
			[]string{"2026-03-07T02:30:00-05:00", "2026-03-08T03:00:00-04:00 moved", "2026-03-09T02:30:00-04:00"},
		},
		{
			[]string{"30 2 * * *", "--tz", "America/New_York", "--from", "2026-10-31", "-n", "3"},
			[]string{"2026-10-31T02:30:00-04:00", "2026-11-01T02:30:00-05:00", "2026-11-02T02:30:00-05:00"},
		},
		{
			[]string{"30 1 * * *", "--tz", "America/New_York", "--from", "2026-10-31", "-n", "4"},
			[]string{"2026-10-31T01:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00 dropped (repeat)", "2026-11-02T01:30:00-05:00"},
		},
		{
			[]string{"30 1 * * *", "--tz", "America/New_York", "--from", "2026-11-01", "-n", "2", "--dst-overlap", "last"},
			[]string{"2026-11-01T01:30:00-04:00 dropped (repeat)", "2026-11-01T01:30:00-05:00"},
		},
		{
			[]string{"30 1 * * *", "--tz", "America/New_York", "--from", "2026-11-01", "-n", "2", "--dst-overlap", "both"},
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00"},
		},
		{
			[]string{"30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-08T01:00", "-n", "2", "--dst-gap", "skip"},
			[]string{"2026-03-08T03:00:00-04:00 dropped (gap)", "2026-03-09T02:30:00-04:00"},
		},
		{
			[]string{"15 2 * * *", "--tz", "Australia/Lord_Howe", "--from", "2026-10-03", "-n", "3"},
			[]string{"2026-10-03T02:15:00+10:30", "2026-10-04T02:30:00+11:00 moved", "2026-10-05T02:15:00+11:00"},
		},
		{
			[]string{"45 1 * * *", "--tz", "Australia/Lord_Howe", "--from", "2026-04-05", "-n", "2"},
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30 dropped (repeat)"},
		},
		{
			[]string{"0 12 * * *", "--tz", "Pacific/Apia", "--from", "2011-12-29", "-n", "3"},
			[]string{"2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00 moved", "2011-12-31T12:00:00+14:00"},
		},
		{
			[]string{"0 0 18 L * ?", "--from", "2026-02-01T00:00:00Z", "-n", "2"},
			[]string{"2026-02-28T18:00:00Z", "2026-03-31T18:00:00Z"},
		},
		{
			[]string{"20 */4 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-28T22:00:00Z", "-n", "3"},
			[]string{"2026-03-29T00:20:00+01:00", "2026-03-29T04:20:00+02:00", "2026-03-29T08:20:00+02:00"},
		},
		{
			[]string{"0 7-8 * * *", "--tz", "Europe/Berlin", "--from", "2026-10-25", "-n", "3"},
			[]string{"2026-10-25T07:00:00+01:00", "2026-10-25T08:00:00+01:00", "2026-10-26T07:00:00+01:00"},
		},
		{[]string{"0 12 * * *", "--from", "2026-01-01T12:00:00Z", "-n", "1"}, []string{"2026-01-01T12:00:00Z"}},
		{[]string{"0 0 12 1 1 ? 2027", "--from", "2028-01-01"}, nil},
	} {
		if got := s.previewed(c.args...); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("preview %v:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
	if got := s.ok("schedule", "preview", "30 1 * * *", "--tz", "America/New_York", "--from", "2026-11-01", "-n", "2"); !strings.Contains(got, "(2026-11-01T01:30:00-05:00)") ||
		!strings.Contains(got, "does not run") {
		t.Errorf("for people: %s", got)
	}
	for says, args := range map[string][]string{
		"day of month: 32 is above 31": {"0 0 32 * *"},
		"never comes in February":      {"0 0 30 2 *"},
		"Europe/Nowhere":               {"@daily", "--tz", "Europe/Nowhere"},
		"next or skip":                 {"@daily", "--dst-gap", "nxt"},
		"first, last or both":          {"@daily", "--dst-overlap", "twice"},
		"RFC 3339":                     {"@daily", "--from", "yesterday"},
		"want 1 to":                    {"@daily", "-n", "0"},
	} {
		s.fails(exitUsage, says, append([]string{"schedule", "preview"}, args...)...)
	}
}

func TestSchedulesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	launch(t, []string{"DATABASE_URL=" + s.url}, append([]string{"server", "--worker", "--listen", "", "--json"}, quick...)...).started()
	made := s.object("schedule", "put", "second", "--every", "1s", "--kind", "noop", "--description", "for the test", "--missed", "all:3:1h")
	if made["change"] != "created" {
		t.Errorf("put: %v", made)
	}
	fields(t, as[map[string]any](t, made["schedule"]), "id", "name", "every", "job", "missed", "version", "next_at", "paused_at", "last_tick")
	pgtest.Eventually(t, patience, func() bool { return len(s.lines("schedule", "ticks", "second", "--outcome", "fired")) >= 2 }, "two ticks")
	tick := s.lines("schedule", "ticks", "second", "--limit", "1")[0]
	fields(t, tick, "at", "n", "source", "outcome", "job_id", "decided_at")
	s.waitState(fmt.Sprint(tick["job_id"]), "completed")

	if got := s.ok("schedule", "put", "nightly", "--cron", "30 2 * * *", "--tz", "America/New_York", "--kind", "noop"); !strings.Contains(got, "schedule nightly created, next 2") {
		t.Errorf("put: %s", got)
	}
	if got := s.ok("schedule", "put", "nightly", "--cron", "30 2 * * *", "--tz", "America/New_York", "--kind", "noop"); !strings.Contains(got, "unchanged") {
		t.Errorf("put again: %s", got)
	}
	if got := s.ok("schedule", "show", "nightly"); !strings.Contains(got, "to come:") || !strings.Contains(got, "America/New_York") {
		t.Errorf("show: %s", got)
	}
	if got := s.ok("schedule", "pause", "second"); !strings.Contains(got, "is paused") {
		t.Errorf("pause: %s", got)
	}
	if got := s.lines("schedule", "list", "--paused"); len(got) != 1 || got[0]["name"] != "second" || got[0]["paused_why"] != "person" {
		t.Errorf("paused: %v", got)
	}
	if got := s.ok("schedule", "list"); !strings.Contains(got, "30 2 * * * America/New_York") || !strings.Contains(got, "every 1s") {
		t.Errorf("list: %s", got)
	}
	s.fails(exitRefused, "is not paused", "schedule", "resume", "nightly")
	if got := s.object("schedule", "resume", "second"); got["paused_at"] != nil || got["next_at"] == nil {
		t.Errorf("resume: %v", got)
	}
	triggered := as[map[string]any](t, s.object("schedule", "trigger", "nightly")["tick"])
	s.waitState(fmt.Sprint(triggered["job_id"]), "completed")
	s.ok("schedule", "put", "long", "--cron", "@yearly", "--tz", "Asia/Tokyo", "--overlap", "skip", "--kind", "nobody_works_this")
	if got := s.ok("schedule", "trigger", "long"); !strings.Contains(got, "job ") {
		t.Errorf("trigger: %s", got)
	}
	s.fails(exitRefused, "skipped (overlap)", "schedule", "trigger", "long")
	for _, args := range [][]string{{"list", "long"}, {"show", "long"}, {"ticks", "long"}} {
		if got := s.ok(append([]string{"schedule"}, args...)...); !strings.Contains(got, "+09:00") || strings.Contains(got, "Z ") {
			t.Errorf("%v is not in the schedule's zone: %s", args, got)
		}
	}
	s.ok("schedule", "put", "once", "--at", time.Now().Add(5*time.Second).Format(time.RFC3339Nano), "--kind", "noop")
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(s.ok("schedule", "list", "once"), " ended") }, "the one-time schedule to have ended")
	s.ok("schedule", "delete", "second")
	audited := fmt.Sprint(s.lines("audit", "list", "--target", "schedule second"))
	for _, action := range []string{"schedule.put", "schedule.pause", "schedule.resume", "schedule.delete"} {
		if !strings.Contains(audited, action) {
			t.Errorf("%s is not audited: %s", action, audited)
		}
	}

	s.fails(exitNotFound, `did you mean "nightly"?`, "schedule", "show", "nightl")
	s.fails(exitUsage, `did you mean "queue"?`, "schedule", "put", "x", "--cron", "@daily", "--kind", "noop", "--overlap", "que")
	s.fails(exitUsage, "skip, latest, all:N", "schedule", "put", "x", "--cron", "@daily", "--kind", "noop", "--missed", "most")
	s.fails(exitUsage, "hour: 25 is above 23", "schedule", "put", "x", "--cron", "0 25 * * *", "--kind", "noop")
	s.fails(exitUsage, "none are given", "schedule", "put", "x", "--kind", "noop")
	s.fails(exitUsage, "has passed", "schedule", "put", "x", "--at", "2020-01-01T00:00:00Z", "--kind", "noop")
	s.fails(exitUsage, "--kind, or a flow", "schedule", "put", "x", "--cron", "@daily")
	s.fails(exitUsage, "goes with --flow", "schedule", "put", "x", "--cron", "@daily", "--kind", "noop", "--param", "a=b")
	s.fails(exitUsage, "goes with --kind", "schedule", "put", "x", "--cron", "@daily", "--flow", "p/f", "--args", "{}")
	s.fails(exitUsage, "--phase goes with --every", "schedule", "put", "x", "--cron", "@daily", "--kind", "noop", "--phase", "2026-01-01")
	s.fails(exitUsage, "--dst-gap goes with --cron", "schedule", "put", "x", "--every", "1h", "--kind", "noop", "--dst-gap", "skip")
	s.fails(exitUsage, "job: metadata are not a JSON object\n", "schedule", "put", "x", "--cron", "@daily", "--kind", "noop", "--metadata", "[1]")
	if got := s.ok("schedule", "put", "spread", "--cron", "@daily", "--kind", "noop", "--spread", "10m"); !strings.Contains(got, ", starts 2") {
		t.Errorf("put with a spread: %s", got)
	}
	s.fails(exitUsage, "fired, skipped, failed", "schedule", "ticks", "nightly", "--outcome", "gone")
	s.fails(exitUsage, `did you mean "pause"?`, "schedule", "puase", "nightly")
	s.fails(exitUsage, "in the future", "schedule", "backfill", "nightly", "--from", "2026-01-01", "--to", "2126-01-01")
	s.fails(exitUsage, "before it begins", "schedule", "backfill", "nightly", "--from", "2025-02-01", "--to", "2025-01-01")
	s.fails(exitUsage, "--from and --to", "schedule", "backfill", "nightly")
	s.fails(exitNotFound, "no backfill 77", "schedule", "backfill", "show", "77")
}

func TestBackfillFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	launch(t, []string{"DATABASE_URL=" + s.url}, append([]string{"server", "--worker", "--listen", "", "--json"}, quick...)...).started()
	s.ok("schedule", "put", "daily", "--cron", "30 2 * * *", "--tz", "America/New_York", "--kind", "noop")
	done := s.object("schedule", "backfill", "daily", "--from", "2026-03-07", "--to", "2026-03-10", "--parallel", "2")
	if done["status"] != "completed" || fmt.Sprint(done["succeeded"]) != "4" { // all of the 10th too
		t.Errorf("backfill: %v", done)
	}
	if got := s.ok("schedule", "ticks", "daily", "--source", "backfill"); !strings.Contains(got, "2026-03-08T03:00:00-04:00") || !strings.Contains(got, "moved") {
		t.Errorf("ticks: %s", got)
	}
	s.ok("schedule", "put", "fails", "--cron", "@daily", "--kind", "command", "--args", `{"command":"false"}`, "--max-attempts", "1")
	if tick := s.lines("schedule", "ticks", "daily", "--source", "backfill")[0]; tick["state"] != "completed" {
		t.Errorf("tick: %v", tick)
	}
	s.fails(exitFailed, "2 of its runs did not succeed; see pelton schedule ticks fails --backfill 2", "schedule", "backfill", "fails", "--from", "2026-01-01", "--to", "2026-01-02")
	s.ok("schedule", "put", "lacks", "--cron", "@daily", "--flow", "later/f")
	r := s.try("", "schedule", "backfill", "lacks", "--from", "2026-01-01", "--to", "2026-01-02")
	if want := "2 ticks of backfill 3 could not be started; see pelton schedule ticks lacks --backfill 3"; r.code != exitFailed || !strings.Contains(r.err, want) {
		t.Errorf("of a flow that is not there: %d %q, want %q", r.code, r.err, want)
	}
	if want := "0 failed, 2 left out, of these 2 could not be started, the last because: "; !strings.Contains(r.out, want) || !strings.Contains(r.out, "later") {
		t.Errorf("of a flow that is not there: %q, want %q and the project's name", r.out, want)
	}
	if b := s.object("schedule", "backfill", "show", "3"); fmt.Sprint(b["not_started"]) != "2" || !strings.Contains(as[string](t, b["why"]), "later") {
		t.Errorf("of a flow that is not there: %v", b)
	}
	for since, want := range map[string]int{"2026-03-09": 2, "2026-03-09T02:29": 2, "2026-03-09T02:31": 1, "2026-03-09T06:31:00Z": 1, "2h": 0, "1d": 0, "36500d": 4} {
		if got := s.lines("schedule", "ticks", "daily", "--source", "backfill", "--since", since); len(got) != want {
			t.Errorf("since %s: %d ticks, want %d: %v", since, len(got), want, got)
		}
	}
	s.fails(exitUsage, "or a duration back from now as 2h or 10d", "schedule", "ticks", "daily", "--since", "soon")
	id := strings.TrimSpace(s.ok("schedule", "backfill", "daily", "--from", "2026-01-01", "--to", "2026-06-01", "--all", "--no-wait"))
	if got := s.object("schedule", "backfill", "cancel", id); got["status"] != "cancelled" && got["status"] != "completed" {
		t.Errorf("cancel: %v", got)
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(zone)
	s.ok("schedule", "backfill", "daily", "--from", now.AddDate(0, 0, -2).Format(time.DateOnly), "--to", now.Format(time.DateOnly), "--no-wait") // what has passed of today
	if got := s.lines("schedule", "backfill", "list", "daily"); len(got) != 3 {
		t.Errorf("list: %v", got)
	}
}

// Schedulers are killed at random while a backfill goes on, each replaced by another: every tick has exactly one run.
func TestBackfillOverKills(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	env := []string{"DATABASE_URL=" + s.url}
	serve := func(args ...string) *process {
		return launch(t, env, append(append(args, "--json"), quick...)...)
	}
	serve("worker", "--queues", "default:20").started()
	servers := []*process{serve("server", "--listen", ""), serve("server", "--listen", "")}
	s.ok("schedule", "put", "x", "--cron", "*/5 * * * *", "--kind", "noop")
	id := strings.TrimSpace(s.ok("schedule", "backfill", "x", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "--parallel", "5", "--no-wait"))
	running := func() (is bool) {
		pgtest.Retry(t, patience, func(ctx context.Context) error {
			return s.pool().QueryRow(ctx, `SELECT status = 'running' FROM pelton.schedule_backfill`).Scan(&is)
		})
		return is
	}
	kills := 0
	for ; running() && kills < 20; kills++ {
		victim := rand.N(len(servers))
		<-time.After(rand.N(700 * time.Millisecond))
		servers[victim].kill()
		servers[victim] = serve("server", "--listen", "")
	}
	pgtest.Eventually(t, 3*patience, func() bool { return !running() }, "the backfill to end")
	got := s.object("schedule", "backfill", "show", id)
	if fmt.Sprintf("%v %v %v %v", got["started"], got["succeeded"], got["failed"], got["live"]) != "289 289 0 0" {
		t.Errorf("of 289 ticks: %v", got)
	}
	var jobs, ticks, wrong int
	err := s.pool().QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pelton.job WHERE kind = 'noop'), (SELECT count(DISTINCT at) FROM pelton.schedule_tick WHERE source = 'backfill'),
		(SELECT count(*) FROM (SELECT at, lag(at) OVER (ORDER BY job_id) AS before FROM pelton.schedule_tick WHERE source = 'backfill') o WHERE at < before)`).
		Scan(&jobs, &ticks, &wrong)
	if err != nil || jobs != 289 || ticks != 289 || wrong != 0 {
		t.Errorf("%d jobs of %d ticks, %d out of order (%v)", jobs, ticks, wrong, err)
	}
	t.Logf("%d kills", kills)
}

// A push makes schedules of triggers and keeps them in step.
func TestPushWithSchedule(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	push := func(trigger string, args ...string) map[string]any {
		t.Helper()
		dir := t.TempDir()
		text := trigger + "\nnodes:\n  - {name: a, type: noop}\n"
		for name, text := range map[string]string{"p.project": "azkaban-flow-version: 2.0\n", "f.flow": text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return s.object(append([]string{"flow", "push", dir, "--project", "p"}, args...)...)
	}
	change := func(doc map[string]any) string {
		t.Helper()
		list := as[[]any](t, doc["schedules"])
		if len(list) != 1 {
			t.Fatalf("schedules: %v", list)
		}
		one := as[map[string]any](t, list[0])
		return fmt.Sprint(one["name"], " ", one["change"])
	}
	const daily, weekly = "trigger:\n  schedule: {type: cron, value: 0 0 1 ? * *}", "trigger:\n  schedule: {type: cron, value: 0 0 1 ? * 2}"
	if doc := push(daily); doc["schedules"] != nil || !strings.Contains(fmt.Sprint(doc["notes"]), "--with-schedule") {
		t.Errorf("without the flag: %v", doc)
	}
	if n := len(s.lines("schedule", "list")); n != 0 {
		t.Errorf("without the flag %d schedules were made", n)
	}
	with := []string{"--with-schedule", "--tz", "Europe/Berlin"}
	if got := change(push(daily, with...)); got != "p/f created" {
		t.Errorf("first: %s", got)
	}
	if got := change(push(daily, "--with-schedule")); got != "p/f unchanged" {
		t.Errorf("the same again: %s", got)
	}
	if got := change(push(weekly, with...)); got != "p/f changed" {
		t.Errorf("changed: %s", got)
	}
	e := s.object("schedule", "show", "p/f")
	if e["cron"] != "quartz:0 0 1 ? * 2" || e["time_zone"] != "Europe/Berlin" {
		t.Errorf("schedule: %v", e)
	}
	if got := change(push("", with...)); !strings.HasPrefix(got, "p/f paused") {
		t.Errorf("removed: %s", got)
	}
	if got := change(push(weekly, with...)); got != "p/f resumed" {
		t.Errorf("there again: %s", got)
	}
	s.ok("schedule", "put", "p/f", "--cron", "0 5 * * *", "--flow", "p/f", "--overlap", "skip")
	doc := push(weekly, with...)
	if got := change(doc); got != "p/f changed" || !strings.Contains(fmt.Sprint(doc["schedules"]), "somebody has put: 0 5 * * *") {
		t.Errorf("after a person's put: %v", doc["schedules"])
	}
	if e := s.object("schedule", "show", "p/f"); e["overlap"] != "skip" || e["cron"] != "quartz:0 0 1 ? * 2" || e["description"] != nil {
		t.Errorf("a person's put, and a push: %v", e)
	}
	if doc := push(weekly, with...); change(doc) != "p/f unchanged" || strings.Contains(fmt.Sprint(doc["schedules"]), "somebody") {
		t.Errorf("once more: %v", doc["schedules"])
	}
	if got := change(push("", with...)); !strings.HasPrefix(got, "p/f paused") {
		t.Errorf("removed after a person's put: %s", got)
	}
	if got := change(push(weekly, with...)); got != "p/f resumed" {
		t.Errorf("there again: %s", got)
	}
	s.ok("schedule", "pause", "p/f")
	if got := change(push(weekly, with...)); got != "p/f unchanged" {
		t.Errorf("paused by a person: %s", got)
	}
	if e := s.object("schedule", "show", "p/f"); e["paused_at"] == nil {
		t.Error("a push ended a person's pause")
	}
	if got := s.ok("flow", "push", project(t, weekly+"\nnodes:\n  - {name: a, type: noop}\n"), "--project", "p", "--with-schedule"); !strings.Contains(got, "it is paused") {
		t.Errorf("a push of what a person has paused: %s", got)
	}
	dir := project(t, "trigger:\n  schedule: {type: cron, value: 0 0 0 31 2 ?}\nnodes:\n  - {name: a, type: noop}\n")
	s.fails(exitUsage, "never comes in February", "flow", "push", dir, "--project", "new", "--with-schedule")
	bad := project(t, "trigger:\n  schedule:\n    type: cron\n    value: 0 0 0 31 2 ?\nnodes:\n  - {name: a, type: command}\n")
	for _, check := range []string{"--check", "--check=false"} { // in one list with all other faults
		r := s.try("", "flow", "push", bad, "--project", "new", "--with-schedule", check)
		if r.code != exitUsage || !strings.Contains(r.err, "2 faults") || !strings.Contains(r.err, "f.flow:4: trigger: the schedule ") || !strings.Contains(r.err, "f.flow:6: a: ") {
			t.Errorf("%s: %+v", check, r)
		}
	}
	s.ok("schedule", "put", "new/f", "--cron", "@daily", "--kind", "noop")
	s.fails(exitRefused, `nothing was stored: push project "new"`, "flow", "push", project(t, weekly+"\nnodes:\n  - {name: a, type: noop}\n"), "--project", "new", "--with-schedule")
	s.fails(exitNotFound, "new", "flow", "versions", "new")
	if got := s.ok("flow", "push", project(t, weekly+"\nnodes:\n  - {name: a, type: noop}\n"), "--check", "--with-schedule"); !strings.Contains(got, "nothing was stored") {
		t.Errorf("check: %s", got)
	}
	s.fails(exitNotFound, "new", "flow", "list", "--project", "new") // in spite of the fault nothing was stored
}

// A schedule runs a flow, which is told its tick.
func TestScheduleOfAFlow(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	launch(t, []string{"DATABASE_URL=" + s.url}, append([]string{"server", "--worker", "--listen", "", "--json", "--files-dir", t.TempDir()}, quick...)...).started()
	s.ok("flow", "push", project(t, "nodes:\n  - {name: a, type: command, config: {command: 'echo ${schedule.name} at ${schedule.time} for ${day}'}}\n"), "--project", "p")
	s.ok("schedule", "put", "f", "--cron", "0 3 * * *", "--tz", "Europe/Berlin", "--flow", "p/f", "--param", "day=today")
	s.ok("schedule", "backfill", "f", "--from", "2026-07-01", "--to", "2026-07-01")
	tick := s.lines("schedule", "ticks", "f")[0]
	if tick["state"] != "SUCCEEDED" {
		t.Errorf("tick: %v", tick)
	}
	run := fmt.Sprint(tick["run_id"])
	if got := s.ok("flow", "logs", run, "a"); got != "f at 2026-07-01T03:00:00+02:00 for today\n" {
		t.Errorf("the node printed %q", got)
	}
	if r := s.try("", "schedule", "put", "lost", "--cron", "@daily", "--flow", "later/nobody"); r.code != exitOK || !strings.Contains(r.err, "there is no project later") {
		t.Errorf("a schedule of a flow that is not there: %+v", r)
	}
	s.fails(exitFailed, "no project", "schedule", "trigger", "lost")
	for says, args := range map[string][]string{
		`concurrent "bogus"`:         {"--concurrent", "bogus"},
		`failure action "bogus"`:     {"--on-failure", "bogus"},
		`cancelled end node "bogus"`: {"--on-cancelled-end", "bogus"},
		`"bogus" is neither`:         {"--notify-failure", "bogus"},
		"flow: job priority 9":       {"--job-priority", "9"},
		`queue "Bad Q"`:              {"--queue", "Bad Q"},
		"the engine's own":           {"--param", "azkaban.flow.x=1"},
		"no version 7":               {"--version", "7"},
		`no node "b"`:                {"--disable", "b"},
	} {
		s.fails(exitUsage, says, append([]string{"schedule", "put", "bad", "--cron", "@daily", "--flow", "p/f"}, args...)...)
	}
	s.fails(exitUsage, `no flow "nobody"`, "schedule", "put", "bad", "--cron", "@daily", "--flow", "p/nobody")
	s.fails(exitUsage, `concurrent "bogus"`, "schedule", "put", "bad", "--cron", "@daily", "--flow", "later/f", "--concurrent", "bogus")
	s.fails(exitNotFound, "bad", "schedule", "show", "bad")
}

// A push whose flows lack one that a schedule runs says so, and what will happen; it tells of no schedule that goes on, or that starts nothing any more.
func TestPushThatStrandsSchedules(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const nodes = "nodes:\n  - {name: a, type: noop}\n"
	dir := project(t, nodes)
	s.ok("flow", "push", dir, "--project", "p")
	s.ok("schedule", "put", "nightly", "--cron", "0 3 * * *", "--flow", "p/f")
	s.ok("schedule", "put", "pinned", "--cron", "0 3 * * *", "--flow", "p/f", "--version", "1")
	s.ok("schedule", "put", "paused", "--cron", "0 3 * * *", "--flow", "p/f")
	s.ok("schedule", "pause", "paused")
	if r := s.try("", "flow", "push", dir, "--project", "p"); r.code != 0 || r.err != "" {
		t.Errorf("the same again: %d %s", r.code, r.err)
	}
	if err := os.Rename(filepath.Join(dir, "f.flow"), filepath.Join(dir, "g.flow")); err != nil {
		t.Fatal(err)
	}
	next := as[string](t, s.object("schedule", "show", "nightly")["next_at"])
	want := "note: schedule nightly runs flow f, which this version lacks: its next tick, at " + next + ", will fail. " +
		"Push a version that has the flow, or change, pause or delete the schedule\n"
	for _, check := range []string{"--check", "--check=false"} {
		if r := s.try("", "flow", "push", dir, "--project", "p", check); r.code != 0 || r.err != want {
			t.Errorf("%s: %d %q, want %q", check, r.code, r.err, want)
		}
		list := as[[]any](t, s.object("flow", "push", dir, "--project", "p", check)["stranded"])
		if len(list) != 1 || as[map[string]any](t, list[0])["name"] != "nightly" {
			t.Errorf("%s: stranded: %v", check, list)
		}
	}
	s.ok("schedule", "put", "nightly", "--cron", "0 3 * * *", "--flow", "p/g")
	if r := s.try("", "flow", "push", dir, "--project", "p"); r.code != 0 || r.err != "" {
		t.Errorf("with the schedule changed: %d %s", r.code, r.err)
	}
}
