package page_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

// shot is a page to look at.
type shot struct{ name, path string }

// Every page fits on a wide and on a narrow screen, and no script fails. With PELTON_SCREENSHOTS=DIR, pictures of all are written there.
func TestPagesFit(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	shots := []shot{{"overview", "/"}, {"queues", "/queues"}}
	b := s.Browser("admin")
	dir := os.Getenv("PELTON_SCREENSHOTS")
	for _, one := range shots {
		b.Go(one.path)
		for _, width := range []int64{1280, 390} {
			b.View(width, false)
			b.Fits()
			if dir == "" {
				continue
			}
			b.Screenshot(dir, one.name+"-"+strconv.FormatInt(width, 10)+"-light")
			b.View(width, true)
			b.Screenshot(dir, one.name+"-"+strconv.FormatInt(width, 10)+"-dark")
		}
	}
}
