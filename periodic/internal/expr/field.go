package expr

import (
	"fmt"
	"strconv"
	"strings"
)

// A set holds the values of a field: for years the distance to the least, for others the value itself.
type set [4]uint64

func (s *set) add(v int)      { s[v>>6] |= 1 << (v & 63) }
func (s *set) has(v int) bool { return v>>6 < len(s) && s[v>>6]>>(v&63)&1 == 1 }

// A field is what may stand at one place of an expression.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on
	wraps    bool     // a range may pass the end
	maxStep  int      // 0: any
}

var (
	monthNames = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
	dayNames   = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
)

// read returns the values of a list of values, ranges and steps. special, if not nil, is asked first about each item: it takes the item,
// or finds it wrong, or leaves it.
func (f *field) read(text string, special func(item string) (taken bool, reason string)) (set, *FieldError) {
	var values set
	for item := range strings.SplitSeq(strings.ToUpper(text), ",") {
		taken, reason := false, ""
		if special != nil {
			taken, reason = special(item)
		}
		if !taken && reason == "" {
			reason = f.readItem(item, &values)
		}
		if reason != "" {
			return set{}, &FieldError{f.name, text, reason}
		}
	}
	return values, nil
}

// readItem adds the values of one item and returns what is wrong with it.
func (f *field) readItem(item string, values *set) string {
	span, step, stepped := strings.Cut(item, "/")
	by := 1
	if stepped {
		var reason string
		if by, reason = f.step(item, step); reason != "" {
			return reason
		}
	}
	from, to, reason := f.span(span, stepped)
	if reason != "" {
		return reason
	}
	if to < from {
		to += f.max - f.min + 1
	}
	for v := from; v <= to; v += by {
		values.add(f.key(v))
	}
	return ""
}

// key returns a value's place in the set, back from past the end.
func (f *field) key(v int) int {
	if v > f.max {
		v -= f.max - f.min + 1
	}
	if f.min >= minYear {
		v -= f.min
	}
	return v
}

func (f *field) step(item, text string) (int, string) {
	by, ok := number(text)
	switch {
	case !ok:
		return 0, fmt.Sprintf("the step in %q is not a number", item)
	case by == 0:
		return 0, fmt.Sprintf("the step in %q is 0", item)
	case f.maxStep > 0 && by > f.maxStep:
		return 0, fmt.Sprintf("the step in %q is above %d", item, f.maxStep)
	}
	return by, ""
}

// span returns the ends of a range. A single value with a step goes on to the end of the field.
func (f *field) span(text string, stepped bool) (from, to int, reason string) {
	if text == "*" || text == "" && stepped && f.wraps { // Quartz takes /5 for */5
		return f.min, f.max, ""
	}
	low, high, ranged := strings.Cut(text, "-")
	if from, reason = f.value(low); reason != "" {
		return 0, 0, reason
	}
	switch {
	case ranged:
		if to, reason = f.value(high); reason != "" {
			return 0, 0, reason
		}
	case stepped:
		to = f.max
	default:
		to = from
	}
	if to < from && !f.wraps {
		return 0, 0, fmt.Sprintf("the range %s goes backwards", text)
	}
	return from, to, ""
}

func (f *field) value(text string) (int, string) {
	for i, name := range f.names {
		if text == name {
			return f.min + i, ""
		}
	}
	v, ok := number(text)
	switch {
	case text == "":
		return 0, "a value is missing"
	case !ok:
		return 0, fmt.Sprintf("%q is not %s", text, f.asked())
	case v < f.min:
		return 0, fmt.Sprintf("%s is below %d", text, f.min)
	case v > f.max:
		return 0, fmt.Sprintf("%s is above %d", text, f.max)
	}
	return v, ""
}

// asked says what values the field has.
func (f *field) asked() string {
	numbers := fmt.Sprintf("a number from %d to %d", f.min, f.max)
	if f.names == nil {
		return numbers
	}
	return numbers + " or a name such as " + f.names[1]
}

// number reads digits, and nothing else.
func number(text string) (int, bool) {
	if len(text) > 9 {
		return 0, false
	}
	for _, r := range text {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	v, err := strconv.Atoi(text)
	return v, err == nil
}
