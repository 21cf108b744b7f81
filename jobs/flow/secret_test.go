package flow_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/schema/schematest"
)

// Values of secrets. Their beginning must be found nowhere.
const (
	password  = "s3cr3t 'Val&ue' +7zq"
	token     = "s3cr3tT0ken/of+all=="
	fragment  = "s3cr3t"
	encoded   = "czNjcjN0" // the same in base64
	hexDigits = "733363723374"
)

// newSecretHouse is a house with keys and two secrets, one of project p and one for all.
func newSecretHouse(t *testing.T) (*house, *secret.Client) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(file, []byte(secret.NewKey()), 0o600))
	h := &house{t: t, pool: schematest.Pool(t), keys: secret.KeyFile(file)}
	h.jobs, h.flows = h.client(nil)
	secrets := secret.NewClient(h.pool, h.jobs, h.keys)
	for name, value := range map[string]string{"PW": password, "TOKEN": token} {
		_, err := secrets.Set(t.Context(), map[string]string{"PW": "p", "TOKEN": secret.Everywhere}[name], name, []byte(value))
		must(t, err)
	}
	return h, secrets
}

// sum is what programs print to show that they have a value.
func sum(value string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(value))) }

// Programs get secrets by their command line, their environment and the script of a shell, and print them in all ways; afterwards nothing of them
// is in any table, nor in a file.
func TestSecretsAreStoredNowhere(t *testing.T) {
	t.Parallel()
	h, secrets := newSecretHouse(t)
	temp := t.TempDir()
	h.push(write(t, map[string]string{
		"p.project": "azkaban-flow-version: 2.0\n",
		"sum.sh":    `printf %s "$1" | sha256sum; echo "argument $1"; echo "argument $1" >&2`,
		"f.flow": `
on_failure: finish_possible
config:
  db.password: ${secret.PW}
nodes:
  - name: argument
    type: command
    config:
      command: sh sum.sh ${secret.PW}
      command.1: sh sum.sh ${db.password}
  - name: environment
    type: command
    config:
      env.TOKEN: ${secret.TOKEN}
      env.URL: http://u:${secret.TOKEN}@host/
      command: bash -c 'printf %s "$TOKEN" | sha256sum; echo $URL; printf "user:%s" "$TOKEN" | base64; env'
  - name: script
    type: command
    config:
      command: bash -c 'printf %s "${secret.PW}" | sha256sum; echo "${db.password}"; tr "\\0" " " < /proc/$$/cmdline'
      command.1: bash -c "printf %s '${secret.PW}' | sha256sum"
      command.2: bash -c "printf %s 'a ${secret.TOKEN} b' | sha256sum"
  - name: split
    type: command
    config:
      env.A: ${secret.TOKEN}
      command: bash -c 'for ((i = 0; i < ${#A}; i++)); do /usr/bin/printf %s "${A:i:1}"; done; /usr/bin/printf end'
      command.1: bash -c 'printf %s "${A:0:9}"'
      command.2: bash -c 'printf %s "${A:9}"'
  - name: stderr
    type: command
    config:
      command: bash -c 'echo "cannot log in with ${secret.PW}" >&2; exit 3'
  - name: cut
    type: command
    config:
      env.A: ${secret.TOKEN}
      command: bash -c 'printf "%s%04085d" "$A" 0 >&2; exit 3'
  - name: output
    type: command
    config:
      env.TOKEN: ${secret.TOKEN}
      command: bash -c 'echo "{\"found\":\"$TOKEN\"}" > $JOB_OUTPUT_PROP_FILE'
  - name: properties
    type: command
    config:
      command: bash -c 'cat $JOB_PROP_FILE; test "${secret.PW}"; cp -r $(dirname $JOB_PROP_FILE) ` + temp + `'
  - name: missing
    type: command
    config:
      command: echo ${secret.NONE}
  - name: program
    type: command
    config:
      command: ${secret.TOKEN} a
  - name: notfound
    type: command
    config:
      env.PATH: /nowhere/${secret.TOKEN}
      command: nosuchprogram
  - name: sample
    type: test
    config:
      fail: "false"
      seconds: 0
`,
	}))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "FAILED: argument=SUCCEEDED cut=FAILED environment=SUCCEEDED missing=FAILED notfound=FAILED output=FAILED "+
		"program=FAILED properties=SUCCEEDED sample=SUCCEEDED script=SUCCEEDED split=SUCCEEDED stderr=FAILED")
	for node, want := range map[string][]string{
		"argument":    {sum(password) + "  -", "argument ***"},
		"environment": {sum(token) + "  -", "http://u:***@host/", "***", "TOKEN=***"},
		"script":      {sum(password), "***", sum("a " + token + " b"), `bash -c printf %s "${PELTON_SECRET_PW}"`},
		"split":       {"***end***"},
		"stderr":      {"cannot log in with ***"},
	} {
		for _, text := range want {
			if log := h.log(run, node); !strings.Contains(log, text) {
				t.Errorf("%s printed %q, want %q in it", node, log, text)
			}
		}
	}
	if log := h.log(run, "script"); strings.Count(log, sum(password)) != 2 {
		t.Errorf("a script that quotes printed %q", log)
	}
	if log := h.log(run, "properties"); strings.Contains(log, "password") || !strings.Contains(log, "azkaban.job.id=properties") {
		t.Errorf("JOB_PROP_FILE holds %s", log)
	}
	for node, want := range map[string]string{
		"stderr":   "program \"bash\" exited with code 3; its last lines on stderr:\ncannot log in with ***",
		"output":   "output found holds a secret",
		"missing":  "secret NONE: there is none of that name for project p, nor for all: pelton secret set NONE --project p",
		"program":  "the name of a program holds a secret",
		"notfound": "is in no directory of PATH (/nowhere/***)",
	} {
		why, err := h.flows.Why(t.Context(), run, node)
		must(t, err)
		if text := fmt.Sprint(why); !strings.Contains(text, want) {
			t.Errorf("why %s: %s, want %q in it", node, text, want)
		}
	}
	must(t, secrets.Delete(t.Context(), secret.Everywhere, "TOKEN"))
	for _, part := range []string{fragment, encoded, hexDigits, "T0ken", "f+all"} {
		for _, row := range schematest.Find(t, h.pool, part) {
			t.Errorf("stored: %s", row)
		}
	}
	must(t, filepath.WalkDir(temp, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), fragment) {
			t.Errorf("%s was on the disk: %s", path, text)
		}
		return err
	}))
}

