package main

import (
	"strings"
	"testing"
)

// What an installation says of all flows: parameters that everything else beats, and how much memory a Java process may ask for.
func TestFlowSettings(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	env := []string{"DATABASE_URL=" + s.url}
	launch(t, env, append([]string{
		"server", "--worker", "--listen", "", "--json", "--files-dir", t.TempDir(),
		"--flow-param", "who=all", "--flow-param", "where=here", "--flow-max-xmx", "3G",
	}, quick...)...).started()
	dir := project(t, `
on_failure: finish_possible
config: {who: the flow}
nodes:
  - {name: say, type: command, config: {command: "echo ${who} ${where} ${how}"}}
  - {name: large, type: javaprocess, config: {java.class: X, Xms: 512M, Xmx: 4G}}
  - {name: larger, type: javaprocess, config: {java.class: X, Xms: "${much}", Xmx: "${much}"}}
`)
	s.fails(exitUsage, "large: Xmx is 4G, at most 2048M are allowed", "flow", "push", dir, "--project", "p")
	s.fails(exitUsage, "large: Xms is 512M, at most 256M are allowed", "flow", "push", dir, "--project", "p", "--flow-max-xms", "256m")
	s.ok("flow", "push", dir, "--project", "p", "--flow-max-xmx", "4G")
	s.fails(exitFailed, "FAILED", "flow", "run", "p/f", "--param", "how=now", "--param", "much=5G", "--wait")
	if got := s.ok("flow", "logs", "1", "say"); got != "the flow here now\n" {
		t.Errorf("say printed %q", got)
	}
	for node, want := range map[string]string{
		"large": "Xmx is 4G, at most 3072M are allowed", "larger": "Xms is 5G, at most 1024M are allowed; Xmx is 5G, at most 3072M are allowed",
	} {
		if got := s.ok("flow", "why", "1", node); strings.TrimSpace(got) != want {
			t.Errorf("why %s failed: %q, want %q", node, got, want)
		}
	}
	for says, line := range map[string]string{
		`--flow-param "x": want NAME=VALUE`:                    "server --listen= --flow-param x",
		`"azkaban.flow.x" is the engine's own`:                 "server --listen= --flow-param azkaban.flow.x=1",
		`largest Xms: "much" is no size of memory`:             "server --listen= --flow-max-xms much",
		`largest Xmx: 1K is too little, want 1M or more`:       "server --listen= --flow-max-xmx 1K",
		`largest Xmx: "-1G" is no size of memory`:              "flow push " + dir + " --check --flow-max-xmx=-1G",
		`type "command" is built in and cannot be mapped`:      "flow push " + dir + " --check --flow-type command=echo",
		`type "noop" is built in and cannot be mapped`:         "flow push " + dir + " --project p --flow-type noop=echo",
		`type "flow" is built in and cannot be a job kind`:     "flow push " + dir + " --check --flow-type flow",
		`type "javaprocess" is built in and cannot be a job`:   "flow push " + dir + " --check --flow-type javaprocess",
		`unknown flag: --flow-type`:                            "server --listen= --flow-type say=echo",
		`--flow-type "=x": want TYPE=COMMAND, as in 'hive=bee`: "flow push " + dir + " --check --flow-type =x",
	} {
		s.fails(exitUsage, says, strings.Fields(line)...)
	}
}
