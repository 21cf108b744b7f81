package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/joblog"
)

// azkaban is a folder of Azkaban's own examples.
func azkaban(t *testing.T, path ...string) string {
	t.Helper()
	dir := os.Getenv("PELTON_AZKABAN_DIR")
	if dir == "" {
		t.Skip("PELTON_AZKABAN_DIR is not set: the examples to run are not there")
	}
	return filepath.Join(append([]string{dir}, path...)...)
}

// project writes a Flow 2.0 project of one flow named f.
func project(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"p.project": "azkaban-flow-version: 2.0\n", "f.flow": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// As a new user would type them.
func TestFlowsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	env := []string{"DATABASE_URL=" + s.url}
	launch(t, env, append([]string{"server", "--worker", "--test-kinds", "--listen", "", "--json", "--files-dir", t.TempDir()}, quick...)...).started()
	for dir, c := range map[string]struct{ zip, flow string }{
		"01-flow20-basic":       {"basicFlow20Project.zip", "basic"},
		"03-conditional-sample": {"conditionalFlowProject.zip", "sample"},
		"04-yaml-shell-fanin":   {"Archive.zip", "basic_flow"},
		"19-v1-zip-command":     {"sample_flow_01.zip", ""},
	} {
		name := "case" + dir[:2]
		s.ok("flow", "push", azkaban(t, dir, c.zip), "--project", name)
		if c.flow == "" {
			c.flow = as[string](t, s.lines("flow", "list", "--project", name)[0]["flow"])
		}
		if got := s.ok("flow", "run", name+"/"+c.flow, "--wait"); !strings.Contains(got, "SUCCEEDED") {
			t.Errorf("%s: %s", dir, got)
		}
	}
	id := fmt.Sprint(s.lines("flow", "runs", "case03")[0]["id"])
	if got := s.ok("flow", "show", id); !strings.Contains(got, "CANCELLED") || !strings.Contains(got, "JobC") {
		t.Errorf("show: %s", got)
	}
	if got := s.ok("flow", "why", id, "JobC"); !strings.Contains(got, "param1") {
		t.Errorf("why: %s", got)
	}
	if got := s.ok("flow", "logs", id, "JobB"); got == "" {
		t.Error("JobB printed nothing")
	}
	svg := filepath.Join(t.TempDir(), "x.svg")
	s.ok("flow", "graph", "case03/sample", "--svg", svg)
	if text, err := os.ReadFile(svg); err != nil || !strings.Contains(string(text), "JobD") { //nolint:gosec // the test's
		t.Errorf("picture: %v", err)
	}
	s.fails(exitNotFound, "no node", "flow", "why", id, "nobody")
	s.fails(exitNotFound, "no flow", "flow", "run", "case03/nobody")
	s.fails(exitNotFound, "no project", "flow", "run", "nobody/x")
	s.fails(exitUsage, "PROJECT/FLOW", "flow", "run", "case03")
	s.fails(exitUsage, "no node", "flow", "run", "case03/sample", "--disable", "nobody")
	s.fails(exitUsage, "NAME=VALUE", "flow", "run", "case03/sample", "--param", "x")
	s.fails(exitRefused, "has ended", "flow", "kill", id)
	s.fails(exitUsage, "5 faults", "flow", "push", azkaban(t, "12-yaml-invalid-conditions"), "--project", "bad")
	s.fails(exitUsage, "5 faults", "flow", "push", azkaban(t, "12-yaml-invalid-conditions"), "--check")
	s.fails(exitUsage, "no such file", "flow", "push", "/no/such/place", "--project", "bad")
	s.fails(exitUsage, "the upload has 5 faults", "flow", "push", azkaban(t, "12-yaml-invalid-conditions"), "--check")
	s.fails(exitNotFound, `there is no project "bad"`, "flow", "list", "--project", "bad")
}

