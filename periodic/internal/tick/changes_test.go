package tick

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestChanges shows the ticks around changes of clocks, as files of text:
//
//	ticks zone=Europe/Berlin from=2026-03-29T00:00:00Z hours=4 [gap=skip] [overlap=last]
//	30 2 * * *
//
// An asterisk marks a tick that does not run.
func TestChanges(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/changes", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			var zone, from string
			var hours int
			d.ScanArgs(t, "zone", &zone)
			d.ScanArgs(t, "from", &from)
			d.ScanArgs(t, "hours", &hours)
			var rule Rule
			for key, value := range map[string]interface{ UnmarshalText([]byte) error }{"gap": &rule.Gap, "overlap": &rule.Overlap} {
				if d.HasArg(key) {
					var word string
					d.ScanArgs(t, key, &word)
					if err := value.UnmarshalText([]byte(word)); err != nil {
						t.Fatal(err)
					}
				}
			}
			loc, after := location(t, zone), instantOf(from)
			var text strings.Builder
			for expression := range strings.SplitSeq(d.Input, "\n") {
				fmt.Fprintln(&text, expression)
				src := source(t, expression, zone, rule)
				until := after.Add(time.Duration(hours) * time.Hour)
				for _, tick := range src.Between(nil, After(after.Add(-1)), until, 100) {
					mark := "  "
					if !tick.Runs() {
						mark = "* "
					}
					fmt.Fprintln(&text, mark+line(tick, loc))
				}
			}
			return text.String()
		})
	})
}
