package flow_test

import (
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow"
)

// A for_each without items has every output, an empty list: for another for_each, for conditions, as a parameter, from an embedded flow.
func TestNoItems(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
nodes:
  - {name: z, for_each: [], type: test}
  - {name: each, dependsOn: [z], for_each: "${z:v}", type: test}
  - {name: after, dependsOn: [each], for_each: "${each:w}", type: test}
  - {name: if, dependsOn: [z], condition: "${z:v} == '[]'", type: noop}
  - {name: in, type: flow, dependsOn: [z], nodes: [{name: x, for_each: [], type: test}, {name: y, type: command, config: {command: "echo ${v}"}}]}
  - {name: of, dependsOn: [in], type: command, config: {command: "echo ${v}, ${w.x}"}}
`))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "SUCCEEDED: after=SUCCEEDED each=SUCCEEDED if=SUCCEEDED in=SUCCEEDED in:x=SUCCEEDED in:y=SUCCEEDED of=SUCCEEDED z=SUCCEEDED")
	equal(t, "within", h.log(run, "in:y"), "[]\n")
	equal(t, "behind", h.log(run, "of"), "[], []\n")
}

// The manual's example of a for_each, and what of it is true of an empty list.
func TestManualOfNoItems(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
nodes:
  - {name: sizes, type: command, for_each: [], config: {command: "bash -c 'echo \"{\\\"size\\\":1${item.index}}\" > $JOB_OUTPUT_PROP_FILE'"}}
  - {name: sum, type: command, dependsOn: [sizes], config: {command: "echo sizes are ${size}"}}
`))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "SUCCEEDED: sizes=SUCCEEDED sum=SUCCEEDED")
	equal(t, "sum", h.log(run, "sum"), "sizes are []\n")
}

// Items of an output are data: whatever they hold is what their instances get, and one that looks odd is no matter of the others. So are the
// lists that a for_each puts out.
func TestOddItems(t *testing.T) {
	t.Parallel()
	var jobs seen
	h := newHouse(t, jobs.outputs(map[string]map[string]string{
		"s":        {"items": `["$(1","${nope}","ok"]`},
		"again[0]": {"out": "$(1"}, "again[1]": {"out": "${nope}"}, "again[2]": {"out": "$(1+1)"},
	}))
	h.push(yaml(t, `
nodes:
  - {name: s, type: test}
  - {name: each, type: command, dependsOn: [s], for_each: "${s:items}", config: {command: "echo ${item}$(1+1)"}}
  - {name: again, type: test, dependsOn: [s], for_each: "${s:items}", config: {text: "it is ${item}"}}
  - {name: sum, type: test, dependsOn: [again], config: {all: "${out}"}}
  - {name: fixed, type: test, for_each: ["${day}"], config: {text: "${item}"}}
`))
	run := h.start("f", flow.Options{Params: map[string]string{"day": "monday"}})
	if got := h.ended(run); !strings.HasPrefix(got, "SUCCEEDED:") {
		t.Fatal(got)
	}
	for path, want := range map[string]string{"each[0]": "$(12\n", "each[1]": "${nope}2\n", "each[2]": "ok2\n"} {
		equal(t, path, h.log(run, path), want)
	}
	jobs.check(t, []string{"again[0]", "again[1]", "sum", "fixed[0]"}, [][]string{
		{"text", "it is $(1", "it is ${nope}", "", "monday"},
		{"item", "$(1", "${nope}", "-", "monday"},
		{"items", `["$(1","${nope}","ok"]`, "", "-", ""},
		{"all", "", "", `["$(1","${nope}","$(1+1)"]`, ""},
	})
}
