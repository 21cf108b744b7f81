package draft

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Conditions on any graph, with cycles or without, agree with a search of its own for each.
func TestConditionsReferToAncestors(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 150).Draw(t, "nodes")
		parents := make([][]int, n)
		for i := 1; i < n; i++ {
			parents[i] = rapid.SliceOfN(rapid.IntRange(max(0, i-5), i-1), 0, 2).Draw(t, "parents")
		}
		for range rapid.IntRange(0, 3).Draw(t, "ways back") {
			from := rapid.IntRange(0, n-1).Draw(t, "from")
			parents[from] = append(parents[from], rapid.IntRange(from, n-1).Draw(t, "to"))
		}
		uses := make([]use, rapid.IntRange(0, 200).Draw(t, "uses"))
		for i := range uses {
			uses[i] = use{rapid.IntRange(0, n-1).Draw(t, "node"), rapid.IntRange(0, n-1).Draw(t, "of")}
		}
		uses = slices.DeleteFunc(uses, func(u use) bool { return u.node == u.of })
		for at, reason := range notAncestors(parents, uses) {
			u, want := uses[at], "it does not depend on: a condition may refer to ancestors only"
			switch {
			case slices.Contains(graph.Closure(parents, u.node), u.of):
				want = ""
			case slices.Contains(graph.Closure(parents, u.of), u.node):
				want = "runs after it: a condition may refer to ancestors only"
			}
			if reason != want {
				t.Fatalf("%d refers to %d: %q, want %q", u.node, u.of, reason, want)
			}
		}
	})
}

func TestParseMemory(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1024": 1024, "1k": 1 << 10, "512M": 512 << 20, "2g": 2 << 30, "1T": 1 << 40, "0": 0,
		"": -1, "G": -1, "-1M": -1, "1.5G": -1, "1GB": -1, "9999999999T": -1, "99999999999999999999": -1,
	} {
		got, err := ParseMemory(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

// A large flow is checked and made in time that grows with it: 20,000 nodes with a fan-out, a fan-in, and the longest chain.
func TestLargeFlow(t *testing.T) {
	t.Parallel()
	const nodes = 20_000
	s := &Set{Nodes: make([]*Node, nodes)}
	for i := range s.Nodes {
		n := &Node{Name: fmt.Sprint("n", i), Node: graph.Node{Type: graph.TypeNoop}}
		switch {
		case i == 0:
		case i < nodes/2:
			n.After = []Parent{{Name: "n0"}}
		case i == nodes/2:
			for k := 1; k < i; k++ {
				n.After = append(n.After, Parent{Name: fmt.Sprint("n", k)})
			}
		default:
			n.After = []Parent{{Name: fmt.Sprint("n", i-1)}}
		}
		s.Nodes[i] = n
	}
	check := func() (*graph.Project, []graph.Fault) {
		return Check(&Project{Format: graph.FormatCode, Flows: []*Flow{{Name: "large", Nodes: s}}}, Rules{})
	}
	p, faults := check()
	if len(faults) > 0 || len(p.Flows[0].Nodes) != nodes {
		t.Fatal(faults)
	}
	s.Nodes[nodes/2].After = append(s.Nodes[nodes/2].After, Parent{Name: fmt.Sprint("n", nodes-1)})
	_, faults = check()
	if len(faults) != 1 || !strings.Contains(faults[0].Reason, "cycle: n10000 -> n10001 -> ") || !strings.Contains(faults[0].Reason, "... (10000 nodes) -> n10000") {
		t.Errorf("a long cycle: %v", faults)
	}
}

func TestReportIsSortedAndBounded(t *testing.T) {
	t.Parallel()
	r := &Report{}
	for i := range 3000 {
		r.Fault(Place{File: "b", Line: 3000 - i}, "x")
	}
	r.Fault(Place{File: "a", Line: 2, Node: "n"}, "y")
	r.Fault(Place{File: "a", Line: 2, Node: "n"}, "y")
	got := Sorted(r.Faults)
	if len(got) != 1001 || got[0].File != "a" || got[1].Line != 1 || got[1000].Reason != "and 2001 more" {
		t.Errorf("%d faults: %v ... %v", len(got), got[:2], got[len(got)-1])
	}
}
