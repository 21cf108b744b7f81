package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

// serveFlows starts a scheduler and an executor for a shell's database.
func serveFlows(t *testing.T, s *shell) {
	t.Helper()
	env := []string{"DATABASE_URL=" + s.url}
	launch(t, env, append([]string{"server", "--worker", "--listen", "", "--json", "--files-dir", t.TempDir()}, quick...)...).started()
}

// matches fails unless a text has a match of a pattern.
func matches(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		t.Errorf("printed\n%s\nwant %s in it", text, pattern)
	}
}

// A run says why it ended as it did, to who waits for it, asks for it, or shows it.
func TestWhyARunEnded(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	serveFlows(t, s)
	s.ok("flow", "push", project(t, `
nodes:
  - {name: a, type: command, config: {command: "true", x: "${n}"}}
  - {name: bad, type: noop, dependsOn: [a], condition: "${a:x} > 5"}
`), "--project", "p")
	const why = "end node bad was cancelled by its condition; on_cancelled_end: killed"
	r := s.try("", "flow", "run", "p/f", "--param", "n=1", "--wait")
	if r.code != exitFailed || r.out != "run 1 of p/f: KILLED: "+why+"\n" {
		t.Errorf("run: %+v", r)
	}
	matches(t, s.ok("flow", "show", "1"), `(?m)^reason +`+why+`$`)
	if got := s.ok("flow", "why", "1"); got != why+"\n" {
		t.Errorf("why: %s", got)
	}
	if got := s.object("flow", "why", "1"); got["why"] != why || got["node"] != nil {
		t.Errorf("why with --json: %v", got)
	}
	if got := s.object("flow", "show", "1"); got["reason"] != why {
		t.Errorf("show with --json: %v", got)
	}
	if got := s.ok("flow", "why", "1", "a"); got != "it has ended: SUCCEEDED\n" {
		t.Errorf("why a: %s", got)
	}
}

// What runs shows since when; instances stand below their for_each; and its log, and that of an embedded flow, is that of what is in it.
func TestShowAndLogsOfWhatHasOthersInIt(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	serveFlows(t, s)
	gate := filepath.Join(t.TempDir(), "gate")
	s.ok("flow", "push", project(t, `
nodes:
  - name: load
    type: command
    for_each: [x, y]
    config: {command: "echo load ${item}"}
  - name: sub
    type: flow
    nodes:
      - {name: a, type: command, config: {command: echo in sub}}
  - name: last
    type: command
    dependsOn: [load, sub]
    config: {command: "sh -c 'echo last; while [ ! -e `+gate+` ]; do sleep 0.05; done'"}
`), "--project", "p")
	s.ok("flow", "run", "p/f")
	running := regexp.MustCompile(`(?m)^last +RUNNING +0 +20\S+Z +- +\d+s so far `)
	pgtest.Eventually(t, patience, func() bool { return running.MatchString(s.ok("flow", "show", "1")) }, "the last node to run since some time")
	matches(t, s.ok("flow", "show", "1"), `(?m)^took +\d+s so far$`)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(s.ok("flow", "show", "1"), "status   SUCCEEDED") }, "the run to end")
	matches(t, s.ok("flow", "show", "1"), `(?s)\nload .*\n *load\[0\] .*\n *load\[1\] .*\nsub .*\n  sub:a .*\nlast `)
	for node, want := range map[string]struct{ out, heads string }{
		"load":    {"load x\nload y\n", `== load\[0\], .*\n== load\[1\], `},
		"load[1]": {"load y\n", `^$`},
		"sub":     {"in sub\n", `== sub:a, `},
	} {
		r := s.try("", "flow", "logs", "1", node)
		if r.code != exitOK || r.out != want.out {
			t.Errorf("logs of %s: %+v", node, r)
		}
		matches(t, r.err, want.heads)
	}
	nodes := map[string]string{}
	for _, line := range s.lines("flow", "logs", "1", "load") {
		if fmt.Sprint(line["flow_run"], " ", s.object("job", "show", fmt.Sprint(line["job_id"]))["kind"]) != "1 flow_command" {
			t.Errorf("a line is %v", line)
		}
		nodes[as[string](t, line["node"])] += as[string](t, line["text"])
	}
	if nodes["load[0]"] != "load x\n" || nodes["load[1]"] != "load y\n" {
		t.Errorf("with --json: %v", nodes)
	}

	// What goes on after its end took the time since then.
	s.ok("flow", "rerun", "1", "last", "--wait")
	again := s.ok("flow", "show", "1")
	matches(t, again, `(?m)^went on +20\S+Z\nended .*\ntook +\d\S* since it went on$|(?m)^ended +.*\nwent on +20\S+Z\ntook +\d\S* since it went on$`)
	if r := s.try("", "flow", "logs", "1", "nosuch"); r.code != exitNotFound {
		t.Errorf("logs of no node: %+v", r)
	}
}

