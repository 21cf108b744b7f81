package page

import (
	"strings"
	"testing"
)

// Before what waits and runs was read, no figure says that there is nothing.
func TestOverviewWhileItReads(t *testing.T) {
	t.Parallel()
	for _, reading := range []bool{true, false} {
		shown, err := execute("overview", "figures", overview{Gauges: Gauges{Reading: reading, Dead: 1, Executors: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if idle := strings.Contains(string(shown), "No queue is worked, and no job waits."); idle == reading {
			t.Errorf("reading: %v, said to be idle: %v", reading, idle)
		}
		for _, text := range []string{"<span>dead letter</span>", "<span>executor alive</span>"} {
			if !strings.Contains(string(shown), text) {
				t.Errorf("%s is not in it", text)
			}
		}
	}
}
