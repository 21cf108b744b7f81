package param

import (
	"slices"
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// precedence is the graph of Azkaban's own example: job2 -> innerflow(job1 -> job4) -> job3.
func precedence() *graph.Flow {
	root := graph.Config{
		"props3": "moo3", "props4": "moo4", "props5": "moo5", "props1": "shared1", "props2": "shared2", "props6": "shared6",
	}
	subdir := graph.Config{
		"props3": "moo3", "props4": "shared4", "props5": "moo5", "props1": "shared1", "props2": "shared2", "props6": "shared6",
		"props8": "shared8",
	}
	return &graph.Flow{Name: "job3", Nodes: []graph.Node{
		{Path: "job2", Type: "test", Container: graph.Top, Shared: subdir, Config: graph.Config{"props2": "job2", "props7": "job7"}},
		{
			Path: "innerflow", Type: graph.TypeFlow, Container: graph.Top, Parents: []int{0}, Shared: root,
			Config: graph.Config{"props5": "innerflow5", "props6": "innerflow6", "props8": "innerflow8"},
		},
		{
			Path: "innerflow:job1", Type: "test", Container: 1, Shared: root,
			Config: graph.Config{"props1": "job1", "props2": "job2", "props8": "job8"},
		},
		{
			Path: "innerflow:job4", Type: "test", Container: 1, Parents: []int{2}, Shared: subdir,
			Config: graph.Config{"props8": "job8", "props9": "job9"},
		},
		{Path: "job3", Type: "test", Container: graph.Top, Parents: []int{1}, Shared: root, Config: graph.Config{"props3": "job3"}},
	}}
}

// TestPrecedence is the table of Azkaban's own test of its scopes, of the graph made by hand; package flow has runs of it. "-": absent, "": not
// asked.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	flow := precedence()
	run := Run{
		Params: map[string]string{
			"props7": "execflow7", "props6": "execflow6", "props5": "execflow5", "runtime1": "runtime1-ROOT", "runtime2": "runtime2-ROOT",
		},
		Nodes: map[string]map[string]string{
			"job2":      {"job-prop-2": "job2-val-2", "props6": "job2-val-6"},
			"innerflow": {"props6": "innerflow-val-6", "props4": "innerflow-val-4", "props10": "innerflow-val-10"},
			"innerflow:job4": {
				"runtime1": "runtime1-job4", "props4": "innerflow-job4-val-4", "props5": "innerflow-job4-val-5",
			},
			"job3": {"prop-job3": "should-be-set-only-for-job3"},
		},
	}
	job4 := map[string]string{"props9": "g4job9", "props6": "g4job6"}
	outputs := map[string]map[string]string{
		"job2":           {"props6": "g2job6", "props4": "g2job4", "props5": "g2job5", "props7": "g2job7", "props10": "g2job10"},
		"innerflow:job1": {"props4": "g1job4", "props10": "g1job10"},
		"innerflow:job4": job4,
		"innerflow":      job4, // an embedded flow's outputs are those of its end nodes
	}
	nodes := []string{"job2", "innerflow:job1", "innerflow:job4", "job3"}
	for _, row := range [][5]string{
		{"props1", "shared1", "job1", "shared1", "shared1"},
		{"props2", "job2", "job2", "shared2", "shared2"},
		{"props3", "moo3", "moo3", "moo3", "job3"},
		{"props4", "shared4", "innerflow-val-4", "innerflow-job4-val-4", "moo4"},
		{"props5", "execflow5", "innerflow5", "innerflow-job4-val-5", "execflow5"},
		{"props6", "job2-val-6", "innerflow-val-6", "innerflow-val-6", "g4job6"},
		{"props7", "job7", "g2job7", "g2job7", "execflow7"},
		{"props8", "shared8", "job8", "job8", ""},
		{"props9", "", "", "job9", "g4job9"},
		{"props10", "-", "innerflow-val-10", "g1job10", "-"},
		{"runtime1", "runtime1-ROOT", "runtime1-ROOT", "runtime1-job4", "runtime1-ROOT"},
		{"runtime2", "runtime2-ROOT", "runtime2-ROOT", "runtime2-ROOT", "runtime2-ROOT"},
		{"job-prop-2", "job2-val-2", "", "", ""},
		{"prop-job3", "-", "", "-", "should-be-set-only-for-job3"},
	} {
		for i, path := range nodes {
			want := row[i+1]
			number := slices.IndexFunc(flow.Nodes, func(n graph.Node) bool { return n.Path == path })
			got, err := Resolve(ForNode(flow, run, Node{
				Number: number, Outputs: func(n int) map[string]string { return outputs[flow.Nodes[n].Path] },
			}))
			if err != nil {
				t.Fatal(err)
			}
			value, found := got[row[0]]
			if want != "" && value != want && (found || want != "-") {
				t.Errorf("%s of %s: got %q, want %q", row[0], path, value, want)
			}
		}
	}
}

// TestScopesOfOneNode: what the table above does not reach.
func TestScopesOfOneNode(t *testing.T) {
	t.Parallel()
	flow := &graph.Flow{
		Name:   "f",
		Config: graph.Config{"text": "${inner}", "inner": "flow", "who": "flow", "azkaban.job.id": "mine"},
		Nodes: []graph.Node{
			{Path: "a", Type: "test", Container: graph.Top},
			{Path: "b", Type: "test", Container: graph.Top},
			{
				Path: "c", Type: "test", Container: graph.Top, Parents: []int{0, 1},
				Config: graph.Config{"inner": "node", "file": "part-${item}.csv", "item": "config", "n": "${item.index}"},
			},
		},
	}
	run := Run{
		Global: map[string]string{"who": "installation", "global": "yes"},
		Params: map[string]string{"azkaban.job.id": "mine too"},
		Nodes:  map[string]map[string]string{"c": {"all": "c"}, "c[1]": {"second": "c1", "all": "c1"}},
	}
	outputs := map[int]map[string]string{0: {"k": "from a", "only": "a"}, 1: {"k": "from b", "inner": "b"}}
	scopes := ForNode(flow, run, Node{
		Number: 2, Item: &Item{Index: 1, Value: "x"}, Outputs: func(n int) map[string]string { return outputs[n] },
		Runtime: map[string]string{"azkaban.job.id": "c[1]"},
	})
	got, err := Resolve(scopes)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"text": "node", "who": "flow", "global": "yes", "k": "from b", "only": "a", "file": "part-x.csv", "item": "x", "n": "1",
		"second": "c1", "all": "c1", "azkaban.job.id": "c[1]",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	if from := scopes.From("k"); from != "outputs of b" {
		t.Errorf("k is from %q", from)
	}
	if !Reserved("azkaban.flow.execid") || !Reserved("azkaban.job.id") || Reserved("azkaban.server.name") {
		t.Error("reserved names")
	}
}
