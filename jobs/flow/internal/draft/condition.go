package draft

import (
	"slices"

	"github.com/peltonq/pelton/jobs/flow/internal/cond"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// use is a condition that refers to another node.
type use struct{ node, of int }

// conditions checks those of a set: they must be well formed and refer to ancestors only.
func (c *checker) conditions(s *Set, prefix string, numbers map[string]int, inherited []graph.Config) {
	var uses []use
	for i, n := range s.Nodes {
		if n.Condition == "" {
			continue
		}
		if secrets := param.Secrets(n.Condition); len(secrets) > 0 {
			c.fault(n, prefix, "condition", "condition: secret.%s cannot be used in a condition: only programs get secrets", secrets[0])
			continue
		}
		expr, err := cond.Parse(n.Condition)
		if err != nil {
			c.fault(n, prefix, "condition", "%v", err)
			continue
		}
		for _, v := range expr.Variables() {
			of, ok := numbers[v.Job]
			if !ok || !c.secretive {
				continue
			}
			if secret := secretInCondition(s.Nodes[of], inherited, v.Param); secret != "" {
				c.fault(n, prefix, "condition", "condition: parameter %s of %s uses secret.%s, which cannot be used in a condition: only programs get secrets",
					v.Param, v.Job, secret)
			}
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

// notAncestors says of each use what is wrong with it, "" if it is of an ancestor; on a cycle all are ancestors of each other. It
// goes through the graph once for each 64 nodes that are referred to, so that a large flow whose every node has a condition takes
// no time to speak of.
func notAncestors(parents [][]int, uses []use) []string {
	reasons := make([]string, len(uses))
	sets := graph.Components(parents)
	in := make([]int, len(parents))               // of each node, its set
	bit, referred := make([]int, len(parents)), 0 // of nodes that are referred to, from 1
	for set, nodes := range sets {
		for _, i := range nodes {
			in[i] = set
		}
	}
	for _, u := range uses {
		if bit[u.of] == 0 {
			referred++
			bit[u.of] = referred
		}
	}
	own, above, below := make([]uint64, len(sets)), make([]uint64, len(sets)), make([]uint64, len(sets))
	const block = 64
	for first := 1; first <= referred; first += block {
		mask := func(node int) uint64 {
			if b := bit[node] - first; b >= 0 && b < block {
				return 1 << b
			}
			return 0
		}
		clear(own)
		for i := range parents {
			own[in[i]] |= mask(i)
		}
		copy(above, own)
		copy(below, own)
		for set, nodes := range sets {
			for _, i := range nodes {
				for _, p := range parents[i] {
					above[set] |= above[in[p]]
				}
			}
		}
		for set, nodes := range slices.Backward(sets) {
			for _, i := range nodes {
				for _, p := range parents[i] {
					below[in[p]] |= below[set]
				}
			}
		}
		for at, u := range uses {
			m := mask(u.of)
			switch {
			case m == 0 || above[in[u.node]]&m != 0:
			case below[in[u.node]]&m != 0:
				reasons[at] = "runs after it: a condition may refer to ancestors only"
			default:
				reasons[at] = "it does not depend on: a condition may refer to ancestors only"
			}
		}
	}
	return reasons
}
