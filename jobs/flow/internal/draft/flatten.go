package draft

import (
	"cmp"
	"slices"
	"strings"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// split finds the jobs of each flow of a Flow 1.0 project, unless they are too many.
func (c *checker) split() bool {
	if c.project.Jobs == nil {
		return true
	}
	total := 0
	for _, f := range c.project.Flows {
		c.parts[f] = graph.Closure(c.edges[c.project.Jobs], c.jobs[f.End])
		if total += len(c.parts[f]); total > graph.MaxTotal {
			c.tooMany()
			return false
		}
	}
	return true
}

func (c *checker) tooMany() {
	c.report(graph.Fault{}, "the flows have more than %d nodes together", graph.MaxTotal)
}

// embedding looks for flows that embed themselves, by themselves or through others (Flow 1.0).
func (c *checker) embedding() {
	if c.project.Jobs == nil {
		return
	}
	flows := c.project.Flows
	numbers := make(map[string]int, len(flows))
	for i, f := range flows {
		numbers[f.Name] = i
	}
	embedded := make([][]int, len(flows)) // by each flow
	by := make(map[[2]int]*Node)
	for i, f := range flows {
		for _, n := range c.nodesOf(f) {
			to, known := numbers[n.Embeds]
			if n.Type != graph.TypeFlow || !known {
				continue
			}
			if by[[2]int{i, to}] == nil {
				by[[2]int{i, to}] = n
				embedded[i] = append(embedded[i], to)
			}
		}
	}
	for i := range flows {
		if n := by[[2]int{i, i}]; n != nil {
			c.fault(n, "", "flow.name", "the flow %s embeds itself", flows[i].Name)
			embedded[i] = slices.DeleteFunc(embedded[i], func(to int) bool { return to == i })
		}
	}
	for _, cycle := range graph.Cycles(embedded, maxCycles) {
		slices.Reverse(cycle[1:]) // who embeds comes first
		names := make([]string, 0, len(cycle)+1)
		for _, i := range append(cycle, cycle[0]) {
			names = append(names, flows[i].Name)
		}
		c.fault(by[[2]int{cycle[0], cycle[1]}], "", "flow.name", "embedded-flow cycle: %s", strings.Join(names, " -> "))
	}
}

// nodesOf returns the nodes of a flow's top level.
func (c *checker) nodesOf(f *Flow) []*Node {
	s, numbers := c.part(f)
	if numbers == nil {
		return s.Nodes
	}
	nodes := make([]*Node, len(numbers))
	for at, i := range numbers {
		nodes[at] = s.Nodes[i]
	}
	return nodes
}

// part returns the set that a flow is made of, and the numbers of the nodes that belong to it; nil: all of them.
func (c *checker) part(f *Flow) (*Set, []int) {
	if f.Nodes != nil {
		return f.Nodes, nil
	}
	return c.project.Jobs, c.parts[f]
}

// size is how large a flow is with all that it embeds.
type size struct {
	nodes int
	depth int // of embedded flows
	path  int // bytes of its longest path
}

// sizes are those of flows and sets that are known, so that each is counted once, however often it is embedded.
type sizes map[any]size

func (s sizes) of(what any, count func() size) size {
	if _, ok := s[what]; !ok {
		s[what] = size{} // what is in itself counts as nothing there
		s[what] = count()
	}
	return s[what]
}

// beyond is a size that stays larger than every limit when others are added to it.
const beyond = 1 << 40

// sizes checks the limits, before anything is made.
func (c *checker) sizes() {
	known := sizes{}
	total, large := 0, false
	for _, f := range c.project.Flows {
		s := c.sizeOfFlow(f, known)
		total = min(total+s.nodes, beyond)
		if s.nodes > graph.MaxNodes {
			large = true
			c.flowFault(f, "", "flow %s has %s, embedded ones counted each time; at most %d are allowed", f.Name, countText(s.nodes), graph.MaxNodes)
		}
		if s.depth > graph.MaxDepth {
			c.flowFault(f, "", "flow %s embeds flows %d deep, at most %d are allowed", f.Name, s.depth, graph.MaxDepth)
		}
		if s.path > graph.MaxPath {
			c.flowFault(f, "", "flow %s has a node whose path is %d bytes long, at most %d are allowed", f.Name, s.path, graph.MaxPath)
		}
	}
	if !large && total > graph.MaxTotal {
		c.tooMany()
	}
}

func countText(nodes int) string {
	if nodes >= beyond {
		return "more nodes than can be counted"
	}
	return quantity.Of(nodes, "node")
}

func (c *checker) sizeOfFlow(f *Flow, known sizes) size {
	if f == nil { // there is no such flow
		return size{}
	}
	return known.of(f, func() size { return c.sizeOf(c.nodesOf(f), known) })
}

func (c *checker) sizeOf(nodes []*Node, known sizes) size {
	all := size{nodes: len(nodes)}
	for _, n := range nodes {
		all.path = max(all.path, len(n.Name))
		var in size
		switch {
		case n.Type != graph.TypeFlow:
			continue
		case n.Nodes != nil:
			in = known.of(n.Nodes, func() size { return c.sizeOf(n.Nodes.Nodes, known) })
		default:
			in = c.sizeOfFlow(c.flows[n.Embeds], known)
		}
		all.nodes = min(all.nodes+in.nodes, beyond)
		all.depth = max(all.depth, in.depth+1)
		all.path = max(all.path, len(n.Name)+1+in.path)
	}
	return all
}

// graphs makes the graphs of a project that has no faults.
func (c *checker) graphs() *graph.Project {
	p := &graph.Project{Format: c.project.Format, Flows: make([]*graph.Flow, 0, len(c.project.Flows))}
	for _, f := range c.project.Flows {
		g := &graph.Flow{Name: f.Name, File: f.File, Config: f.Config, Opts: f.Opts, Trigger: f.Trigger}
		s, numbers := c.part(f)
		c.add(g, s, numbers, within{container: graph.Top})
		p.Flows = append(p.Flows, g)
	}
	slices.SortFunc(p.Flows, func(a, b *graph.Flow) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// within is where nodes are added.
type within struct {
	container int
	prefix    string         // of their paths
	configs   []graph.Config // of the embedded flows around them, the nearest first
	queue     string         // of those
	priority  int            // of those
}

// add appends nodes of a set, parents first, each embedded flow followed by its contents.
func (c *checker) add(g *graph.Flow, s *Set, numbers []int, in within) {
	edges := c.edges[s]
	if numbers == nil {
		numbers = make([]int, len(s.Nodes))
		for i := range numbers {
			numbers[i] = i
		}
	}
	place := make(map[int]int, len(numbers)) // of a node of the set, in numbers
	for at, i := range numbers {
		place[i] = at
	}
	local := make([][]int, len(numbers))
	for at, i := range numbers {
		local[at] = make([]int, len(edges[i]))
		for k, p := range edges[i] {
			local[at][k] = place[p]
		}
	}
	made := make([]int, len(numbers)) // numbers in the graph
	for _, at := range graph.Order(local) {
		n := s.Nodes[numbers[at]]
		node := n.Node
		node.Path, node.Container, node.Parents = in.prefix+n.Name, in.container, nil
		for _, p := range local[at] {
			node.Parents = append(node.Parents, made[p])
		}
		slices.Sort(node.Parents)
		inherit(&node, g.Config, in.configs)
		node.Queue, node.Priority = cmp.Or(node.Queue, in.queue), cmp.Or(node.Priority, in.priority)
		made[at] = len(g.Nodes)
		g.Nodes = append(g.Nodes, node)
		if n.Type != graph.TypeFlow {
			continue
		}
		inner := within{made[at], node.Path + ":", append([]graph.Config{n.Config}, in.configs...), node.Queue, node.Priority}
		if n.Nodes != nil {
			c.add(g, n.Nodes, nil, inner)
		} else {
			set, part := c.part(c.flows[n.Embeds])
			c.add(g, set, part, inner)
		}
	}
}
