package project

import (
	"path"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/flow1"
	"github.com/peltonq/pelton/jobs/flow/internal/flow2"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Options are what a reader needs to know of the system that will run the flows.
type Options struct {
	// Types are the job kinds and the mapped types that nodes may have, beside the built-in ones.
	Types []string

	// Kinds are those of Types that are job kinds, and not mapped to a command.
	Kinds []string

	// MaxXms and MaxXmx are the greatest heaps that a Java process may ask for, in bytes. Default to 1 GiB and 2 GiB.
	MaxXms, MaxXmx int64

	// CheckTrigger says what is wrong with the expression of a flow's trigger. Nil: nothing is.
	CheckTrigger func(expression string) error
}

// Read returns the project that an upload holds, or all that is wrong with it. Both lists are sorted by file and line.
func Read(b *bundle.Bundle, o Options) (*graph.Project, []graph.Fault, []graph.Note) {
	report := &draft.Report{CheckTrigger: o.CheckTrigger}
	d := read(b, report)
	if d == nil {
		return nil, draft.Sorted(report.Faults), nil
	}
	notes(d, report)
	hidden(b, report)
	p, faults := draft.Check(d, draft.Rules{Types: o.Types, Kinds: o.Kinds, MaxXms: o.MaxXms, MaxXmx: o.MaxXmx})
	report.Faults = append(report.Faults, faults...)
	if len(report.Faults) > 0 {
		p = nil
	}
	return p, draft.Sorted(report.Faults), draft.Sorted(report.Notes)
}

// read picks the format: what has a .project file is Flow 2.0, and so was to be what has .flow files and no .job files.
func read(b *bundle.Bundle, report *draft.Report) *draft.Project {
	ext := map[string]int{}
	first := map[string]string{}
	for _, f := range b.Files {
		e := path.Ext(f.Path)
		if ext[e]++; ext[e] == 1 {
			first[e] = f.Path
		}
	}
	notRead := func(e, why string) {
		if ext[e] > 0 {
			report.Note(draft.Place{File: first[e]}, "%d %s files are not read: %s", ext[e], e, why)
		}
	}
	switch {
	case ext[flow2.ProjectExt] > 0 || ext[flow2.FlowExt] > 0 && ext[flow1.JobExt] == 0:
		d := flow2.Read(b, report)
		notRead(flow1.JobExt, "the .project file makes this a Flow 2.0 project")
		if ext[flow2.FlowExt] == 0 {
			report.Fault(draft.Place{}, "no .flow files: the project has no flows")
		}
		return d
	case ext[flow1.JobExt] > 0:
		notRead(flow2.FlowExt, "without a .project file this is a Flow 1.0 project")
		return flow1.Read(b, report)
	}
	report.Fault(draft.Place{}, "no flows: want a .project file with .flow files (Flow 2.0), or .job files (Flow 1.0)")
	return nil
}
