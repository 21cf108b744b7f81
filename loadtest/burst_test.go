package loadtest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
)

// Many schedules are due in the same second: none is lost, none runs twice.
func TestBurst(t *testing.T) {
	t.Parallel()
	n := 2000
	if pgtest.FullSize() {
		n = 10_000
	}
	var out bytes.Buffer
	report, err := Burst(t.Context(), BurstConfig{Schedules: n, Workers: 100, Rounds: 1, PGBin: pgBin(), noSync: true}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if report.Fired != n || report.Duplicates != 0 || report.Lost != 0 {
		t.Errorf("%d of %d fired, %d duplicates, %d lost", report.Fired, n, report.Duplicates, report.Lost)
	}
	if report.P50 <= 0 || report.P95 < report.P50 || report.Max < report.P95 {
		t.Errorf("p50 %v, p95 %v, max %v", report.P50, report.P95, report.Max)
	}
	var printed map[string]any
	decodeReport(t, report, &printed)
	for _, field := range []string{"fired", "duplicates", "lost", "p50_ms", "p95_ms", "max_ms"} {
		if _, there := printed[field]; !there {
			t.Errorf("the report has no %s", field)
		}
	}
}

func TestSummaryOfBursts(t *testing.T) {
	t.Parallel()
	got := summarizeBursts([]BurstReport{{Fired: 9, Lost: 1, P95: 3}, {Fired: 10, P95: 1, Duplicates: 2}, {Fired: 10, P95: 2}})
	if want := (BurstReport{Fired: 9, Lost: 1, Duplicates: 2, P95: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSchedulesCost(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	report, err := Schedules(t.Context(), SchedulesConfig{
		Stored: []int{20, 2000}, Due: 10, For: 2 * time.Second, PGBin: pgBin(), noSync: true, settle: time.Second,
	}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if len(report.Costs) != 2 {
		t.Fatalf("costs of %d", len(report.Costs))
	}
	for _, c := range report.Costs {
		if c.Fired <= 0 || c.Calls <= 0 || c.Millis <= 0 || c.Pages <= 0 {
			t.Errorf("nothing was counted: %+v\n%s", c, out.String())
		}
	}
}

func TestSchedulesRefuse(t *testing.T) {
	t.Parallel()
	for want, run := range map[string]func() error{
		"schedules: 2000000": func() error { _, err := Burst(t.Context(), BurstConfig{Schedules: 2_000_000}, nil); return err },
		"stored: 0":          func() error { _, err := Schedules(t.Context(), SchedulesConfig{Stored: []int{0, 5}}, nil); return err },
		"due: 100":           func() error { _, err := Schedules(t.Context(), SchedulesConfig{Stored: []int{50}}, nil); return err },
		"for: 1ms": func() error {
			_, err := Schedules(t.Context(), SchedulesConfig{For: time.Millisecond}, nil)
			return err
		},
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
