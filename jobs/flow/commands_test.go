package flow_test

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
)

// log is what a node's newest job printed.
func (h *house) log(run int64, path string) string {
	h.t.Helper()
	r, err := h.flows.Get(h.t.Context(), run)
	must(h.t, err)
	var b strings.Builder
	for _, n := range r.Nodes {
		if n.Path != path || n.JobID == nil {
			continue
		}
		must(h.t, joblog.Copy(&b, joblog.Read(h.t.Context(), h.pool, schema.DefaultName, *n.JobID, 1, joblog.Options{})))
	}
	return b.String()
}

func TestCasesOfCommands(t *testing.T) {
	t.Parallel()
	for dir, c := range map[string]struct{ path, flow, want string }{
		"01-flow20-basic":       {"basicFlow20Project.zip", "basic", "SUCCEEDED: jobA=SUCCEEDED jobB=SUCCEEDED jobC=SUCCEEDED"},
		"03-conditional-sample": {"conditionalFlowProject.zip", "sample", "SUCCEEDED: JobA=SUCCEEDED JobB=SUCCEEDED JobC=CANCELLED JobD=SUCCEEDED"},
		"04-yaml-shell-fanin":   {"Archive.zip", "basic_flow", "SUCCEEDED: shell_bash=SUCCEEDED shell_echo=SUCCEEDED shell_end=SUCCEEDED shell_pwd=SUCCEEDED"},
		"05-yaml-sleep":         {"", "bashSleep", "SUCCEEDED: shell_echo=SUCCEEDED shell_end=SUCCEEDED shell_sleep=SUCCEEDED"},
		"06-yaml-embedded-2level": {
			"", "embedded_flow", "SUCCEEDED: embedded_flow1=SUCCEEDED embedded_flow1:embedded_flow2=SUCCEEDED embedded_flow1:embedded_flow2:shell_end=SUCCEEDED " +
				"embedded_flow1:embedded_flow2:shell_pwd=SUCCEEDED embedded_flow1:shell_bash=SUCCEEDED embedded_flow1:shell_echo=SUCCEEDED " +
				"embedded_flow1:shell_end=SUCCEEDED shell_echo=SUCCEEDED shell_end=SUCCEEDED shell_pwd=SUCCEEDED",
		},
		"10-yaml-embedded-chain": {
			"", "embedded_flow",
			"SUCCEEDED: embedded_flow1=SUCCEEDED embedded_flow1:jobB=SUCCEEDED embedded_flow1:jobC=SUCCEEDED jobA=SUCCEEDED jobD=SUCCEEDED",
		},
		"19-v1-zip-command": {"sample_flow_01.zip", "shell_end", "SUCCEEDED: shell_bash=SUCCEEDED shell_echo=SUCCEEDED shell_end=SUCCEEDED shell_pwd=SUCCEEDED"},
	} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, nil)
			h.push(filepath.Join(cases(t, dir), c.path))
			run := h.start(c.flow, flow.Options{})
			equal(t, c.flow, h.ended(run), c.want)
			if t.Failed() {
				r, _ := h.flows.Get(t.Context(), run)
				for _, n := range r.Nodes {
					if n.Reason != nil {
						t.Logf("%s: %s\n%s", n.Path, *n.Reason, h.log(run, n.Path))
					}
				}
			}
		})
	}
}

