package periodic

import (
	"fmt"
	"strings"
	"time"
)

// Duration is a time.Duration whose text form, in JSON too, is that of time.ParseDuration: "90s", "1h30m".
type Duration time.Duration

// String is the text form.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText gives the text form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text form.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s or 1h30m", text)
	}
	*d = Duration(parsed)
	return nil
}

// Short leaves out the zeros that a duration's text ends with.
func (d Duration) Short() string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
