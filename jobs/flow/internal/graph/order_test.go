package graph_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// drawParents makes any lists of parents: cycles, self cycles and duplicates among them.
func drawParents(t *rapid.T) [][]int {
	n := rapid.IntRange(0, 8).Draw(t, "nodes")
	parents := make([][]int, n)
	for i := range parents {
		parents[i] = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 3).Draw(t, "parents")
	}
	return parents
}

// above tells, the plain way, which nodes are ancestors of each: above[i][j] if j is one of i.
func above(parents [][]int) [][]bool {
	n := len(parents)
	m := make([][]bool, n)
	for i := range m {
		m[i] = make([]bool, n)
		for _, p := range parents[i] {
			m[i][p] = true
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				m[i][j] = m[i][j] || m[i][k] && m[k][j]
			}
		}
	}
	return m
}

func TestOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parents := drawParents(t)
		ancestors := above(parents)
		order := graph.Order(parents)
		for at, i := range order {
			for _, p := range parents[i] {
				if !slices.Contains(order[:at], p) {
					t.Fatalf("order %v of %v: %d comes before its parent %d", order, parents, i, p)
				}
			}
		}
		for i := range parents {
			blocked := ancestors[i][i]
			for j := range parents {
				blocked = blocked || ancestors[i][j] && ancestors[j][j]
			}
			if slices.Contains(order, i) == blocked {
				t.Fatalf("order %v of %v: node %d", order, parents, i)
			}
		}
	})
}

func TestCycles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parents := drawParents(t)
		ancestors := above(parents)
		cycles := graph.Cycles(parents, 100)
		used := map[int]bool{}
		for _, cycle := range cycles {
			for at, i := range cycle {
				if next := cycle[(at+1)%len(cycle)]; used[i] || !slices.Contains(parents[next], i) {
					t.Fatalf("cycles %v of %v", cycles, parents)
				}
				used[i] = true
			}
			if cycle[0] != slices.Min(cycle) {
				t.Fatalf("cycle %v does not start with its first node", cycle)
			}
		}
		// Every cycle is found or crosses one that is: without the nodes found, there is an order of all.
		rest := make([][]int, len(parents))
		for i := range parents {
			if !used[i] {
				rest[i] = slices.DeleteFunc(slices.Clone(parents[i]), func(p int) bool { return used[p] })
			}
		}
		if len(graph.Order(rest)) != len(rest) {
			t.Fatalf("cycles %v of %v: there are more", cycles, parents)
		}
		for i := range parents {
			if ancestors[i][i] && len(cycles) == 0 {
				t.Fatalf("no cycles of %v", parents)
			}
		}
		if few := graph.Cycles(parents, 1); len(few) != min(1, len(cycles)) {
			t.Fatalf("at most one cycle of %v: %v", parents, few)
		}
	})
}

func TestComponents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parents := drawParents(t)
		ancestors := above(parents)
		sets := graph.Components(parents)
		at := make([]int, len(parents)) // of each node, its set from 1
		for set, nodes := range sets {
			for _, i := range nodes {
				if at[i] > 0 {
					t.Fatalf("sets %v of %v: %d comes twice", sets, parents, i)
				}
				at[i] = set + 1
			}
		}
		for i := range parents {
			for j := range parents {
				if together := i == j || ancestors[i][j] && ancestors[j][i]; (at[i] == at[j]) != together {
					t.Fatalf("sets %v of %v: %d and %d", sets, parents, i, j)
				}
				if ancestors[i][j] && at[j] > at[i] {
					t.Fatalf("sets %v of %v: %d comes before its ancestor %d", sets, parents, i, j)
				}
			}
			if at[i] == 0 {
				t.Fatalf("sets %v of %v: %d is in none", sets, parents, i)
			}
		}
	})
}

func TestClosureAndChildren(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parents := drawParents(t)
		ancestors := above(parents)
		children := graph.Children(parents)
		for i := range parents {
			var want []int
			for j := range parents {
				if i == j || ancestors[i][j] {
					want = append(want, j)
				}
			}
			if got := graph.Closure(parents, i); !slices.Equal(got, want) {
				t.Fatalf("closure of %d in %v: %v, want %v", i, parents, got, want)
			}
			var below []int
			for j := range parents {
				for _, p := range parents[j] {
					if p == i {
						below = append(below, j)
					}
				}
			}
			if !slices.Equal(children[i], below) {
				t.Fatalf("children of %d in %v: %v, want %v", i, parents, children[i], below)
			}
		}
	})
}

func TestFaultIsShown(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]graph.Fault{
		"a.flow:3: outer:b: broken": {File: "a.flow", Line: 3, Node: "outer:b", Reason: "broken"},
		"a.flow: broken":            {File: "a.flow", Reason: "broken"},
		"b: broken":                 {Node: "b", Reason: "broken"},
		"\"a\\nb\": broken":         {Node: "a\nb", Reason: "broken"},
		"broken":                    {Reason: "broken"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
