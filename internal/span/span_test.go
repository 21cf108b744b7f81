package span_test

import (
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/span"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "0d": 0, "7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour,
		"36500d": 36500 * 24 * time.Hour,
	} {
		if got, err := span.Parse(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "3", "3 d", "-1h", "-3d", "1d-1h", "+1h", "1d1d", "1.5d", "106751d23h59m", "106752d", "99999999999d", "3days", "1w"} {
		if got, err := span.Parse(text); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}
