package flow_test

import (
	"errors"
	"testing"

	"github.com/peltonq/pelton/jobs/flow"
)

// Lists of addresses may hold parameters, which are resolved for the run. What cannot be resolved is seen in the job that should tell it.
func TestAddressesWithParameters(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
config:
  who: flow
  success.emails: ${who}@x.org, ${team} plain@x.org
  failure.emails: ${nobody}
  notify.emails: http://127.0.0.1:1/${azkaban.flow.flowid}/$(1+1)
nodes: [{name: a, type: noop}]
`))
	h.ended(h.start("f", flow.Options{Params: map[string]string{"who": "run", "team": "one@x.org;two@x.org"}}))
	equal(t, "of success", h.notices(), "succeeded http://127.0.0.1:1/f/2, succeeded one@x.org, succeeded plain@x.org, succeeded run@x.org, succeeded two@x.org")
	_, err := h.pool.Exec(t.Context(), `TRUNCATE pelton.job`)
	must(t, err)
	h.push(yaml(t, `
config: {failure.emails: "${nobody}", notify.emails: "http://127.0.0.1:1/${azkaban.flow.flowid}/$(1+1)"}
nodes: [{name: a, type: test}] # which fails, as nobody is not defined
`))
	h.ended(h.start("f", flow.Options{}))
	equal(t, "of failure", h.notices(), "failed ${nobody}, failed http://127.0.0.1:1/f/2")
}

// Of a Flow 1.0 project they are those of the last job and of the .properties files.
func TestAddressesOfFlow1(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(write(t, map[string]string{
		"all.properties": "domain=x.org\nteam=shared\nnotify.emails=${team}@${domain}\n",
		"first.job":      "type=noop\nboss=nobody\n",
		"last.job":       "type=noop\ndependencies=first\nboss=last\nsuccess.emails=${boss}@${domain}\n",
	}))
	h.ended(h.start("last", flow.Options{Params: map[string]string{"team": "run"}}))
	equal(t, "notices", h.notices(), "succeeded last@x.org, succeeded run@x.org")
}

// Whom a run tells, and the flow does not name, is for those who may push the project: also if a parameter puts it into the flow's own lists.
func TestTargetsThatTheFlowDoesNotName(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
config:
  who: team
  host: hooks.example.org
  success.emails: ${who}@x.org, boss@x.org
  notify.emails: https://${host}/${azkaban.flow.execid}
nodes: [{name: a, type: noop}]
`))
	beyond := func(flowName string, o flow.Options) string {
		t.Helper()
		what, err := h.flows.Beyond(t.Context(), flow.RunParams{Project: "p", Flow: flowName, Options: o})
		must(t, err)
		return what
	}
	for _, o := range []flow.Options{
		{},
		{Notify: flow.Notify{Failure: []string{"boss@x.org", "team@x.org"}}},
		{Params: map[string]string{"day": "2026-01-31", "who": "team"}},
	} {
		equal(t, "what the flow names", beyond("f", o), "")
	}
	equal(t, "one more", beyond("f", flow.Options{Notify: flow.Notify{Success: []string{"boss@x.org", "http://127.0.0.1:5432/"}, FirstFailure: []string{"a@y.org"}}}),
		"notices would go to a@y.org, http://127.0.0.1:5432/, whom the flow does not name")
	equal(t, "by a parameter", beyond("f", flow.Options{Params: map[string]string{"host": "169.254.169.254", "who": "boss"}}),
		"notices would go to https://169.254.169.254/0, whom the flow does not name")
	equal(t, "a program", beyond("f", flow.Options{Params: map[string]string{"command": "x"}}), "command would change which programs run")
	told := flow.Options{Notify: flow.Notify{Success: []string{"a@y.org"}}}
	if _, err := h.flows.Beyond(t.Context(), flow.RunParams{Project: "p", Flow: "g", Options: told}); !errors.Is(err, flow.ErrNotFound) {
		t.Errorf("of no flow: %v", err)
	}
}
