package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/peltonq/pelton/admin/internal/reach"
	"github.com/peltonq/pelton/internal/span"
)

// words are what a field lists, with commas between.
func words(text string) (list []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// storable refuses texts that no database can hold.
func storable(texts ...string) error {
	if !reach.Storable(texts...) {
		return badInput("a field holds bytes that are no text")
	}
	return nil
}

// filterFault is the text of what was wrong with the input; empty: it was something else.
func filterFault(err error) string {
	if bad, ok := errors.AsType[*inputError](err); ok && bad.status == http.StatusBadRequest {
		return bad.text
	}
	return ""
}

// sortedKeys are the keys of several maps, in order, each once.
func sortedKeys[V any](all ...map[string]V) []string {
	keys := map[string]bool{}
	for _, m := range all {
		for key := range m {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// small reads a number that fits into the database's integer.
func small(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err
}

// parseSpan reads a length of time, 0 or more, as 90m, 12h or 3d.
func parseSpan(text string) (time.Duration, bool) {
	d, err := span.Parse(text)
	return d, err == nil
}

// parseTime reads a date, with or without a time, in UTC unless it says otherwise.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// parseDue reads when something is to happen: a time as parseTime has it, or how far ahead. Empty: the zero time.
func parseDue(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ahead, ok := parseSpan(text); ok {
		return now.Add(ahead), nil
	}
	if t, ok := parseTime(text); ok {
		return t, nil
	}
	return time.Time{}, badInput("%q is no time: want 2027-01-31 or 2027-01-31 12:30, both in UTC, or how far ahead, as 90m, 12h or 3d", text)
}

// editable is JSON for a field: indented, and escaped.
func editable(raw []byte) string { return escaped(pretty(json.RawMessage(compacted(raw)))) }

// escaped is JSON in which characters that act (see visible) are written as escapes, so that what comes back from a form is what went out.
func escaped(text string) string {
	inText := func(r rune) bool { return acts(r) && r != '\r' } // a carriage return stands between values alone
	if !strings.ContainsFunc(text, inText) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if inText(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}
