package flow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// What a node's parameters are, and where each comes from, is told as the node has them; secrets are not.
func TestExplanationOfANode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(_ context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "b" {
			return nil, errors.New("b is broken")
		}
		return map[string]string{"rows": "42"}, nil
	})
	h.push(yaml(t, `
config: {day: 2026-01-31, table: "t_${day}"}
nodes:
  - {name: a, type: test}
  - {name: b, type: test, dependsOn: [a], config: {of: "${table} ${rows}"}}
  - {name: c, type: test, dependsOn: [b], config: {of: "${nowhere}"}}
`))
	run := h.start("f", flow.Options{Params: map[string]string{"day": "2026-02-01"}})
	h.ended(run)
	e, err := h.flows.Explain(t.Context(), run, "b")
	must(t, err)
	for _, want := range []flow.Param{
		{Name: "day", Value: "2026-02-01", From: "the run"},
		{Name: "table", Value: "t_2026-02-01", From: "the flow's config"},
		{Name: "rows", Value: "42", From: "outputs of a"},
		{Name: "of", Value: "t_2026-02-01 42", From: "config of b"},
	} {
		if !slices.Contains(e.Params, want) {
			t.Errorf("no %+v in %+v", want, e.Params)
		}
	}
	why, err := h.flows.Why(t.Context(), run, "b")
	must(t, err)
	equal(t, "why", fmt.Sprint(e.Why, " | ", e.ParamsFault), why+" | ")
	e, err = h.flows.Explain(t.Context(), run, "c")
	must(t, err)
	if e.ParamsFault == "" || !slices.Contains(e.Params, flow.Param{Name: "of", Value: "${nowhere}", From: "config of c"}) {
		t.Errorf("what cannot be resolved: %+v", e)
	}
	if _, err := h.flows.Explain(t.Context(), run, "d"); !errors.Is(err, flow.ErrNotFound) {
		t.Errorf("a node that there is not: %v", err)
	}
}

// A version's picture is drawn once; what a run's looks like beside it is its colours.
func TestPictureIsDrawnOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, "nodes:\n  - {name: a, type: noop}\n"))
	one, err := h.flows.Picture(t.Context(), "p", "f", 0)
	must(t, err)
	two, err := h.flows.Picture(t.Context(), "p", "f", 1)
	must(t, err)
	if one != two {
		t.Error("it is drawn twice")
	}
	run := h.start("f", flow.Options{})
	h.ended(run)
	var plain, coloured bytes.Buffer
	must(t, h.flows.SVG(t.Context(), &plain, "p", "f", 0))
	must(t, h.flows.RunSVG(t.Context(), &coloured, run))
	if bytes.Contains(plain.Bytes(), []byte("SUCCEEDED")) || !bytes.Contains(coloured.Bytes(), []byte("a (noop): SUCCEEDED")) {
		t.Errorf("plain: %s, coloured: %s", &plain, &coloured)
	}
	for _, missing := range [][2]string{{"q", "f"}, {"p", "g"}} {
		if _, err := h.flows.Picture(t.Context(), missing[0], missing[1], 0); !errors.Is(err, flow.ErrNotFound) {
			t.Errorf("%v: %v", missing, err)
		}
	}
}

// What is wrong with options says which of them.
func TestFaultsOfOptionsByField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, "nodes:\n  - {name: a, type: noop}\n"))
	_, err := h.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "f", Options: flow.Options{
		Params: map[string]string{"azkaban.flow.x": "1"}, Disabled: []string{"b"}, MaxParallel: -1, Concurrent: "maybe", SLAs: []flow.SLA{{Node: "c"}},
	}})
	invalid, ok := errors.AsType[*flow.InvalidOptionsError](err)
	if !ok {
		t.Fatal(err)
	}
	var fields []string
	for _, fault := range invalid.Faults() {
		fields = append(fields, fault.Field)
		if fault.Reason == "" {
			t.Errorf("%+v", fault)
		}
	}
	slices.Sort(fields)
	equal(t, "fields", fmt.Sprint(fields), "[concurrent disabled max_parallel params slas slas slas]")
}