// Killed while it sleeps, and paused: what sleeps goes on then, and what follows waits for the end of the pause.
func TestCase05KillAndPause(t *testing.T) {
	t.Parallel()
	asleep := func(t *testing.T) (*house, int64) {
		t.Helper()
		h := newHouse(t, nil)
		h.push(cases(t, "05-yaml-sleep"))
		run := h.start("bashSleep", flow.Options{})
		h.eventually(run, "shell_echo", "SUCCEEDED")
		h.eventually(run, "shell_sleep", "RUNNING")
		return h, run
	}
	t.Run("kill", func(t *testing.T) {
		t.Parallel()
		h, run := asleep(t)
		must(t, h.flows.Kill(t.Context(), run))
		equal(t, "killed", h.ended(run), "KILLED: shell_echo=SUCCEEDED shell_end=CANCELLED shell_sleep=KILLED")
	})
	t.Run("pause", func(t *testing.T) {
		t.Parallel()
		h, run := asleep(t)
		must(t, h.flows.Pause(t.Context(), run))
		h.eventually(run, "shell_sleep", "SUCCEEDED")
		r, err := h.flows.Get(t.Context(), run)
		must(t, err)
		equal(t, "paused", describe(r), "PAUSED: shell_echo=SUCCEEDED shell_end=READY shell_sleep=SUCCEEDED")
		must(t, h.flows.Resume(t.Context(), run))
		equal(t, "resumed", h.ended(run), "SUCCEEDED: shell_echo=SUCCEEDED shell_end=SUCCEEDED shell_sleep=SUCCEEDED")
	})
}

// The time at which the run started in parts, and the number of an attempt.
func TestRunTimeProperties(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
nodes:
  - name: start
    type: command
    config:
      command: echo ${azkaban.flow.start.timestamp} ${azkaban.flow.start.second}.${azkaban.flow.start.milliseconds}
  - name: again
    type: command
    config:
      command: bash -c 'grep -q azkaban.job.attempt=1 $JOB_PROP_FILE'
      retries: 1
`))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "SUCCEEDED: again=SUCCEEDED start=SUCCEEDED")
	moment, parts, _ := strings.Cut(strings.TrimSpace(h.log(run, "start")), " ")
	if parts == "" || !strings.Contains(moment, ":"+parts) {
		t.Errorf("the run started at %s, with %s seconds", moment, parts)
	}
}

// What a run tells its nodes of themselves and of itself.
func TestRunTimePropertiesOfNodes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	say := func(node string) string {
		return node + `, type: command, config: {command: "echo ${azkaban.flow.execid} ${azkaban.flow.flowid} ${azkaban.flow.projectname} ${azkaban.flow.projectversion}` +
			` '${azkaban.flow.submituser}' ${azkaban.flow.uuid} ${azkaban.flow.nested.path} ${azkaban.job.id} in:${azkaban.job.innodes} out:${azkaban.job.outnodes}"}`
	}
	nodes := yaml(t, `
nodes:
  - {name: a, type: noop}
  - {name: b, type: noop}
  - {`+say("name: c, dependsOn: [b, a]")+`}
  - name: outer
    type: flow
    dependsOn: [c]
    nodes:
      - {name: x, type: noop}
      - name: inner
        type: flow
        dependsOn: [x]
        nodes:
          - {`+say("name: y")+`}
          - {name: z, type: noop, dependsOn: [y]}
          - {name: v, type: noop, dependsOn: [y]}
  - {`+say("name: each, for_each: [one], dependsOn: [outer]")+`}
`)
	h.push(nodes)
	h.push(nodes)
	run := h.start("f", flow.Options{})
	if got := h.ended(run); !strings.HasPrefix(got, "SUCCEEDED:") {
		t.Fatal(got)
	}
	r, err := h.flows.Get(t.Context(), run)
	must(t, err)
	if r.CreatedBy == "" {
		t.Error("nobody asked for the run")
	}
	for node, want := range map[string]string{
		"c":             "c c in:a,b out:outer",
		"outer:inner:y": "outer:inner:y y in: out:z,v",
		"each[0]":       "each[0] each[0] in:outer out:",
	} {
		equal(t, node, h.log(run, node), fmt.Sprintf("%d f p 2 %s p-f-%d %s\n", run, r.CreatedBy, run, want))
	}
}

