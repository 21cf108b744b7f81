// Package suggest names what somebody may have meant: of the words that are known, the one that is near to the one that was written.
package suggest

import (
	"fmt"
	"strings"
)

// Near returns `; did you mean "near"?` if one of the known words is near, else the list of them.
func Near(word string, known []string) string {
	best, least := "", min(3, max(2, len(word)/3+1)) // a short word is near to many
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least && d < max(2, len(k)) {
			best, least = k, d
		}
	}
	if best == "" {
		for _, k := range known {
			if len(word) >= 3 && strings.HasPrefix(k, strings.ToLower(word)) {
				best = k
				break
			}
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; want one of " + strings.Join(known, ", ")
}

// distance is how many letters must be put in, left out, changed or swapped with their neighbour to make one word the other.
func distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