// A retry uses the value of its time; a project's secret beats that for all; without a key, or with another one, only nodes that need secrets fail.
func TestSecretsAtTheTimeOfTheRun(t *testing.T) {
	t.Parallel()
	h, secrets := newSecretHouse(t)
	h.push(yaml(t, `
nodes:
  - name: once
    type: command
    config:
      env.A: ${secret.TOKEN}
      command: bash -c 'printf %s "$A" | sha256sum; test -n "$OK"; exit 1'
      retries: 0
`))
	run := h.start("f", flow.Options{})
	equal(t, "first", h.ended(run), "FAILED: once=FAILED")
	if log := h.log(run, "once"); log != sum(token)+"  -\n" {
		t.Errorf("the secret for all: %s", log)
	}
	set := func(project, value string) {
		t.Helper()
		_, err := secrets.Set(t.Context(), project, "TOKEN", []byte(value))
		must(t, err)
		must(t, h.flows.Retry(t.Context(), run))
		equal(t, "again", h.ended(run), "FAILED: once=FAILED")
		if log := h.log(run, "once"); log != sum(value)+"  -\n" {
			t.Errorf("after %s was set: %s", value, log)
		}
	}
	set("*", "a new value for all")
	set("p", "the project's own")

	file := string(h.keys.(secret.KeyFile))
	for want, keys := range map[string]string{
		"it was encrypted with key":                     secret.NewKey(),
		"line 1 is no key: want 32 bytes in base64":     "c2hvcnQ=",
		"no key for secrets: the key file " + file + "": "",
	} {
		must(t, os.Remove(file))
		if keys != "" {
			must(t, os.WriteFile(file, []byte(keys), 0o600))
		} else {
			must(t, os.WriteFile(file+".not", nil, 0o600))
		}
		must(t, h.flows.Retry(t.Context(), run))
		equal(t, "without its key", h.ended(run), "FAILED: once=FAILED")
		why, err := h.flows.Why(t.Context(), run, "once")
		must(t, err)
		if !strings.Contains(fmt.Sprint(why), want) {
			t.Errorf("why: %v, want %q", why, want)
		}
		if keys == "" {
			must(t, os.WriteFile(file, nil, 0o600)) // for the next to remove
		}
	}
}

