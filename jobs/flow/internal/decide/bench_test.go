package decide

import (
	"fmt"
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// fan is a flow of a noop, n nodes after it, and a noop after them.
func fan(t testing.TB, n int, kind string) *Plan {
	t.Helper()
	text := fmt.Sprintf("a noop\nn{1..%d} %s <- a\nz noop <- n{1..%d}", n, kind, n)
	return mustPlan(t, readFlow(t, text))
}

func mustPlan(t testing.TB, flow *graph.Flow) *Plan {
	t.Helper()
	plan, err := NewPlan(flow)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func begun(t testing.TB, plan *Plan, parallel int) *Machine {
	t.Helper()
	nodes, err := plan.NewNodes()
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, plan, Run{Status: Preparing, Settings: Settings{MaxParallel: parallel}}, nodes)
	m.Apply(Begin{})
	return m
}

// BenchmarkNoops: 10,000 nodes that need no job, from the first to the last in one Apply.
func BenchmarkNoops(b *testing.B) {
	plan := fan(b, 10_000, graph.TypeNoop)
	b.ReportAllocs()
	for b.Loop() {
		if m := begun(b, plan, 10); m.Run().Status != Succeeded {
			b.Fatal(m.Run().Status)
		}
	}
}

// BenchmarkFan: 10,000 jobs, each with an Apply of its own for its end.
func BenchmarkFan(b *testing.B) {
	plan := fan(b, 10_000, "test")
	b.ReportAllocs()
	for b.Loop() {
		m := begun(b, plan, 10)
		for n := range 10_000 {
			m.Apply(Ended{Node: n + 1, Outcome: JobSucceeded})
		}
		if m.Run().Status != Succeeded {
			b.Fatal(m.Run().Status)
		}
	}
}

// BenchmarkAnew: a machine from the rows of 10,000 nodes.
func BenchmarkAnew(b *testing.B) {
	plan := fan(b, 10_000, "test")
	m := begun(b, plan, 10)
	b.ReportAllocs()
	for b.Loop() {
		newMachine(b, plan, m.Run(), m.nodes).Apply()
	}
}

// BenchmarkPlan: a plan of 10,000 nodes.
func BenchmarkPlan(b *testing.B) {
	flow := fan(b, 10_000, "test").Flow()
	b.ReportAllocs()
	for b.Loop() {
		mustPlan(b, flow)
	}
}
