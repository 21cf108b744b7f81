package flow_test

import (
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
