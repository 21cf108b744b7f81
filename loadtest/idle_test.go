package loadtest

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestIdle(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	config := IdleConfig{For: 300 * time.Millisecond, Settle: time.Millisecond, Engines: engineNames(engines), PGBin: pgBin(), noSync: true}
	report, err := Idle(t.Context(), config, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	// River polls every 20 ms here, so a count of nothing would mean that nothing is counted.
	if got := report.Engines[EngineRiver]; got.PerMinute < 60 || len(got.Statements) == 0 {
		t.Errorf("river: %+v", got)
	}
	var printed IdleReport
	if decodeReport(t, report, &printed); printed.Scenario != "idle" {
		t.Errorf("the scenario is %q", printed.Scenario)
	}
}

func TestIdleRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Idle(t.Context(), IdleConfig{For: -1}, nil); err == nil {
		t.Error("a negative time was taken")
	}
}

func TestCountIdle(t *testing.T) {
	t.Parallel()
	got := countIdle(peltonEngine{}, []statement{
		{Query: "-- a comment\nSELECT 1", Calls: 2},
		{Query: "UPDATE \"pelton\".executor SET beat = beat + 1", Calls: 6},
	}, 30*time.Second)
	if got.PerMinute != 4 || got.HeartbeatPerMinute != 12 || got.Statements[0].Query[:6] != "UPDATE" || got.Statements[1].Query != "SELECT 1" {
		t.Errorf("got %+v", got)
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	if got := oneLine("-- why\nSELECT a -- what\n  FROM  b", 100); got != "SELECT a FROM b" {
		t.Errorf("got %q", got)
	}
	if got := oneLine(strings.Repeat("x", 50), 10); got != "xxxxxxx..." {
		t.Errorf("got %q", got)
	}
}
