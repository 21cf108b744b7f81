package draft

import (
	"fmt"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Check returns the graphs of a project, or everything that is wrong with it. Its flows come out sorted by name.
func Check(p *Project, rules Rules) (*graph.Project, []graph.Fault) {
	c := &checker{project: p, rules: rules.withDefaults(), edges: map[*Set][][]int{}, flows: map[string]*Flow{}, parts: map[*Flow][]int{}, jobs: map[string]int{}}
	c.secretive = usesSecrets(p)
	c.names()
	if p.Jobs != nil {
		for i, n := range p.Jobs.Nodes {
			c.jobs[n.Name] = i
		}
		c.set(p.Jobs, "", nil)
	}
	for _, shared := range p.Shared {
		c.config(shared.Config, func(key, format string, args ...any) {
			c.report(graph.Fault{File: shared.File, Line: shared.Lines.of(key, 0)}, format, args...)
		})
	}
	for _, f := range p.Flows {
		c.flow(f)
	}
	for _, f := range c.unknown.Faults(c.rules) {
		c.faults = keep(c.faults, f)
	}
	if c.split() { // what refers to nothing, or to itself, is passed over: that is a fault already
		c.embedding()
		c.sizes()
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return c.graphs(), nil
}

type checker struct {
	project *Project
	rules   Rules
	flows   map[string]*Flow
	edges   map[*Set][][]int // parents of each node of a set, by number
	jobs    map[string]int   // Flow 1.0: numbers of all jobs
	parts   map[*Flow][]int  // Flow 1.0: numbers of the jobs that are a flow's
	faults  []graph.Fault
	unknown Unknown

	secretive bool // the project uses secrets
}

// names checks those of the flows.
func (c *checker) names() {
	for _, f := range c.project.Flows {
		if reason := badName(f.Name, c.project.Format); reason != "" && c.project.Jobs == nil {
			c.flowFault(f, "", "flow name %q %s", f.Name, reason) // of a Flow 1.0 project the jobs' names are checked
		}
		if first, ok := c.flows[f.Name]; ok {
			c.flowFault(f, "", "duplicate flow name %q: %s has it too", f.Name, first.where())
			continue
		}
		c.flows[f.Name] = f
	}
}

func (f *Flow) where() string {
	if f.File != "" {
		return f.File
	}
	return "another flow"
}

// flow checks what belongs to one flow alone.
func (c *checker) flow(f *Flow) {
	fault := func(key, format string, args ...any) { c.flowFault(f, key, format, args...) }
	if f.Opts.MaxParallel < 0 {
		fault("max_parallel", "max_parallel is %d, want 1 or more", f.Opts.MaxParallel)
	}
	if f.Nodes == nil {
		return
	}
	c.config(f.Config, fault)
	c.options(f, fault)
	if len(f.Nodes.Nodes) == 0 {
		fault("nodes", "the flow has no nodes")
	}
	c.set(f.Nodes, "", []graph.Config{f.Config})
}

// set checks nodes that name each other, and those inside them. What they inherit comes nearest first.
func (c *checker) set(s *Set, prefix string, inherited []graph.Config) {
	if _, done := c.edges[s]; done {
		return // code may embed one flow many times
	}
	numbers := make(map[string]int, len(s.Nodes))
	for i, n := range s.Nodes {
		if first, ok := numbers[n.Name]; !ok {
			numbers[n.Name] = i
		} else if n.Name != "" {
			c.fault(n, prefix, "name", "duplicate name: %s", s.Nodes[first].at(n.File))
		}
	}
	parents := make([][]int, len(s.Nodes))
	for i, n := range s.Nodes {
		parents[i] = c.parents(n, i, prefix, numbers)
	}
	c.edges[s] = parents
	for _, cycle := range graph.Cycles(parents, maxCycles) {
		c.fault(s.Nodes[cycle[0]], prefix, "dependencies", "cycle: %s", cycleText(s, cycle))
	}
	c.conditions(s, prefix, numbers, inherited)
	for _, n := range s.Nodes {
		c.node(n, prefix, inherited)
		if m := instance.FindStringSubmatch(n.Name); m != nil {
			if i, ok := numbers[m[1]]; ok && s.Nodes[i].ForEach != nil {
				c.fault(n, prefix, "name", "name %q is that of an instance of %s, which has for_each", n.Name, m[1])
			}
		}
	}
}

// maxCycles is how many cycles of one set are reported.
const maxCycles = 20

// at says where another definition of the same name is.
func (n *Node) at(file string) string {
	switch {
	case n.File != file && n.File != "":
		return n.File + " defines it too"
	case n.Line > 0:
		return fmt.Sprintf("line %d defines it too", n.Line)
	}
	return "another node has it too"
}

// parents resolves the names of a node's parents.
func (c *checker) parents(n *Node, self int, prefix string, numbers map[string]int) []int {
	var found []int
	seen := make(map[string]bool, len(n.After))
	for _, p := range n.After {
		if seen[p.Name] {
			continue
		}
		seen[p.Name] = true
		i, ok := numbers[p.Name]
		at := *n
		if p.Line > 0 {
			at.Line = p.Line
		}
		switch {
		case !ok:
			c.fault(&at, prefix, "dependencies", "depends on %q, which %s", p.Name, unknown(prefix, c.project.Format))
		case i == self || p.Name == n.Name:
			c.fault(&at, prefix, "dependencies", "depends on itself")
		default:
			found = append(found, i)
		}
	}
	return found
}

func unknown(prefix, format string) string {
	switch {
	case format == graph.FormatFlow1:
		return "is no job of the project"
	case prefix != "":
		return fmt.Sprintf("is no node of the embedded flow %s", strings.TrimSuffix(prefix, ":"))
	}
	return "is no node of the flow"
}

func cycleText(s *Set, cycle []int) string {
	const most = 20
	names := make([]string, 0, len(cycle)+1)
	for _, i := range cycle {
		names = append(names, s.Nodes[i].Name)
	}
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("... (%d nodes)", len(cycle)))
	}
	return strings.Join(append(names, s.Nodes[cycle[0]].Name), " -> ")
}

// faultFunc reports something that is wrong with the value of a key, "" for the whole.
type faultFunc func(key, format string, args ...any)

func (c *checker) flowFault(f *Flow, key, format string, args ...any) {
	c.report(graph.Fault{File: f.File, Line: f.Lines.of(key, f.Line)}, format, args...)
}

func (c *checker) fault(n *Node, prefix, key, format string, args ...any) {
	c.report(graph.Fault{File: n.File, Line: n.Lines.of(key, n.Line), Node: prefix + n.Name}, format, args...)
}

func (c *checker) report(f graph.Fault, format string, args ...any) {
	f.Reason = fmt.Sprintf(format, args...)
	c.faults = keep(c.faults, f)
}

func (l Lines) of(key string, otherwise int) int {
	if line := l[key]; line > 0 {
		return line
	}
	return otherwise
}
