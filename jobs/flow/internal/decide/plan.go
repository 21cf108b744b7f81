package decide

import (
	"fmt"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/cond"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Plan is what follows from a graph alone. It is made once for a flow's version and shared by the machines of all its runs; it does not
// change.
type Plan struct {
	flow      *graph.Flow
	byPath    map[string]int
	children  [][]int
	members   [][]int // of containers; of the flow itself in top
	top       []int
	exprs     []*cond.Expr
	tolerated []bool // every child asks for something else than that all its parents succeed
}

// NewPlan returns a flow's plan. A graph that cannot be decided on is an error, which readers have told before.
func NewPlan(flow *graph.Flow) (*Plan, error) {
	n := len(flow.Nodes)
	p := &Plan{
		flow: flow, byPath: make(map[string]int, n), children: make([][]int, n), members: make([][]int, n),
		exprs: make([]*cond.Expr, n), tolerated: make([]bool, n),
	}
	parsed := map[string]*cond.Expr{}
	for i := range flow.Nodes {
		if err := p.add(i, parsed); err != nil {
			return nil, fmt.Errorf("flow %s, node %s: %w", flow.Name, flow.Nodes[i].Path, err)
		}
	}
	if err := p.checkCycles(); err != nil {
		return nil, fmt.Errorf("flow %s: %w", flow.Name, err)
	}
	for i, children := range p.children {
		p.tolerated[i] = len(children) > 0
		for _, child := range children {
			if p.exprs[child].Macro() == cond.AllSuccess {
				p.tolerated[i] = false
			}
		}
	}
	return p, nil
}

// add takes in one node.
func (p *Plan) add(i int, parsed map[string]*cond.Expr) error {
	node := &p.flow.Nodes[i]
	if _, twice := p.byPath[node.Path]; twice {
		return fmt.Errorf("there are two nodes of this path")
	}
	p.byPath[node.Path] = i
	switch c := node.Container; {
	case c == graph.Top:
		p.top = append(p.top, i)
	case c < 0 || c >= i || p.flow.Nodes[c].Type != graph.TypeFlow:
		return fmt.Errorf("its container, number %d, is no embedded flow before it", c)
	default:
		p.members[c] = append(p.members[c], i)
	}
	for _, parent := range node.Parents {
		if parent < 0 || parent >= len(p.flow.Nodes) || p.flow.Nodes[parent].Container != node.Container {
			return fmt.Errorf("its parent, number %d, is not in the same flow", parent)
		}
		p.children[parent] = append(p.children[parent], i)
	}
	if node.ForEach != nil && node.Type == graph.TypeFlow {
		return fmt.Errorf("for_each of an embedded flow is not supported")
	}
	expr, known := parsed[node.Condition]
	if !known {
		var err error
		if expr, err = cond.Parse(node.Condition); err != nil {
			return err
		}
		parsed[node.Condition] = expr
	}
	p.exprs[i] = expr
	return nil
}

// checkCycles refuses nodes that wait for each other: their run would not end.
func (p *Plan) checkCycles() error {
	pending := make([]int, len(p.flow.Nodes))
	var ready []int
	for i := range p.flow.Nodes {
		if pending[i] = len(p.flow.Nodes[i].Parents); pending[i] == 0 {
			ready = append(ready, i)
		}
	}
	for seen := 0; ; seen++ {
		if len(ready) == 0 {
			if seen < len(pending) {
				return fmt.Errorf("%d nodes wait for each other in a circle", len(pending)-seen)
			}
			return nil
		}
		n := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, child := range p.children[n] {
			if pending[child]--; pending[child] == 0 {
				ready = append(ready, child)
			}
		}
	}
}

// Flow returns the graph.
func (p *Plan) Flow() *graph.Flow { return p.flow }

// NewNodes returns the nodes of a new run, some of them disabled by their paths. What is inside of a disabled embedded flow is
// disabled with it. Paths of instances of for_each are passed over: they are Run.Disabled's.
func (p *Plan) NewNodes(disabled ...string) ([]Node, error) {
	nodes := make([]Node, len(p.flow.Nodes))
	for i := range nodes {
		nodes[i].Status = Ready
	}
	for _, path := range disabled {
		n, found := p.byPath[path]
		template, is := p.byPath[path[:max(0, strings.LastIndexByte(path, '['))]]
		switch {
		case !found && is && p.flow.Nodes[template].ForEach != nil:
			continue
		case !found:
			return nil, fmt.Errorf("flow %s has no node %s to disable", p.flow.Name, path)
		}
		nodes[n].Status = Disabled
	}
	for i := range nodes {
		if c := p.flow.Nodes[i].Container; c != graph.Top && nodes[c].Status == Disabled {
			nodes[i].Status = Disabled
		}
	}
	return nodes, nil
}

// sibling returns the number of a node by its name in the container of another; None if there is none.
func (p *Plan) sibling(n int, name string) int {
	path := name
	if c := p.flow.Nodes[n].Container; c != graph.Top {
		path = p.flow.Nodes[c].Path + ":" + name
	}
	if i, found := p.byPath[path]; found {
		return i
	}
	return None
}
