// Package span reads lengths of time as people write them, which has days too: everywhere alike.
package span

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var errSpan = errors.New("want a length of time as 90s, 15m, 1h30m, 7d or 1d12h")

// Parse reads a length of time, 0 or more: as time.ParseDuration does, and with whole days of 24 hours before it, as 7d or 1d12h.
// The error says what is wanted; it does not name the text.
func Parse(text string) (time.Duration, error) {
	var whole time.Duration
	rest := text
	if days, after, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n >= uint64(math.MaxInt64/day) {
			return 0, errSpan
		}
		whole, rest = time.Duration(n)*day, after
		if rest == "" {
			return whole, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest, "+-") || whole+d < 0 {
		return 0, errSpan
	}
	return whole + d, nil
}
