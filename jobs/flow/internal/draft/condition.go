package draft

import (
	"slices"

	"github.com/peltonq/pelton/jobs/flow/internal/cond"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// use is a condition that refers to another node.
type use struct{ node, of int }

// conditions checks those of a set: they must be well formed and refer to ancestors only.
func (c *checker) conditions(s *Set, prefix string, numbers map[string]int) {
	var uses []use
	for i, n := range s.Nodes {
		if n.Condition == "" {
			continue
		}
		expr, err := cond.Parse(n.Condition)
		if err != nil {
			c.fault(n, prefix, "condition", "%v", err)
			continue
		}
		for _, name := range expr.Jobs() {
			of, ok := numbers[name]
			switch {
			case !ok:
				c.fault(n, prefix, "condition", "condition: refers to %q, which %s", name, unknown(prefix, c.project.Format))
			case of == i:
				c.fault(n, prefix, "condition", "condition: refers to the node itself, which has no output yet")
			default:
				uses = append(uses, use{i, of})
			}
		}
	}
	for at, reason := range notAncestors(c.edges[s], uses) {
		if reason != "" {
			c.fault(s.Nodes[uses[at].node], prefix, "condition", "condition: refers to %q, which %s", s.Nodes[uses[at].of].Name, reason)
		}
	}
}

// notAncestors says of each use what is wrong with it, "" if it is of an ancestor. It goes through the graph once for each
// 64 nodes that are referred to, so that a large flow whose every node has a condition takes no time to speak of.
func notAncestors(parents [][]int, uses []use) []string {
	reasons := make([]string, len(uses))
	order := graph.Order(parents)
	if len(order) < len(parents) {
		return reasons // on a cycle everything is everything's ancestor; the cycle is the fault
	}
	bit, referred := make([]int, len(parents)), 0 // of nodes that are referred to, from 1
	for _, u := range uses {
		if bit[u.of] == 0 {
			referred++
			bit[u.of] = referred
		}
	}
	above, below := make([]uint64, len(parents)), make([]uint64, len(parents))
	const block = 64
	for first := 1; first <= referred; first += block {
		mask := func(node int) uint64 {
			if b := bit[node] - first; b >= 0 && b < block {
				return 1 << b
			}
			return 0
		}
		clear(above)
		clear(below)
		for _, i := range order {
			for _, p := range parents[i] {
				above[i] |= above[p] | mask(p)
			}
		}
		for _, i := range slices.Backward(order) {
			for _, p := range parents[i] {
				below[p] |= below[i] | mask(i)
			}
		}
		for at, u := range uses {
			m := mask(u.of)
			switch {
			case m == 0 || above[u.node]&m != 0:
			case below[u.node]&m != 0:
				reasons[at] = "runs after it: a condition may refer to ancestors only"
			default:
				reasons[at] = "it does not depend on: a condition may refer to ancestors only"
			}
		}
	}
	return reasons
}
