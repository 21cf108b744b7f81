package loadtest

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestWake(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	config := WakeConfig{Inserts: 5, GapMin: time.Millisecond, GapMax: 20 * time.Millisecond, PGBin: pgBin(), noSync: true}
	report, err := Wake(t.Context(), config, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, e := range engines {
		if d := report.Engines[e.name()]; d.P50 < 0 || d.P95 < d.P50 || d.Max < d.P95 {
			t.Errorf("%s: delays %+v", e.name(), d)
		}
	}
	var printed WakeReport
	if decodeReport(t, report, &printed); printed.Scenario != "wake" {
		t.Errorf("the scenario is %q", printed.Scenario)
	}
}

func TestWakeRefuses(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]WakeConfig{
		"inserts": {Inserts: -1},
		"gaps":    {GapMin: 2, GapMax: 1},
		"engine":  {Engines: []string{"x"}},
	} {
		if _, err := Wake(t.Context(), config, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestDelays(t *testing.T) {
	t.Parallel()
	var delays []time.Duration
	for i := range 100 {
		delays = append(delays, time.Duration(100-i)*time.Millisecond)
	}
	if got, want := summarizeDelays(delays), (WakeDelays{P50: 51, P95: 96, Max: 100}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