// What is not there, and what no push, status or name can be, has the exit codes that the manual says; an empty list is none of that.
func TestExitCodesOfFlows(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := project(t, "nodes: [{name: a, type: noop}]\n")
	s.ok("flow", "push", dir, "--project", "p")
	for _, list := range [][]string{{"runs"}, {"runs", "p"}, {"runs", "p/f"}, {"runs", "p/f", "--status", "killed"}, {"list"}, {"versions"}} {
		s.ok(append([]string{"flow"}, list...)...)
	}
	s.fails(exitNotFound, `there is no project "nosuch"`, "flow", "runs", "nosuch")
	s.fails(exitNotFound, `there is no project "nosuch"`, "flow", "runs", "nosuch/f")
	s.fails(exitNotFound, `has no flow "ff": not found; did you mean "f"?`, "flow", "run", "p/ff")
	s.fails(exitNotFound, `has no flow "nosuch": not found; want one of f`, "flow", "run", "p/nosuch")
	s.fails(exitNotFound, `project "p" has no version 9: not found`+"\n", "flow", "run", "p/f", "--version", "9")
	s.fails(exitNotFound, `project "p" has no flow "nosuch"`, "flow", "runs", "p/nosuch")
	s.fails(exitNotFound, `there is no project "nosuch"`, "flow", "list", "-p", "nosuch")
	s.fails(exitNotFound, `there is no project "nosuch"`, "flow", "versions", "nosuch")
	s.fails(exitUsage, `--status BOGUS is no status of a run; want one of PREPARING, `, "flow", "runs", "--status", "bogus")
	s.fails(exitUsage, `did you mean "SUCCEEDED"?`, "flow", "runs", "p", "--status", "succeedet")
	text := filepath.Join(dir, "f.flow")
	s.fails(exitUsage, "not a zip file", "flow", "push", text, "--project", "p")
	s.fails(exitUsage, "not a zip file", "flow", "push", text, "--check")
	for _, check := range []string{"--check", "--check=false"} {
		s.fails(exitUsage, `project name "a/b": want`, "flow", "push", dir, "--project", "a/b", check)
	}
	s.fails(exitUsage, `pelton: the upload has a fault; nothing was stored`, "flow", "push", t.TempDir(), "--check")
	s.ok("flow", "push", project(t, "nodes: [{name: a, type: noop, config: {command: pwd}}]\n"), "--project", "noted")
	if notes := as[[]any](t, s.object("flow", "versions", "noted")["notes"]); len(notes) != 1 || !strings.Contains(fmt.Sprint(notes), "the command of a noop is not run") {
		t.Errorf("notes: %v", notes)
	}
	if got := s.ok("flow", "versions", "noted"); !regexp.MustCompile(`NOTES\n.* 1\n$`).MatchString(got) {
		t.Errorf("versions: %s", got)
	}
	svg := filepath.Join(t.TempDir(), "x.svg")
	if got := s.object("flow", "graph", "p/f", "--svg", svg); got["file"] != svg {
		t.Errorf("graph: %v", got)
	}
	if text, err := os.ReadFile(svg); err != nil || s.object("flow", "graph", "p/f", "--svg", "-")["svg"] != string(text) || //nolint:gosec // the test's
		s.ok("flow", "graph", "p/f", "--svg", "-") != string(text) {
		t.Errorf("the pictures are not the same: %v", err)
	}
	s.fails(exitNotFound, "not found", "flow", "graph", "p/nosuch", "--svg", svg)
}

func TestFailedRunExitsWithOne(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	env := []string{"DATABASE_URL=" + s.url}
	launch(t, env, append([]string{"server", "--worker", "--listen", "", "--json", "--files-dir", t.TempDir()}, quick...)...).started()
	s.ok("flow", "push", project(t, `
nodes:
  - {name: a, type: say, config: {what: "${x}"}}
  - {name: b, type: command, dependsOn: [a], config: {command: "false"}}
`), "--project", "p", "--flow-type", "say=echo said ${what}")
	s.fails(exitFailed, "FAILED", "flow", "run", "p/f", "--param", "x=this", "--wait")
	if got := s.ok("flow", "logs", "1", "a"); got != "said this\n" {
		t.Errorf("a printed %q", got)
	}
	dead := fmt.Sprint(s.lines("dead", "list")[0]["job_id"])
	s.fails(exitRefused, "works for node b of run 1: use pelton flow retry 1", "dead", "redrive", dead)
	s.fails(exitRefused, "works for node b of run 1: use pelton flow retry 1", "job", "retry", dead)
	if r := s.try("", "dead", "redrive", "--all"); r.code != exitOK || !strings.Contains(r.err, "letters left out: 1, which are of flows' nodes") {
		t.Errorf("redrive of all: %+v", r)
	}
	if docs := s.lines("dead", "redrive", "--all"); len(docs) != 1 || fmt.Sprint(docs[0]["left_out"]) != "1" {
		t.Errorf("redrive of all: %v", docs)
	}
	s.ok("flow", "succeed", "1", "b", "--wait")
}

