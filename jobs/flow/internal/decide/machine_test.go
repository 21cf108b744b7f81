package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// TestEventsCost: an event in a flow of 10,000 nodes allocates no more than in one of 100, so it does not look through all of them.
func TestEventsCost(t *testing.T) {
	allocated := func(n int) float64 {
		m := begun(t, fan(t, n, "test"), 10)
		next := 1
		return testing.AllocsPerRun(50, func() {
			m.Apply(Ended{Node: next, Outcome: JobSucceeded})
			next++
		})
	}
	if small, large := allocated(100), allocated(10_000); large > small+2 {
		t.Errorf("an event allocates %v times in a small flow, %v times in a large one", small, large)
	}
}

// TestDeep: nothing calls itself for each node or level, so a chain and a nest as long as a flow may be do not overflow anything.
func TestDeep(t *testing.T) {
	t.Parallel()
	const n = 100_000
	flow := &graph.Flow{Name: "chain"}
	for i := range n {
		node := graph.Node{Path: fmt.Sprint("n", i), Type: graph.TypeNoop, Container: graph.Top}
		if i > 0 {
			node.Parents = []int{i - 1}
		}
		flow.Nodes = append(flow.Nodes, node)
	}
	if m := begun(t, mustPlan(t, flow), 10); m.Run().Status != Succeeded {
		t.Errorf("a chain of noops is %s", m.Run().Status)
	}

	nest := &graph.Flow{Name: "nest"}
	path := "x"
	for i := range 2000 {
		nest.Nodes = append(nest.Nodes, graph.Node{Path: path, Type: graph.TypeFlow, Container: i - 1})
		path += ":x"
	}
	if m := begun(t, mustPlan(t, nest), 10); m.Run().Status != Succeeded {
		t.Errorf("a nest of embedded flows is %s", m.Run().Status)
	}
	m := newMachine(t, mustPlan(t, nest), Run{Status: Preparing}, make([]Node, 2000))
	for i := range m.nodes {
		m.nodes[i].Status = Ready
	}
	m.nodes[0].Status = Disabled
	if m.Apply(Begin{}); m.Run().Status != Succeeded || m.Node(1999).Status != Skipped {
		t.Errorf("a disabled nest is %s, its innermost %s", m.Run().Status, m.Node(1999).Status)
	}
}

// TestPlanFaults: graphs whose runs could not be decided on have no plan.
func TestPlanFaults(t *testing.T) {
	t.Parallel()
	node := func(path string, parents ...int) graph.Node {
		return graph.Node{Path: path, Type: "test", Container: graph.Top, Parents: parents}
	}
	with := func(n graph.Node, change func(*graph.Node)) graph.Node {
		change(&n)
		return n
	}
	for want, nodes := range map[string][]graph.Node{
		"two nodes of this path":           {node("a"), node("a")},
		"is no embedded flow before it":    {node("a"), with(node("a:b"), func(n *graph.Node) { n.Container = 0 })},
		"number 1, is not in the same":     {node("a", 1)},
		"number -1, is not in the same":    {node("a", -1)},
		"wait for each other in a circle":  {node("a", 1), node("b", 0), node("c")},
		"of an embedded flow is not":       {with(node("a"), func(n *graph.Node) { n.Type, n.ForEach = graph.TypeFlow, &graph.ForEach{} })},
		"condition, at character 1: empty": {with(node("a"), func(n *graph.Node) { n.Condition = "&&" })},
	} {
		if _, err := NewPlan(&graph.Flow{Name: "f", Nodes: nodes}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	plan := mustPlan(t, &graph.Flow{Name: "f", Nodes: []graph.Node{node("a"), with(node("b"), func(n *graph.Node) { n.ForEach = &graph.ForEach{} })}})
	if _, err := plan.NewNodes("c"); err == nil {
		t.Error("a node that is not there is disabled")
	}
	for _, rows := range [][]Node{{{}}, {{}, {}, {Template: 0}}, {{}, {}, {Template: 2}}, {{}, {}, {Template: -1}}} {
		if _, err := plan.Machine(Run{Status: Running}, rows); err == nil {
			t.Errorf("rows that are not of this flow are taken: %v", rows)
		}
	}
	if _, err := plan.Machine(Run{Status: Running}, []Node{{Status: Ready}, {Status: Ready}, {Status: Ready, Template: 1}}); err != nil {
		t.Error(err)
	}
}

// TestInputsInConditions: where a job has no output of a name, its input counts, if the caller knows it.
func TestInputsInConditions(t *testing.T) {
	t.Parallel()
	plan := mustPlan(t, readFlow(t, "a\nb <- a if ${a:azkaban.server.name} == 'foo'\nc <- a if ${a:k} == 'output' && ${a:none} != 1"))
	m := begun(t, plan, 10)
	m.UseInputs(func(node int, name string) (string, bool) {
		value, found := map[string]string{"azkaban.server.name": "foo", "k": "input"}[name]
		return value, found && node == 0
	})
	m.Apply(Ended{Node: 0, Outcome: JobSucceeded, Outputs: map[string]string{"k": "output"}})
	if m.Node(1).Status != Queued || m.Node(2).Status != Cancelled {
		t.Errorf("b is %s, c is %s", m.Node(1).Status, m.Node(2).Status)
	}
}

// TestMerge: what could not start is not started.
func TestMerge(t *testing.T) {
	t.Parallel()
	plan := mustPlan(t, readFlow(t, "a\nb each [x y]\nc noop\nd <- a if all_failed"))
	nodes, err := plan.NewNodes()
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, plan, Run{Status: Preparing}, nodes)
	first := m.Apply(Begin{})
	second := m.Apply(CouldNotStart{Node: 0}, Resume{})
	got := fmt.Sprintf("%+v", m.Merge(first, second))
	want := "{Start:[3 4 5] Cancel:[] Changed:[0 1 2 3] New:[4 5] Retry:[] Limit:[] Status:RUNNING More:false Ended:false FirstFailure:-1 " +
		"Refused:[{Event:1 Reason:the run is RUNNING, not PAUSED}]}"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestMergeOfAnEndThatWasNone: a run that ended and was retried in one transaction has not ended.
func TestMergeOfAnEndThatWasNone(t *testing.T) {
	t.Parallel()
	m := begun(t, mustPlan(t, readFlow(t, "a")), 10)
	ended := m.Apply(Ended{Node: 0, Outcome: JobFailed})
	both := m.Merge(ended, m.Apply(RetryFailed{}))
	if !ended.Ended || both.Ended || both.Status != Running {
		t.Errorf("the end is told %v, then %v with %s", ended.Ended, both.Ended, both.Status)
	}
	again := m.Merge(ended, m.Apply(Pause{}, Resume{}))
	if !again.Ended {
		t.Error("an end is forgotten when nothing happens after it")
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	for _, s := range []Status{Ready, FailedFinishing, Cancelled} {
		if got, err := ParseStatus(s.String()); got != s || err != nil {
			t.Errorf("%s: %s, %v", s, got, err)
		}
	}
	if _, err := ParseStatus("running"); err == nil {
		t.Error("running is a status")
	}
}
