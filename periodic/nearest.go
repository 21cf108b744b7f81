package periodic

import "strings"

// nearest is the name that a person may have meant; empty if none is near.
func nearest(name string, names []string) string {
	best, least := "", max(2, len(name)/3+1)
	for _, other := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(other), least); d < least {
			best, least = other, d
		}
	}
	if best != "" {
		return best
	}
	for _, other := range names {
		if len(name) >= 3 && strings.Contains(other, name) {
			return other
		}
	}
	return ""
}

// distance is how many letters must be put in, left out or changed to make one text the other; at least limit if it is that many.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