// A node that is tried again has a log of each attempt: of those behind it while it waits, and of those to come for who follows.
func TestLogsOfRetries(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	env := []string{"DATABASE_URL=" + s.url}
	launch(t, env, append([]string{"server", "--worker", "--listen", "", "--json", "--files-dir", t.TempDir()}, quick...)...).started()
	gate := filepath.Join(t.TempDir(), "gate")
	s.ok("flow", "push", project(t, `
nodes:
  - name: waits
    type: command
    config: {retries: 1, retry.backoff: 3600000, command: sh -c 'echo first; exit 1'}
  - name: again
    type: command
    config:
      retries: 2
      retry.backoff: 100
      command: sh -c 'grep ^azkaban.job.attempt= $JOB_PROP_FILE; while [ ! -e `+gate+` ]; do sleep 0.05; done; grep -q ^azkaban.job.attempt=2 $JOB_PROP_FILE'
`), "--project", "p")
	s.ok("flow", "run", "p/f")
	pgtest.Eventually(t, patience, func() bool { return s.ok("flow", "logs", "1", "waits") == "first\n" }, "the log of the attempt that failed")
	var shown string
	pgtest.Eventually(t, patience, func() bool { // an attempt is recorded after its log
		shown = s.ok("flow", "show", "1")
		return strings.Contains(shown, "to be tried again at")
	}, "the attempt to be recorded")
	for _, want := range []string{`(?m)^waits +QUEUED +0 .* to be tried again at 20`, `(?m)^  tried +ERRORED +0 +20\S+Z +20\S+Z +\d\S* +- +program "sh" exited with code 1$`} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("show printed\n%s\nwant %s in it", shown, want)
		}
	}
	followers := map[*process]string{
		launch(t, env, "flow", "logs", "1", "again", "--follow"): "",
		launch(t, env, "flow", "logs", "1", "--follow"):          "first\n",
	}
	for f := range followers {
		pgtest.Eventually(t, patience, func() bool { return strings.Contains(f.out.String(), "attempt=0\n") }, "the follower to begin")
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const all = "azkaban.job.attempt=0\nazkaban.job.attempt=1\nazkaban.job.attempt=2\n"
	for f := range followers {
		pgtest.Eventually(t, patience, func() bool { return strings.HasSuffix(f.out.String(), "attempt=2\n") }, "the follower to see the last attempt")
	}
	s.ok("flow", "kill", "1")
	for f, before := range followers {
		if code := f.exit(); code != exitOK || f.out.String() != before+all {
			t.Errorf("exit code %d, followed %q", code, f.out.String())
		}
	}
	if got := s.ok("flow", "logs", "1", "again"); got != all {
		t.Errorf("printed afterwards: %q", got)
	}
}

