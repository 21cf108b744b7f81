package tick

import (
	"testing"
	"time"
)

func BenchmarkNextRun(b *testing.B) {
	for _, bench := range []struct{ name, text, zone, after string }{
		{"UTC", "*/15 * * * *", "UTC", "2026-11-29T12:00:00Z"},
		{"NewYork", "*/15 * * * *", "America/New_York", "2026-11-29T12:00:00Z"},
		{"daily", "30 2 * * *", "America/New_York", "2026-11-29T12:00:00Z"},
		{"yearly", "0 0 1 1 *", "America/New_York", "2026-02-01T12:00:00Z"},
		{"leap", "0 0 29 2 *", "America/New_York", "2096-03-01T12:00:00Z"},
		{"change", "*/15 * * * *", "America/New_York", "2026-03-08T06:45:00Z"},
		{"repeat", "*/15 * * * *", "America/New_York", "2026-11-01T05:45:00Z"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			src := source(b, bench.text, bench.zone, Rule{})
			after := instantOf(bench.after)
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := src.NextRun(after); !ok {
					b.Fatal("none")
				}
			}
		})
	}
}

// BenchmarkCut is of a schedule that was down for a month.
func BenchmarkCut(b *testing.B) {
	for _, bench := range []struct{ name, text, policy string }{
		{"latest of seconds", "* * * * * *", "latest"},
		{"latest of days", "30 2 * * *", "latest"},
		{"100 of quarters", "*/15 * * * *", "all:100:48h"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			src := source(b, bench.text, "America/New_York", Rule{})
			var policy Missed
			if err := policy.UnmarshalText([]byte(bench.policy)); err != nil {
				b.Fatal(err)
			}
			now := instantOf("2026-11-29T12:00:00Z")
			b.ReportAllocs()
			for b.Loop() {
				Cut(policy, src, now.AddDate(0, -1, 0), now, time.Minute)
			}
		})
	}
}
