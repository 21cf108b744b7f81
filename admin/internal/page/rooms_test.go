package page_test

import (
	"os"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page"
)

// docs/page.md has a row for each place of the navigation.
func TestRoomsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/page.md")
	if err != nil {
		t.Fatal(err)
	}
	paths := page.RoomPaths()
	for _, path := range paths {
		found := false
		for line := range strings.Lines(string(text)) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			found = found || strings.HasPrefix(line, "| ") && strings.Contains(cell, "`"+path+"`")
		}
		if !found {
			t.Errorf("the table has no row for %s", path)
		}
	}
	if len(paths) < 10 {
		t.Errorf("only %d rooms: %q", len(paths), paths)
	}
}
