package flow1

import (
	"errors"
	"maps"
	"path"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Names of the files of a project.
const (
	JobExt        = ".job"
	PropertiesExt = ".properties"
)

const (
	maxFile   = 1 << 20   // bytes of a file that is parsed
	maxShared = 1_000_000 // keys of all chains together
)

// Read reads the jobs of an upload and says which flows they make. What is wrong with the files goes into the report; the draft
// holds what could be read.
func Read(b *bundle.Bundle, report *draft.Report) *draft.Project {
	r := &reader{
		report: report, own: map[string][]graph.Config{}, chains: map[string]graph.Config{},
		project: &draft.Project{Format: graph.FormatFlow1, Jobs: &draft.Set{}},
	}
	for i := range b.Files { // the chains are complete before the first job is read
		if path.Ext(b.Files[i].Path) == PropertiesExt {
			r.shared(&b.Files[i])
		}
	}
	for i := range b.Files {
		if path.Ext(b.Files[i].Path) == JobExt {
			r.job(&b.Files[i])
		}
	}
	r.flows()
	return r.project
}

type reader struct {
	report  *draft.Report
	project *draft.Project
	own     map[string][]graph.Config // the .properties files of each directory, in order
	chains  map[string]graph.Config   // with those of the directories above it, in one
	keys    int                       // of all chains
}

func (r *reader) read(f *bundle.File) (graph.Config, draft.Lines, bool) {
	at := draft.Place{File: f.Path}
	if f.Size > maxFile {
		r.report.Fault(at, "has %d bytes, a file of this kind may have %d", f.Size, maxFile)
		return nil, nil, false
	}
	data, err := f.Read()
	if errors.Is(err, bundle.ErrFault) { // which is told of already
		return nil, nil, false
	}
	if err != nil {
		r.report.Fault(at, "cannot be read: %v", err)
		return nil, nil, false
	}
	config, lines := parse(f.Path, data, r.report)
	return config, lines, config != nil
}

func (r *reader) shared(f *bundle.File) {
	config, lines, ok := r.read(f)
	if !ok {
		return
	}
	r.project.Shared = append(r.project.Shared, draft.Shared{File: f.Path, Config: config, Lines: lines})
	dir := path.Dir(f.Path)
	r.own[dir] = append(r.own[dir], config)
}

// chain returns what the .properties files of a directory and those above it say. Jobs share it.
func (r *reader) chain(dir string) graph.Config {
	if known, ok := r.chains[dir]; ok {
		return known
	}
	var chain graph.Config
	if dir != "." {
		chain = r.chain(path.Dir(dir))
	}
	if own := r.own[dir]; len(own) > 0 && r.keys <= maxShared {
		all := graph.Config{}
		maps.Copy(all, chain)
		for _, config := range own {
			maps.Copy(all, config)
		}
		chain = all
		if r.keys += len(chain); r.keys > maxShared {
			r.report.Fault(draft.Place{File: dir}, "the .properties files of all directories, each with those above it, have more than %d keys", maxShared)
		}
	}
	r.chains[dir] = chain
	return chain
}

// flows finds the ends: jobs that no other depends on, and those that say root.node=true.
func (r *reader) flows() {
	inner := map[string]bool{}
	for _, n := range r.project.Jobs.Nodes {
		for _, p := range n.After {
			inner[p.Name] = true
		}
	}
	done := map[string]bool{}
	for _, n := range r.project.Jobs.Nodes {
		root := first("root.node", n.Config, n.Shared)
		if done[n.Name] || inner[n.Name] && !strings.EqualFold(root, "true") {
			continue
		}
		done[n.Name] = true
		flow := &draft.Flow{Name: n.Name, File: n.File, End: n.Name}
		draft.Configure(&flow.Opts, n.Config, n.Shared)
		r.project.Flows = append(r.project.Flows, flow)
	}
}

func (r *reader) job(f *bundle.File) {
	config, lines, ok := r.read(f)
	if !ok { // it is known by name, so that those that depend on it are not called wrong too
		config = graph.Config{"type": graph.TypeNoop}
	}
	shared := r.chain(path.Dir(f.Path))
	n := &draft.Node{
		Name: strings.TrimSuffix(path.Base(f.Path), JobExt), Lines: lines,
		Node:   graph.Node{File: f.Path, Config: config, Shared: shared, Type: first("type", config, shared)},
		Embeds: first("flow.name", config, shared),
	}
	for name := range strings.SplitSeq(first("dependencies", config, shared), ",") {
		if name = strings.TrimSpace(name); name != "" {
			n.After = append(n.After, draft.Parent{Name: name})
		}
	}
	r.project.Jobs.Nodes = append(r.project.Jobs.Nodes, n)
}

// first returns the value of a key in the first config that has it.
func first(key string, configs ...graph.Config) string {
	for _, config := range configs {
		if value, ok := config[key]; ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