// Who may start runs, and what programs put out, cannot ask for secrets, neither by name nor through the project's parameters.
func TestSecretsAreForTheProjectsOwnTexts(t *testing.T) {
	t.Parallel()
	h, _ := newSecretHouse(t)
	h.push(yaml(t, `
on_failure: finish_possible
config:
  pw: ${secret.PW}
  text: none
nodes:
  - name: by_run
    type: command
    config:
      command: echo ${text}
  - name: puts_out
    type: command
    config:
      command: bash -c 'printf "{\"a\":\"$%s\",\"b\":\"$%s\",\"list\":[\"$%s\"]}" "{secret.PW}" "{pw}" "{secret.PW}" > $JOB_OUTPUT_PROP_FILE'
  - name: by_output
    type: command
    dependsOn: [puts_out]
    config:
      command: echo ${a}
  - name: by_item
    type: command
    dependsOn: [quiet]
    for_each: ${quiet:list}
    config:
      command: echo ${item}
  - name: quiet
    type: command
    config:
      command: bash -c 'printf "{\"list\":[\"$%s\"]}" "{secret.PW}" > $JOB_OUTPUT_PROP_FILE'
`))
	for _, o := range []flow.Options{
		{Params: map[string]string{"text": "${secret.PW}"}},
		{Params: map[string]string{"secret.PW": "x"}},
		{NodeParams: map[string]map[string]string{"by_run": {"text": "a ${secret.PW}"}}},
	} {
		_, err := h.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "f", Options: o})
		if _, invalid := errors.AsType[*flow.InvalidOptionsError](err); !invalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
	byRun := h.start("f", flow.Options{Params: map[string]string{"text": "${pw}"}})
	h.ended(byRun)
	why, err := h.flows.Why(t.Context(), byRun, "by_run")
	must(t, err)
	equal(t, "by the run", why, "parameter text refers to a secret, and only what a project's own files say may do so, not the run")

	run := h.start("f", flow.Options{})
	h.ended(run)
	why, err = h.flows.Why(t.Context(), run, "by_output")
	must(t, err)
	for name, from := range map[string]string{"a": "outputs of puts_out", "b": "outputs of puts_out"} {
		if want := "parameter " + name + " refers to a secret, and only what a project's own files say may do so, not " + from; !strings.Contains(why, want) {
			t.Errorf("by_output: %s, want %s", why, want)
		}
	}
	equal(t, "item", h.log(run, "by_item[0]"), "${secret.PW}\n") // data, as anything in an item
	for _, row := range schematest.Find(t, h.pool, fragment) {
		t.Errorf("stored: %s", row)
	}
}

