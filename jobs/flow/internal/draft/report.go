package draft

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Report gathers what is said about an upload.
type Report struct {
	Faults []graph.Fault
	Notes  []graph.Note

	CheckTrigger func(expression string) error // nil: any will do
}

// Place is what a fault or a note is about.
type Place struct {
	File string
	Line int
	Node string
}

// Fault adds something that is wrong.
func (r *Report) Fault(at Place, format string, args ...any) {
	r.Faults = keep(r.Faults, at.say(format, args))
}

// Note adds something that behaves otherwise than its author may think.
func (r *Report) Note(at Place, format string, args ...any) {
	r.Notes = keep(r.Notes, at.say(format, args))
}

func (at Place) say(format string, args []any) graph.Fault {
	return graph.Fault{File: at.File, Line: at.Line, Node: at.Node, Reason: fmt.Sprintf(format, args...)}
}

// keep adds a fault or a note, its reason shortened, unless there are more than anybody will read.
func keep(list []graph.Fault, f graph.Fault) []graph.Fault {
	const most, longest = 20_000, 2000
	if len(list) >= most {
		return list
	}
	if len(f.Reason) > longest {
		f.Reason = strings.ToValidUTF8(f.Reason[:longest], "") + "..."
	}
	return append(list, f)
}

// Sorted returns faults or notes by file, line, node and reason, each once, and no more than a person can read.
func Sorted(list []graph.Fault) []graph.Fault {
	const most = 1000
	slices.SortFunc(list, func(a, b graph.Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason))
	})
	list = slices.Compact(list)
	if len(list) > most {
		more := graph.Fault{Reason: fmt.Sprintf("and %d more", len(list)-most)}
		list = append(list[:most:most], more)
	}
	return list
}
