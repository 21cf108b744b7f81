package flow

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// instanceOf splits the path of an instance of a for_each, as load[3].
func instanceOf(path string) (template string, index int, is bool) {
	open := strings.LastIndexByte(path, '[')
	digits, closed := strings.CutSuffix(path[open+1:], "]")
	index, err := strconv.Atoi(digits)
	if open < 0 || !closed || err != nil || index < 0 || strconv.Itoa(index) != digits {
		return "", 0, false
	}
	return path[:open], index, true
}

// noNode tells why no run of a flow has a node of a path; "" if some may have: it is one of the graph's, whose numbers are known, or
// an instance that a for_each will have, or may.
func noNode(g *graph.Flow, known map[string]int, path string) string {
	if _, is := known[path]; is {
		return ""
	}
	name, index, is := instanceOf(path)
	n, found := known[name]
	switch {
	case !is || !found:
		return fmt.Sprintf("flow %s has no node %q", g.Name, path)
	case g.Nodes[n].ForEach == nil:
		return fmt.Sprintf("node %s of flow %s has no for_each, and so no %s", name, g.Name, path)
	case g.Nodes[n].ForEach.Node == "" && index >= len(g.Nodes[n].ForEach.Items):
		return fmt.Sprintf("the for_each of node %s of flow %s has %s, and so no %s", name, g.Name, quantity.Of(len(g.Nodes[n].ForEach.Items), "item"), path)
	case index >= 2*graph.MaxNodes:
		return fmt.Sprintf("a for_each has up to %d instances, and so no %s", 2*graph.MaxNodes, path)
	}
	return ""
}

// numbers finds nodes of a run by their paths.
func (l *loaded) numbers(paths []string) ([]int, error) {
	numbers := make([]int, len(paths))
	for i, path := range paths {
		if numbers[i] = l.machine.Number(path); numbers[i] == decide.None {
			return nil, l.noNode(path)
		}
	}
	return numbers, nil
}

// noNode says that a run has no node of a path; of an instance of a for_each, which ones there are.
func (l *loaded) noNode(path string) error {
	if name, _, is := instanceOf(path); is && l.graph.Find(name) >= 0 && l.graph.Nodes[l.graph.Find(name)].ForEach != nil {
		template, count := l.graph.Find(name), 0
		for n := range l.machine.Len() {
			if l.machine.IsInstance(n) && l.machine.Node(n).Template == template {
				count++
			}
		}
		return fmt.Errorf("%s has %s, and no %s: %w", name, quantity.Of(count, "instance"), path, ErrNotFound)
	}
	return fmt.Errorf("flow %s has no node %q: %w", l.run.Flow, path, ErrNotFound)
}