// A job that only says that it is a node's gets none.
func TestSecretsAreForNodesOnly(t *testing.T) {
	t.Parallel()
	h, _ := newSecretHouse(t)
	h.push(yaml(t, "nodes:\n  - name: a\n    type: command\n    config:\n      command: true\n"))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "SUCCEEDED: a=SUCCEEDED")
	for metadata, want := range map[string]string{
		"{}": "the job is none of a flow's node",
		fmt.Sprintf(`{"pelton:flow":{"run":%d,"node":0}}`, run): "is not the newest of a node of run",
	} {
		var args []byte
		must(t, h.pool.QueryRow(t.Context(), `SELECT json_build_object('run', $1::bigint, 'node', 'a', 'version', 1,
			'type', 'command', 'commands', ARRAY['echo ${secret.PW:0123456789abcdef}'], 'secrets', '0123456789abcdef', 'files',
			(SELECT version_id FROM pelton.flow_run))`, run).Scan(&args))
		id := h.forge("flow_command", args, metadata)
		waitFor(t, h.jobs, id)
		job, err := h.jobs.JobGet(t.Context(), id)
		must(t, err)
		if len(job.Errors) != 1 || !strings.Contains(job.Errors[0].Error, want) {
			t.Errorf("%s: %+v, want %s", metadata, job.Errors, want)
		}
	}
}

// forge enqueues a job whose metadata say what only the engine says. A program with the database's password can.
func (h *house) forge(kind string, args []byte, metadata string) int64 {
	h.t.Helper()
	job, err := h.jobs.Insert(h.t.Context(), jobs.RawArgs{JobKind: kind, JSON: args}, &river.InsertOpts{MaxAttempts: 1, Metadata: []byte(metadata)})
	must(h.t, err)
	return job.Job.ID
}

