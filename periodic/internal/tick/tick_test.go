package tick

import (
	"time"
	_ "time/tzdata" // for hosts without files of zones; where there are files, Go takes these first

	"github.com/peltonq/pelton/periodic/internal/expr"
)

// fataler is a test, a benchmark or a check of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func location(t fataler, zone string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func source(t fataler, text, zone string, rule Rule) Source {
	t.Helper()
	e, err := expr.Parse(text, time.Time{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return New(e, location(t, zone), rule, time.Time{})
}

func instantOf(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}
