package tick

import (
	"fmt"
	"strings"
)

// Gap says what becomes of a time that the clock on the wall leaves out.
type Gap uint8

// What becomes of a time in a gap.
const (
	GapNext Gap = iota // runs at the first moment after the gap
	GapSkip            // is dropped
)

// Overlap says what becomes of a time that the clock on the wall shows more than once.
type Overlap uint8

// Which passes of a repeated time run.
const (
	OverlapFirst Overlap = iota
	OverlapLast
	OverlapBoth
)

// A Rule says what to do where a zone's clock is changed. The zero Rule runs a daily tick once every day.
type Rule struct {
	Gap     Gap
	Overlap Overlap
}

var (
	gapWords     = []string{GapNext: "next", GapSkip: "skip"}
	overlapWords = []string{OverlapFirst: "first", OverlapLast: "last", OverlapBoth: "both"}
)

func (g Gap) String() string { return word(gapWords, int(g)) }

// MarshalText gives the word for it.
func (g Gap) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText takes "next" or "skip".
func (g *Gap) UnmarshalText(text []byte) error {
	i, err := find(gapWords, string(text))
	if err != nil {
		return fmt.Errorf("times left out: %w", err)
	}
	*g = Gap(i)
	return nil
}

func (o Overlap) String() string { return word(overlapWords, int(o)) }

// MarshalText gives the word for it.
func (o Overlap) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes "first", "last" or "both".
func (o *Overlap) UnmarshalText(text []byte) error {
	i, err := find(overlapWords, string(text))
	if err != nil {
		return fmt.Errorf("repeated times: %w", err)
	}
	*o = Overlap(i)
	return nil
}

func word(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}

func find(words []string, text string) (uint8, error) {
	for i, w := range words {
		if text == w {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not %s", text, alternatives(words))
}

// alternatives writes "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
