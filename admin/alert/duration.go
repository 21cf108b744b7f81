package alert

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/peltonq/pelton/internal/span"
)

// Duration is a time.Duration that files and JSON hold as text: 90s, 1h30m, 7d.
type Duration time.Duration

// String is the shortest text: 1h30m rather than 1h30m0s.
func (d Duration) String() string {
	const day = 24 * time.Hour
	if t := time.Duration(d); t >= 2*day && t%day == 0 {
		return strconv.FormatInt(int64(t/day), 10) + "d"
	}
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}

// ParseDuration reads a time that is not negative, which may be in days: 7d.
func ParseDuration(text string) (Duration, error) {
	if d, err := span.Parse(text); err == nil {
		return Duration(d), nil
	}
	return 0, fmt.Errorf("%q is no time: want one as 90s, 15m, 1h30m or 7d", text)
}

// about is a time for people, as precise as they need it.
func about(d time.Duration) string {
	switch {
	case d >= 10*time.Hour:
		d = d.Round(time.Hour)
	case d >= 10*time.Minute:
		d = d.Round(time.Minute)
	case d >= time.Second:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Millisecond)
	}
	return Duration(d).String()
}
