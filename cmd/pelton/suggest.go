package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/peltonq/pelton/internal/near"
)

// suggest returns `; did you mean "near"?` if one of the known words is near, else the list of them.
func suggest(word string, known []string) string {
	if best := near.Word(word, known); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; want one of " + strings.Join(known, ", ")
}

// oneOf refuses a word that is not known.
func oneOf(what, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	return usagef("unknown %s %q%s", what, word, suggest(word, known))
}
