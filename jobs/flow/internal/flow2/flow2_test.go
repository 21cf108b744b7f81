package flow2

import (
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/draft"
)

func TestNodesOfAFileAreBounded(t *testing.T) {
	t.Parallel()
	for left, want := range map[int]int{3: 0, 2: 1, 0: 1} {
		report := &draft.Report{}
		d := parse("a.flow", []byte("nodes:\n- {name: a, type: flow, nodes: [{name: b}]}\n- {name: c}\n"), report)
		d.nodesLeft = left
		if d.flow(); len(report.Faults) != want {
			t.Errorf("with %d nodes left: %v", left, report.Faults)
		}
	}
}

func TestValuesOfAFileAreBounded(t *testing.T) {
	t.Parallel()
	report := &draft.Report{}
	d := parse("a.flow", []byte("config: {a: &a x, b: *a}\nnodes: [{name: a}, {name: b}]\n"), report)
	d.budget = 5
	if d.flow(); len(report.Faults) != 1 {
		t.Errorf("got %v", report.Faults)
	}
}
