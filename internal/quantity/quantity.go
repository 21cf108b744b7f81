// Package quantity says how many there are of something, in the right number: "1 job", "2 jobs".
package quantity

import (
	"fmt"
	"strings"
)

// Of is "1 job", "2 jobs". Without an own plural form (one is taken) it is the singular with an s.
func Of[N ~int | ~int16 | ~int32 | ~int64](n N, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Say is one if n is 1, else many, in which %d stands for n: for whole sentences, whose verbs change too.
func Say[N ~int | ~int16 | ~int32 | ~int64](n N, one, many string) string {
	switch {
	case n == 1:
		return one
	case strings.Contains(many, "%d"):
		return fmt.Sprintf(many, n)
	}
	return many
}