// A value that stands for none is refused where it is given.
func TestFlagsThatSayNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("flow", "push", project(t, "nodes: [{name: a, type: noop}]\n"), "--project", "p")
	for _, flag := range [][]string{
		{"--max-parallel", "0"}, {"--job-priority", "0"}, {"--version", "0"}, {"--version", "-1"}, {"--queue", ""}, {"--on-failure", ""}, {"--on-cancelled-end", ""}, {"--concurrent", ""},
	} {
		s.fails(exitUsage, "", append([]string{"flow", "run", "p/f"}, flag...)...)
		s.fails(exitUsage, "", append([]string{"schedule", "put", "x", "--every", "1h", "--flow", "p/f"}, flag...)...)
	}
	if runs := s.lines("flow", "runs"); len(runs) != 0 {
		t.Errorf("runs were started: %v", runs)
	}
}

// What was asked of a run names its node, and says what was so already; and who waits sees what changes from then on alone.
func TestWhatVerbsSay(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	serveFlows(t, s)
	gate := filepath.Join(t.TempDir(), "gate")
	s.ok("flow", "push", project(t, `
nodes:
  - {name: fine, type: command, config: {command: "true"}}
  - {name: bad, type: command, dependsOn: [fine], config: {command: "test -e `+gate+`"}}
  - {name: after, type: noop, dependsOn: [bad]}
`), "--project", "p")
	if r := s.try("", "flow", "run", "p/f", "--wait"); r.code != exitFailed || !strings.Contains(r.err, " SUCCEEDED        fine") {
		t.Errorf("run: %+v", r)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.try("", "flow", "retry", "1", "--wait")
	if r.code != exitOK || strings.Contains(r.err, "fine") || strings.Contains(r.err, "FAILED") || !strings.Contains(r.err, " SUCCEEDED        bad") {
		t.Errorf("retry: %+v", r)
	}
	r = s.try("", "flow", "rerun", "1", "bad", "--wait")
	if r.code != exitOK || strings.Contains(r.err, "fine") || strings.Count(r.err, " SUCCEEDED        bad") != 1 {
		t.Errorf("rerun: %+v", r)
	}
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	s.fails(exitFailed, "FAILED", "flow", "run", "p/f", "--wait")
	if got := s.ok("flow", "succeed", "2", "bad"); got != "run 2: bad counts as succeeded\n" {
		t.Errorf("succeed: %s", got)
	}
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(s.ok("flow", "show", "2"), "status   SUCCEEDED") }, "the run to succeed")
	matches(t, s.ok("flow", "why", "2", "bad"), `^marked as succeeded by \S+, was FAILED: program "test" exited with code 1\n$`)

	s.ok("queue", "pause", "default")
	s.ok("flow", "run", "p/f")
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(s.ok("flow", "show", "3"), "status   RUNNING") }, "the run to begin")
	if got := s.ok("flow", "pause", "3"); got != "run 3: is being paused\n" {
		t.Errorf("pause: %s", got)
	}
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(s.ok("flow", "show", "3"), "status   PAUSED") }, "the run to be paused")
	if got := s.ok("flow", "pause", "3"); got != "run 3: is PAUSED already\n" {
		t.Errorf("pause again: %s", got)
	}
	s.ok("flow", "kill", "3", "--wait=false")
	s.fails(exitNotFound, "there is no run 99", "flow", "kill", "99")
}
