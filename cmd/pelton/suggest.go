package main

import (
	"slices"

	"github.com/peltonq/pelton/internal/suggest"
)

// oneOf refuses a word that is not known.
func oneOf(what, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	return usagef("unknown %s %q%s", what, word, suggest.Near(word, known))
}
