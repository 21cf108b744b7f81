package tick

import (
	"testing"
	"time"
)

// TestOffsets: both are below the width, evenly spread, and the same for ever.
func TestOffsets(t *testing.T) {
	t.Parallel()
	const n, parts, width = 20_000, 20, time.Minute
	at := instantOf("2026-11-29T12:00:00Z")
	for name, offset := range map[string]func(i int) time.Duration{
		"Spread":                 func(i int) time.Duration { return Spread(int64(i), width) },
		"Jitter of schedules":    func(i int) time.Duration { return Jitter(int64(i), at, width) },
		"Jitter of minutes":      func(i int) time.Duration { return Jitter(7, at.Add(time.Duration(i)*time.Minute), width) },
		"Jitter of microseconds": func(i int) time.Duration { return Jitter(7, at.Add(time.Duration(i)*time.Microsecond), width) },
	} {
		var count [parts]int
		for i := range n {
			d := offset(i)
			if d < 0 || d >= width || d%time.Microsecond != 0 {
				t.Fatalf("%s %d: %v", name, i, d)
			}
			if d != offset(i) {
				t.Fatalf("%s %d: is not the same again", name, i)
			}
			count[d*parts/width]++
		}
		for part, c := range count {
			if c < n/parts*8/10 || c > n/parts*12/10 {
				t.Errorf("%s: %d of %d in part %d of %d", name, c, n, part, parts)
			}
		}
	}
	if Spread(7, 0) != 0 || Jitter(7, at, -time.Second) != 0 || Spread(7, time.Microsecond) != 0 {
		t.Error("an offset without a width")
	}
	// What a release computes, the next one must.
	if got := Spread(42, time.Hour); got != 44*time.Minute+29633563*time.Microsecond {
		t.Errorf("Spread: %v", got)
	}
	if got := Jitter(42, at, time.Hour); got != 52*time.Minute+40042316*time.Microsecond {
		t.Errorf("Jitter: %v", got)
	}
}