// The import report knows what a run sets: exactly these.
func TestRunTimePropertiesAreThoseOfTheReport(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
nodes:
  - {name: a, type: command, config: {command: "bash -c 'grep -o ^azkaban[.][a-z.]* $JOB_PROP_FILE | sort'"}}
`))
	run := h.start("f", flow.Options{})
	h.ended(run)
	equal(t, "run-time properties", h.log(run, "a"), strings.Join(param.Runtime(), "\n")+"\n")
}

// A node whose job the queue would refuse fails, and holds up nothing.
func TestJobsThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
on_failure: finish_possible
nodes:
  - {name: a, type: command, config: {command: echo a}}
  - {name: large, type: command, config: {command: echo b, x: `+strings.Repeat("x", 600_000)+`, y: "${x}"}}
  - {name: after, type: noop, dependsOn: [large], condition: all_failed}
  - {name: z, type: command, config: {command: echo z}}
`))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "SUCCEEDED: a=SUCCEEDED after=SUCCEEDED large=FAILED z=SUCCEEDED")
	if why, err := h.flows.Why(t.Context(), run, "large"); err != nil || !strings.Contains(why, "over the limit of 1048576") {
		t.Errorf("why: %q, %v", why, err)
	}
	_, err := h.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "f", Options: flow.Options{Queue: "No Queue"}})
	if err == nil || !strings.Contains(err.Error(), `queue "No Queue": want up to 64`) {
		t.Errorf("a run in no queue: %v", err)
	}
}

// Parameters, outputs and files of commands, in a project of our own.
func TestCommandsSeeTheirRun(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	dir := write(t, map[string]string{
		"p.project":   "azkaban-flow-version: 2.0\n",
		"data/in.txt": "from a file",
		"f.flow": `
config:
  greeting: hello
nodes:
  - name: a
    type: command
    config:
      command: bash -c 'echo "{\"word\":\"$(cat data/in.txt)\",\"n\":3}" > $JOB_OUTPUT_PROP_FILE'
  - name: b
    type: command
    dependsOn: [a]
    config:
      command: echo ${greeting} ${who} ${word} $(${n}+1) $HOME
      command.1: bash -c 'echo $JOB_NAME $MORE; grep -c ^azkaban.flow.execid $JOB_PROP_FILE'
      env.MORE: more of ${who}
  - name: c
    type: command
    dependsOn: [b]
    config: {command: echo, command.1: "false", command.2: echo never}
`,
	})
	h.push(dir)
	run := h.start("f", flow.Options{Params: map[string]string{"who": "you"}})
	equal(t, "run", h.ended(run), "FAILED: a=SUCCEEDED b=SUCCEEDED c=FAILED")
	equal(t, "log of b", h.log(run, "b"), "hello you from a file 4 $HOME\nb more of you\n1\n")
	if got := h.log(run, "c"); strings.Contains(got, "never") {
		t.Errorf("the command after one that failed ran: %s", got)
	}
}

func TestUndefinedParameterFailsItsNode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
nodes:
  - {name: a, type: command, config: {command: "echo ${nobody.knows}"}}
  - {name: b, type: command, dependsOn: [a], config: {command: echo}}
`))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "FAILED: a=FAILED b=CANCELLED")
	why, err := h.flows.Why(t.Context(), run, "a")
	if err != nil || !strings.Contains(why, "nobody.knows") {
		t.Errorf("why a failed: %q (%v)", why, err)
	}
}

// A zip is as good as a directory.
func TestPushOfAZip(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	name := filepath.Join(t.TempDir(), "x.zip")
	file, err := os.Create(name) //nolint:gosec // the test's
	must(t, err)
	z := zip.NewWriter(file)
	for path, text := range map[string]string{
		"top/p.project": "azkaban-flow-version: 2.0\n", "top/f.flow": "nodes:\n  - {name: a, type: command, config: {command: ./run.sh}}\n",
	} {
		w, err := z.Create(path)
		must(t, err)
		_, err = w.Write([]byte(text))
		must(t, err)
	}
	head := &zip.FileHeader{Name: "top/run.sh"}
	head.SetMode(0o755)
	w, err := z.CreateHeader(head)
	must(t, err)
	_, err = w.Write([]byte("#!/bin/sh\necho ran\n"))
	must(t, err)
	must(t, z.Close())
	must(t, file.Close())
	h.push(name)
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "SUCCEEDED: a=SUCCEEDED")
	equal(t, "log", h.log(run, "a"), "ran\n")
}
