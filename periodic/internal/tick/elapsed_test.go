package tick

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/periodic/internal/expr"
)

func instants(ticks []Tick) []string {
	texts := make([]string, len(ticks))
	for i, t := range ticks {
		texts[i] = t.At.Format(time.RFC3339Nano)
	}
	return texts
}

func TestFixedRate(t *testing.T) {
	t.Parallel()
	anchor := instantOf("2026-03-08T06:07:00Z")
	src := FixedRate(10*time.Minute, anchor)
	want := []string{"2026-03-08T05:57:00Z", "2026-03-08T06:07:00Z", "2026-03-08T06:17:00Z", "2026-03-08T06:27:00Z"}
	if got := instants(src.Between(nil, After(instantOf("2026-03-08T05:47:00Z")), instantOf("2026-03-08T06:30:00Z"), 10)); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	// An expression says the same, and knows nothing of clocks.
	e, err := expr.Parse("@every 10m", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	every := New(e, location(t, "America/New_York"), Rule{}, anchor)
	after := instantOf("2026-03-08T06:55:00Z")
	if a, _ := every.NextRun(after); !a.At.Equal(instantOf("2026-03-08T06:57:00Z")) || !a.Local.IsZero() {
		t.Error(a)
	}
	for _, none := range []Source{FixedRate(0, anchor), FixedRate(-time.Hour, anchor), {}} {
		if tick, ok := none.NextRun(after); ok {
			t.Error(tick)
		}
	}
}

// TestFixedRateKeepsItsPhase: wherever one looks from, ticks are a period apart and at whole periods from the anchor.
func TestFixedRateKeepsItsPhase(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		period := time.Duration(rapid.Int64Range(1, 1e13).Draw(t, "period")) * time.Microsecond
		anchor := time.UnixMicro(rapid.Int64Range(-4e15, 8e15).Draw(t, "anchor"))
		after := time.UnixMicro(rapid.Int64Range(-4e15, 8e15).Draw(t, "after")).Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "ns")))
		tick, ok := FixedRate(period, anchor).NextRun(after)
		if !ok || !tick.At.After(after) || tick.At.Add(-period).After(after) {
			t.Fatalf("after %v comes %v", after, tick)
		}
		if (tick.At.UnixMicro()-anchor.UnixMicro())%period.Microseconds() != 0 {
			t.Fatalf("%v has another phase", tick)
		}
	})
}

func TestOnce(t *testing.T) {
	t.Parallel()
	at := instantOf("2026-11-29T12:00:00+01:00")
	src := Once(at)
	if tick, ok := src.NextRun(at.Add(-1)); !ok || !tick.At.Equal(at) {
		t.Error(tick, ok)
	}
	if tick, ok := src.NextRun(at); ok {
		t.Error(tick)
	}
	if tick, ok := src.LastRun(at.Add(-time.Hour), at, 1); !ok || !tick.At.Equal(at) {
		t.Error(tick, ok)
	}
}

// TestFunc: a function's times are rounded up to what the database keeps, and none comes twice by that.
func TestFunc(t *testing.T) {
	t.Parallel()
	start := instantOf("2026-11-29T12:00:00Z")
	src := Func(func(after time.Time) time.Time { return after.Truncate(time.Second).Add(time.Second + 1500) })
	want := []string{"2026-11-29T12:00:01.000002Z", "2026-11-29T12:00:02.000002Z"}
	if got := instants(src.Between(nil, After(start), start.Add(3*time.Second), 10)); !slices.Equal(got, want) {
		t.Error(got)
	}
	for name, next := range map[string]func(time.Time) time.Time{
		"never":     func(time.Time) time.Time { return time.Time{} },
		"not later": func(after time.Time) time.Time { return after },
		"backwards": func(after time.Time) time.Time { return after.Add(-time.Second) },
	} {
		if tick, ok := Func(next).NextRun(start); ok {
			t.Errorf("%s: %v", name, tick)
		}
	}
}

func TestBetweenHasALimit(t *testing.T) {
	t.Parallel()
	src := source(t, "* * * * *", "UTC", Rule{})
	after := After(instantOf("2026-11-29T12:00:00Z"))
	if got := src.Between(nil, after, after.At.Add(time.Hour), 0); len(got) != 0 {
		t.Error(got)
	}
	first := src.Between(nil, after, after.At.Add(time.Hour), 40)
	all := src.Between(first, first[39], after.At.Add(time.Hour), 40)
	if len(first) != 40 || len(all) != 60 || !all[59].At.Equal(after.At.Add(time.Hour)) {
		t.Error(len(first), len(all))
	}
}
