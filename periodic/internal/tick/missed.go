package tick

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Missed policy says which ticks fire that are due and were not fired in time. The zero policy is none that anybody chose; it skips them.
type Missed struct {
	kind   missedKind
	max    int
	maxAge time.Duration
}

type missedKind uint8

const (
	_ missedKind = iota
	missedSkip
	missedLatest
	missedAll
)

// The policies without parameters.
var (
	// MissedSkip fires none that is late.
	MissedSkip = Missed{kind: missedSkip}
	// MissedLatest fires the last one that is due.
	MissedLatest = Missed{kind: missedLatest}
)

// MissedAll fires the last n that are due, of which there is at least one, and of these none older than maxAge; 0 is no limit of age.
func MissedAll(n int, maxAge time.Duration) Missed {
	return Missed{kind: missedAll, max: n, maxAge: maxAge}
}

// String gives "skip", "latest", "all:N" or "all:N:DURATION".
func (m Missed) String() string {
	switch {
	case m.kind == missedLatest:
		return "latest"
	case m.kind != missedAll:
		return "skip"
	case m.maxAge == 0:
		return fmt.Sprintf("all:%d", m.max)
	default:
		return fmt.Sprintf("all:%d:%s", m.max, m.maxAge)
	}
}

// MarshalText gives the policy's text.
func (m Missed) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText takes what String gives.
func (m *Missed) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), ":")
	switch {
	case string(text) == "skip":
		*m = MissedSkip
		return nil
	case string(text) == "latest":
		*m = MissedLatest
		return nil
	case parts[0] != "all" || len(parts) > 3:
		return fmt.Errorf("missed ticks: %q is not skip, latest, all:N or all:N:DURATION", text)
	case len(parts) == 1:
		return fmt.Errorf("missed ticks: %q lacks how many at most, such as all:10", text)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 1 || n > MaxMissed {
		return fmt.Errorf("missed ticks: in %q, %q is not a number from 1 to %d", text, parts[1], MaxMissed)
	}
	all := MissedAll(n, 0)
	if len(parts) == 3 {
		if all.maxAge, err = time.ParseDuration(parts[2]); err != nil || all.maxAge <= 0 {
			return fmt.Errorf("missed ticks: in %q, %q is not a duration such as 12h or 30m", text, parts[2])
		}
	}
	*m = all
	return nil
}

// MaxMissed is the most ticks that a policy may ask for.
const MaxMissed = 100_000

// Cut returns the instant from which on ticks that are due fire: those of [from, now] before it are skipped. A tick younger than grace
// is in time and always fires; with MissedLatest it is then the last one, and all before it are skipped.
func Cut(policy Missed, src Source, from, now time.Time, grace time.Duration) time.Time {
	inTime := now.Add(-grace)
	var first time.Time // of those that fire though they are late
	switch policy.kind {
	case missedLatest:
		last, ok := src.LastRun(from.Add(-1), now, 1)
		if !ok {
			return inTime
		}
		first = last.At
	case missedAll:
		if policy.max < 1 {
			return inTime
		}
		first = from
		if last, ok := src.LastRun(from.Add(-1), now, policy.max); ok {
			first = last.At
		}
		if oldest := now.Add(-policy.maxAge); policy.maxAge > 0 && oldest.After(first) {
			first = oldest
		}
	default:
		return inTime
	}
	if first.Before(inTime) {
		return first
	}
	return inTime
}

// Skips tells whether the policy fires none that is late.
func (m Missed) Skips() bool { return m.kind != missedLatest && m.kind != missedAll }
