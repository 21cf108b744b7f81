package page

import (
	"net/http"

	"github.com/peltonq/pelton/jobs/joblog"
)

// Visible is visible.
var Visible = visible

// VisiblePage is visiblePage.
var VisiblePage = visiblePage

// Patterns are the patterns of all routes.
func Patterns() []string {
	p := Mount(http.NewServeMux(), Config{Schema: "pelton"})
	defer p.Close()
	return p.Routes()
}

// RoomPaths are where the navigation leads.
func RoomPaths() (paths []string) {
	for _, r := range rooms {
		paths = append(paths, r.Path)
	}
	return paths
}

// SearchInPieces searches a log for a text in pieces of so many new chunks each. It returns the lines that were found, and how many chunks were read.
func SearchInPieces(chunks []joblog.Chunk, text string, each int) (lines []string, read int) {
	var from logPlace
	for {
		finds := logFinds{Query: text}
		s := newLineSearch(&finds, charsets[0], from.Seen, func(line logLine) { lines = append(lines, line.Before+line.Match+line.After) })
		more, fresh := false, 0
		for _, c := range chunks {
			if c.ID <= from.After {
				continue
			}
			if more = fresh == each; more {
				break
			}
			s.add(c)
			read++
			if c.ID > from.Seen {
				fresh++
			}
		}
		if !more {
			s.end()
			return lines, read
		}
		from = s.place()
	}
}

// Lowered is lowered.
var Lowered = lowered