// Marks that no engine has made are no nodes: the job ends as any other, runs are as they were, and the engine goes on.
func TestForgedMarks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, "nodes:\n  - {name: a, type: noop}\n"))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "SUCCEEDED: a=SUCCEEDED")
	for _, forged := range []string{
		`{"run":%d,"node":-1}`, `{"run":%d,"node":0}`, `{"run":%d,"node":1}`, `{"run":%d,"node":2147483647}`, `{"run":%d,"node":-2147483648}`, `{"run":%d,"node":99999999999}`,
		`{"run":%d,"node":"x"}`, `{"run":%d}`, `{"run":%d,"node":0,"try":-1}`, `{"run":%d,"node":0,"timeout":-1}`, `{"run":%d,"node":0,"retry":{"backoff":-1}}`, `{"run":-%d,"node":0}`,
		`{"run":99%d,"node":0}`, `{"run":9223372036854775807,"node":%d}`, `{"run":"%d","node":0}`, `[%d]`,
	} {
		id := h.forge(flowtest.Kind, []byte("{}"), fmt.Sprintf(`{"pelton:flow":`+forged+`}`, run))
		waitFor(t, h.jobs, id)
		if job, err := h.jobs.JobGet(t.Context(), id); err != nil || job.State != rivertype.JobStateCompleted {
			t.Errorf("%s: %+v, %v", forged, job, err)
		}
		if _, err := h.jobs.JobRetry(t.Context(), id); err != nil {
			if _, is := errors.AsType[*jobs.FlowNodeError](err); !is {
				t.Errorf("%s: retry: %v", forged, err)
			}
		} else {
			waitFor(t, h.jobs, id)
		}
		if _, err := h.jobs.JobErase(t.Context(), id); err != nil {
			t.Errorf("%s: erase: %v", forged, err)
		}
	}
	equal(t, "next run", h.ended(h.start("f", flow.Options{})), "SUCCEEDED: a=SUCCEEDED")
	equal(t, "first run", h.ended(run), "SUCCEEDED: a=SUCCEEDED")
	pgtest.Eventually(t, patience, func() bool {
		var n int
		must(t, h.pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.flow_report`).Scan(&n))
		return n == 0
	}, "the engine to have read all reports")
}

// What would be stored or told is refused by the push.
func TestSecretsWhereTheyCannotBe(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for config, want := range map[string]string{
		"condition: ${secret.PW} == 1":                                            "condition: secret.PW cannot be used in a condition",
		"condition: ${first:pw} == 1":                                             "condition: parameter pw of first uses secret.PW, which cannot be used in a condition",
		"for_each: [a, \"${secret.PW}\"]\n    config:\n      command: true":       "for_each: item 1 uses secret.PW",
		"for_each: [\"${inner}\"]\n    config:\n      command: true":              "for_each: item 0 uses secret.PW",
		"config:\n      working.dir: /tmp/${secret.PW}":                           "working.dir: a secret cannot be used here: it is told in errors",
		"config:\n      working.dir: /tmp/${inner}":                               "working.dir: secret.PW cannot be used here",
		"config:\n      failure.emails: a@${secret.PW}":                           "failure.emails: a secret cannot be used here",
		"config:\n      secret.PW: mine":                                          "secret.PW: names that begin with secret. are those of secrets",
		"config:\n      command: echo ${secret.1.2}":                              "command: ${secret.1.2}: a secret's name has up to 64 letters, digits and _",
		"TEST\n    config:\n      a: ${secret.PW}":                                "a uses secret.PW in a node of kind \"test\": a job's args are stored",
		"TEST\n    config:\n      a: b ${inner}":                                  "a uses secret.PW in a node of kind \"test\"",
		"config:\n      command: echo ${secret.PW}\n      env.A: ${secret.OTHER}": "",
	} {
		typ := "command"
		if rest, is := strings.CutPrefix(config, "TEST\n    "); is {
			typ, config = flowtest.Kind, rest
		}
		_, err := h.flows.Push(t.Context(), "p", yaml(t, `
config:
  inner: ${outer}
  outer: ${secret.PW}
  command: echo a
nodes:
  - name: first
    type: command
    config:
      pw: x ${inner}
  - name: second
    type: `+typ+`
    dependsOn: [first]
    `+config+"\n"))
		if want == "" {
			must(t, err)
		} else if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
	}
	built, err := flow.New("f").Node("a", flowtest.Kind, map[string]string{"x": "${secret.PW}"}).Build()
	must(t, err)
	if _, err := h.flows.PushFlows(t.Context(), "p", built); err == nil || !strings.Contains(err.Error(), "x uses secret.PW") {
		t.Errorf("built: %v", err)
	}
	if _, err := flow.New("f").Job("a", flowtest.Args{"fail": "${secret.PW}"}).Build(); err == nil || !strings.Contains(err.Error(), "use secret.PW") {
		t.Errorf("built with args: %v", err)
	}
}

// What a kind does not say itself is left out of its args, rather than that no flow with secrets could have one.
func TestKindsDoNotGetSecretsOfTheFlow(t *testing.T) {
	t.Parallel()
	h, _ := newSecretHouse(t)
	h.push(yaml(t, "config:\n  pw: ${secret.PW}\n  other: x\nnodes:\n  - name: a\n    type: test\n    config:\n      seconds: 0\n"))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "SUCCEEDED: a=SUCCEEDED")
	var args string
	must(t, h.pool.QueryRow(t.Context(), `SELECT args::text FROM pelton.job WHERE kind = 'test'`).Scan(&args))
	if args != `{"other":"x","seconds":"0"}` {
		t.Errorf("args are %s", args)
	}
}

// A note says that a command line can be seen.
func TestSecretsOnCommandLinesAreNoted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	report, err := h.flows.Check(t.Context(), yaml(t, `
config:
  pw: ${secret.PW}
nodes:
  - name: shown
    type: command
    config:
      command: mysql -p${pw}
  - name: hidden
    type: command
    config:
      command: bash -c 'mysql -p"${secret.PW}"'
      env.A: ${secret.PW}
`))
	must(t, err)
	if len(report.Notes) != 1 || report.Notes[0].Node != "shown" || !strings.Contains(report.Notes[0].Reason, "secret.PW stands on a command line") {
		t.Errorf("notes: %v", report.Notes)
	}
}

// waitFor waits until a job has ended.
func waitFor(t *testing.T, client *jobs.Client, id int64) {
	t.Helper()
	pgtest.Eventually(t, patience, func() bool {
		job, err := client.JobGet(t.Context(), id)
		must(t, err)
		return job.FinalizedAt != nil
	}, "job %d to end", id)
}
