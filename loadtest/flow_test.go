package loadtest

import (
	"bytes"
	"strings"
	"testing"
)

func TestFlow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	report, err := Flow(t.Context(), FlowConfig{Nodes: 30, Chain: 3, Rounds: 1, PGBin: pgBin(), noSync: true}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if report.NoopPerS <= 0 || report.JobsPerS <= 0 || report.Steps.Max < report.Steps.P50 {
		t.Errorf("report %+v", report)
	}
	var printed FlowReport
	if decodeReport(t, report, &printed); printed.Scenario != "flow" {
		t.Errorf("the scenario is %q", printed.Scenario)
	}
}

func TestFlowRefuses(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]FlowConfig{"nodes": {Nodes: -1}, "chain": {Chain: 1}, "rounds": {Rounds: 101}} {
		if _, err := Flow(t.Context(), config, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