// Nodes that run side by side are followed side by side, in whole lines, each under its name.
func TestLogsSideBySide(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	env := []string{"DATABASE_URL=" + s.url}
	launch(t, env, append([]string{"server", "--worker", "--listen", "", "--json", "--files-dir", t.TempDir()}, quick...)...).started()
	gate := filepath.Join(t.TempDir(), "gate")
	s.ok("flow", "push", project(t, `
nodes:
  - name: slow
    type: command
    config: {command: "sh -c 'echo begun; printf half; while [ ! -e `+gate+` ]; do sleep 0.5; done; echo \" a line\"; printf end'"}
  - name: quick
    type: command
    config: {command: "sh -c 'while [ ! -e `+gate+`.quick ]; do sleep 0.5; done; echo quick'"}
  - {name: silent, type: command, config: {command: "true"}}
`), "--project", "p")
	s.ok("flow", "run", "p/f")
	people := launch(t, env, "flow", "logs", "1", "--follow")
	open := func(name string) {
		t.Helper()
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	prints := func(text string) {
		t.Helper()
		pgtest.Eventually(t, 2*patience, func() bool { return strings.Contains(people.out.String(), text) }, "the follower to print %s", text)
	}
	prints("begun")
	open(gate + ".quick")
	prints("quick")
	open(gate)
	pgtest.Eventually(t, 3*patience, func() bool {
		select {
		case <-people.done:
			return true
		default:
			return false
		}
	}, "the follower to see the run's end")
	if code := people.exit(); code != exitOK {
		t.Errorf("exit code %d: %s", code, people.err.String())
	}
	if got := people.out.String(); got != "begun\nquick\nhalf a line\nend" {
		t.Errorf("printed %q", got)
	}
	heads := regexp.MustCompile(`== (\w+), job \d+, run 1\n`).FindAllStringSubmatch(people.err.String(), -1)
	var names []string
	for _, h := range heads {
		if h[1] != "silent" { // its head may come anywhere, also between two of another's
			names = append(names, h[1])
		}
	}
	if got := strings.Join(slices.Compact(names), " "); got != "slow quick slow" || len(heads) == len(names) {
		t.Errorf("heads are %v", heads)
	}
	texts := map[string]string{}
	for _, line := range s.lines("flow", "logs", "1", "--follow") {
		fields(t, line, "flow_run", "node", "job_id", "run", "stream")
		texts[as[string](t, line["node"])] += as[string](t, line["text"])
	}
	if texts["slow"] != "begun\nhalf a line\nend" || texts["quick"] != "quick\n" {
		t.Errorf("with --json: %q", texts)
	}
}

// Of each stream only whole lines are printed beside others, and nothing is lost.
func TestWholeLines(t *testing.T) {
	t.Parallel()
	var l lines
	show := func(list []joblog.Chunk) (text string) {
		for _, c := range list {
			text += fmt.Sprintf("%c%d%q ", c.Stream, c.Skipped, c.Data)
		}
		return text
	}
	long := strings.Repeat("x", longestLine+1)
	for _, c := range []struct {
		stream  byte
		skipped int64
		data    string
		want    string
	}{
		{'o', 0, "a\nb", `o0"a\n" `},
		{'e', 0, "c", `e0"" `},
		{'o', 0, "b", `o0"" `},
		{'o', 0, "b\nd\ne", `o0"bbb\nd\n" `},
		{'o', 7, "f\ng", `o0"e" o7"" o0"f\n" `},
		{'e', 3, "h", `e0"c" e3"" e0"" `},
		{'o', 0, "\n", `o0"g\n" `},
		{'o', 0, long, `o0"` + long + `" `},
		{'o', 0, "i", `o0"" `},
	} {
		if got := show(l.add(joblog.Chunk{Stream: c.stream, Skipped: c.skipped, Data: []byte(c.data)})); got != c.want {
			t.Errorf("%c %d %q: %s, want %s", c.stream, c.skipped, c.data, got, c.want)
		}
	}
	if got := show(l.rest()); got != `e0"h" o0"i" ` {
		t.Errorf("kept back: %s", got)
	}
}

// Schedulers are killed at random, each replaced by another, while flows run: every run reaches its end, and every node has
// exactly one job.
func TestSchedulersKilledAtRandom(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	env := []string{"DATABASE_URL=" + s.url}
	serve := func(args ...string) *process {
		return launch(t, env, append(append(args, "--json"), quick...)...)
	}
	serve("worker", "--queues", "default:20", "--test-kinds", "--files-dir", t.TempDir()).started()
	servers := []*process{serve("server", "--listen", ""), serve("server", "--listen", "")}
	var text strings.Builder
	text.WriteString("nodes:\n")
	for i := range 40 {
		parents := ""
		if i > 0 {
			parents = fmt.Sprintf(", dependsOn: [n%d, n%d]", (i-1)/2, max(0, i-3))
			if (i-1)/2 == max(0, i-3) {
				parents = fmt.Sprintf(", dependsOn: [n%d]", (i-1)/2)
			}
		}
		fmt.Fprintf(&text, "  - {name: n%d, type: test, config: {seconds: 0.02, fail: false}%s}\n", i, parents)
	}
	s.ok("flow", "push", project(t, text.String()), "--project", "p", "--flow-type", "test")
	const runs = 6
	for range runs {
		s.ok("flow", "run", "p/f")
	}
	open := func() (n int) {
		pgtest.Retry(t, patience, func(ctx context.Context) error {
			return s.pool().QueryRow(ctx, `SELECT count(*) FROM pelton.flow_run WHERE ended_at IS NULL`).Scan(&n)
		})
		return n
	}
	kills := 0
	for ; open() > 0 && kills < 30; kills++ {
		victim := rand.N(len(servers))
		<-time.After(rand.N(400 * time.Millisecond))
		servers[victim].kill()
		servers[victim] = serve("server", "--listen", "")
	}
	pgtest.Eventually(t, 2*patience, func() bool { return open() == 0 }, "the runs to end")
	var good, nodes, jobs, repeated int
	err := s.pool().QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pelton.flow_run WHERE status = 'SUCCEEDED'),
		(SELECT count(*) FROM pelton.flow_node WHERE status = 'SUCCEEDED'), (SELECT count(*) FROM pelton.job WHERE kind = 'test'),
		(SELECT count(*) FROM pelton.flow_node WHERE jobs IS NOT NULL)`).Scan(&good, &nodes, &jobs, &repeated)
	if err != nil || good != runs || nodes != 40*runs || jobs != 40*runs || repeated != 0 {
		t.Errorf("%d of %d runs succeeded, %d nodes with %d jobs, want %d; %d nodes have several jobs (%v)", good, runs, nodes, jobs, 40*runs, repeated, err)
	}
	t.Logf("%d kills", kills)
}
