package page

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return badInput("a field holds bytes that are no text")
		}
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
