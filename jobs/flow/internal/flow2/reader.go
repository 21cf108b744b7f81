package flow2

import (
	"errors"
	"path"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Names of the files of a project.
const (
	ProjectExt = ".project"
	FlowExt    = ".flow"
)

// maxFile is the size of the largest file that is parsed.
const maxFile = 8 << 20

// Read reads the flows of an upload. What is wrong with the files goes into the report; the draft holds what could be read.
func Read(b *bundle.Bundle, report *draft.Report) *draft.Project {
	p := &draft.Project{Format: graph.FormatFlow2}
	var projects []string
	for i := range b.Files {
		switch f := &b.Files[i]; path.Ext(f.Path) {
		case ProjectExt:
			projects = append(projects, f.Path)
			readFile(f, report, readVersion)
		case FlowExt:
			readFile(f, report, func(d *document) {
				if flow := d.flow(); flow != nil {
					p.Flows = append(p.Flows, flow)
				}
			})
		}
	}
	switch len(projects) {
	case 0:
		report.Fault(draft.Place{}, "there are .flow files but no .project file; it says azkaban-flow-version: 2.0")
	case 1:
	default:
		report.Fault(draft.Place{File: projects[1]}, "more than one .project file: %s", strings.Join(projects, ", "))
	}
	return p
}

// readFile parses one file and hands it on, unless it is no YAML.
func readFile(f *bundle.File, report *draft.Report, read func(*document)) {
	at := draft.Place{File: f.Path}
	if f.Size > maxFile {
		report.Fault(at, "has %d bytes, a file of this kind may have %d", f.Size, maxFile)
		return
	}
	data, err := f.Read()
	if errors.Is(err, bundle.ErrFault) { // which is told of already
		return
	}
	if err != nil {
		report.Fault(at, "cannot be read: %v", err)
		return
	}
	if d := parse(f.Path, data, report); d != nil {
		read(d)
	}
}

// readVersion checks a .project file.
func readVersion(d *document) {
	const key = "azkaban-flow-version"
	found := false
	for _, f := range d.fields(d.root, "") {
		if f.name != key {
			d.note(f.line, "", "%s is not used", f.name)
			continue
		}
		found = true
		if version := d.text(f, ""); version != "2.0" && version != "2" {
			d.fault(f.line, "", "%s is %q, want 2.0", key, version)
		}
	}
	if !found {
		d.fault(0, "", "%s is missing, want 2.0", key)
	}
}
