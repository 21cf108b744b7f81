package graph

import "slices"

// Order returns the numbers of the nodes with parents before their children, first ready first; parents[i] are the parents of
// node i. What is on a cycle or behind one is left out.
func Order(parents [][]int) []int {
	children := Children(parents)
	open := make([]int, len(parents))
	order := make([]int, 0, len(parents))
	for i := range parents {
		open[i] = len(parents[i])
		if open[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, child := range children[order[at]] {
			if open[child]--; open[child] == 0 {
				order = append(order, child)
			}
		}
	}
	return order
}

// Children turns lists of parents into lists of children.
func Children(parents [][]int) [][]int {
	count := make([]int, len(parents))
	total := 0
	for i := range parents {
		for _, p := range parents[i] {
			count[p]++
			total++
		}
	}
	all, children := make([]int, 0, total), make([][]int, len(parents))
	for i, n := range count {
		children[i] = all[len(all) : len(all) : len(all)+n]
		all = all[:len(all)+n]
	}
	for i := range parents {
		for _, p := range parents[i] {
			children[p] = append(children[p], i)
		}
	}
	return children
}

// Cycles returns cycles that share no node, at most limit, each in the order of execution and starting with its first node.
// Breaking these may leave others that crossed them.
func Cycles(parents [][]int, limit int) [][]int {
	gone := make([]bool, len(parents)) // on no further cycle
	for _, i := range Order(parents) {
		gone[i] = true
	}
	var cycles [][]int
	var path []int                     // each node is a parent of the one before it
	place := make([]int, len(parents)) // in the path, from 1
	next := make([]int, len(parents))  // the parent to look at
	leave := func(from int) {
		for _, i := range path[from:] {
			gone[i], place[i] = true, 0
		}
		path = path[:from]
	}
	for start := range parents {
		for at := start; len(cycles) < limit && (len(path) > 0 || !gone[start]); {
			if place[at] == 0 {
				path = append(path, at)
				place[at] = len(path)
			}
			for next[at] < len(parents[at]) && gone[parents[at][next[at]]] {
				next[at]++
			}
			switch {
			case next[at] == len(parents[at]):
				leave(len(path) - 1)
			case place[parents[at][next[at]]] == 0:
				at = parents[at][next[at]]
				continue
			default:
				from := place[parents[at][next[at]]] - 1
				cycles = append(cycles, forward(path[from:]))
				leave(from)
			}
			if len(path) > 0 {
				at = path[len(path)-1]
			}
		}
	}
	return cycles
}

// forward returns a cycle of parents turned round, from its least node on.
func forward(cycle []int) []int {
	cycle = slices.Clone(cycle)
	slices.Reverse(cycle)
	least := slices.Index(cycle, slices.Min(cycle))
	return append(slices.Clone(cycle[least:]), cycle[:least]...)
}

// Components returns the nodes in sets, parents first: those on a common cycle in one, every other node in one of its own.
func Components(parents [][]int) [][]int {
	var (
		sets   [][]int
		seen   = make([]int, len(parents)) // when a node was met, from 1
		least  = make([]int, len(parents)) // the least that is met from it on, of those that are in no set
		next   = make([]int, len(parents)) // the parent to look at
		done   = make([]bool, len(parents))
		open   []int // met, in no set yet
		path   []int // each node is a parent of the one before it
		number int
	)
	for start := range parents {
		if seen[start] > 0 {
			continue
		}
		for path = append(path, start); len(path) > 0; {
			at := path[len(path)-1]
			if seen[at] == 0 {
				number++
				seen[at], least[at] = number, number
				open = append(open, at)
			}
			if next[at] < len(parents[at]) {
				p := parents[at][next[at]]
				next[at]++
				if seen[p] == 0 {
					path = append(path, p)
				} else if !done[p] {
					least[at] = min(least[at], seen[p])
				}
				continue
			}
			if path = path[:len(path)-1]; len(path) > 0 {
				below := path[len(path)-1]
				least[below] = min(least[below], least[at])
			}
			if least[at] < seen[at] {
				continue
			}
			from := len(open)
			for from == len(open) || open[from] != at {
				from--
				done[open[from]] = true
			}
			sets = append(sets, slices.Clone(open[from:]))
			open = open[:from]
		}
	}
	return sets
}

// Closure returns the node and all its ancestors, in ascending order.
func Closure(parents [][]int, node int) []int {
	seen := make(map[int]bool, 16)
	seen[node] = true
	found := []int{node}
	for at := 0; at < len(found); at++ {
		for _, p := range parents[found[at]] {
			if !seen[p] {
				seen[p] = true
				found = append(found, p)
			}
		}
	}
	slices.Sort(found)
	return found
}

// Index holds the lists that a flow's graph is read by. It is computed once and never changes.
type Index struct {
	Children [][]int       // of each node, in the same container
	Contents map[int][]int // of each container, Top among them: its own nodes, in topological order
	Ends     map[int][]int // of each container: its nodes without children
}

// Index computes the lists of a flow.
func (f *Flow) Index() *Index {
	parents := make([][]int, len(f.Nodes))
	for i := range f.Nodes {
		parents[i] = f.Nodes[i].Parents
	}
	x := &Index{Children: Children(parents), Contents: map[int][]int{}, Ends: map[int][]int{}}
	for _, i := range Order(parents) {
		c := f.Nodes[i].Container
		x.Contents[c] = append(x.Contents[c], i)
		if len(x.Children[i]) == 0 {
			x.Ends[c] = append(x.Ends[c], i)
		}
	}
	return x
}

// Find returns the number of the node with this path, -1 if there is none.
func (f *Flow) Find(path string) int {
	return slices.IndexFunc(f.Nodes, func(n Node) bool { return n.Path == path })
}
