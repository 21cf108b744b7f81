package project_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/project"
)

// FuzzFlow2 reads YAML. Whatever comes out is a sound graph that survives JSON, or faults.
func FuzzFlow2(f *testing.F) {
	for _, seed := range []string{
		"nodes:\n- {name: a, type: noop}\n- name: b\n  type: flow\n  dependsOn: [a]\n  nodes: &x [{name: c, type: command, config: {command: pwd}}]\n",
		"config: {retries: 1}\nnodes:\n- &n {name: a, type: test, for_each: [1, 2], retry: {max: 2, backoff: 1s}}\n- {<<: *n, name: b, condition: \"one_success\"}\n",
		"trigger: {schedule: {type: cron, value: x}, maxWaitMins: 1}\nnodes: [{name: a, type: noop}]\n",
		"nodes: &a [*a]", "--- \n...\n---\n", "? [a]\n: b\n", "%YAML 1.1\n--- !!map {a: 1}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, flow string) {
		check(t, fstest.MapFS{"p.project": text("azkaban-flow-version: 2.0"), "a.flow": text("%s", flow), "b.flow": text("nodes:\n- {name: a, type: noop}")})
	})
}

// FuzzFlow1 reads files that are split at lines "-- name --".
func FuzzFlow1(f *testing.F) {
	for _, seed := range []string{
		"-- a.job --\ntype=noop\n-- b.job --\ntype=flow\nflow.name=a\n-- c.job --\ntype=command\ncommand=x \\\n  y\ndependencies=b\n",
		"-- d/x.properties --\ntype=test\nretries=${n}\n-- d/a.job --\nroot.node=true\n-- d/b.job --\ndependencies=a\n",
		"-- a.job --\n=x\n\\u12\n", "-- a.job --\ntype=flow\nflow.name=a\n", "-- a.job --\nkey\\\n\r\n\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !strings.HasPrefix(text, "-- ") {
			return
		}
		fsys := fstest.MapFS{}
		for name, file := range files(text) {
			if bundleTakes(name) {
				fsys[name] = file
			}
		}
		check(t, fsys)
	})
}

// bundleTakes tells whether a name is one that a file system may have.
func bundleTakes(name string) bool {
	return name != "." && !strings.ContainsAny(name, "\\") && fstest.TestFS(fstest.MapFS{name: {}}) == nil
}

func check(t *testing.T, fsys fstest.MapFS) {
	t.Helper()
	b, _, err := bundle.Dir(fsys, bundle.Limits{})
	if err != nil || b == nil {
		return
	}
	p, faults, notes := project.Read(b, options)
	if (p == nil) != (len(faults) > 0) {
		t.Fatalf("project %v with faults %v", p, faults)
	}
	for _, f := range append(faults, notes...) {
		if f.Reason == "" || len(f.Reason) > 20_000 {
			t.Errorf("a reason of %d bytes", len(f.Reason))
		}
	}
	if p == nil {
		return
	}
	for _, f := range p.Flows {
		sound(t, f)
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again graph.Project
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(&again); err != nil || string(text) != string(data) {
		t.Errorf("JSON is not stable: %v\n%s\n%s", err, data, text)
	}
	if len(data) < 1<<16 && !reflect.DeepEqual(show(p, true), show(&again, true)) {
		t.Errorf("JSON lost something: %s", data)
	}
}

// sound checks what every graph promises.
func sound(t *testing.T, f *graph.Flow) {
	t.Helper()
	paths := map[string]bool{}
	for i, n := range f.Nodes {
		prefix := ""
		if n.Container != graph.Top {
			if n.Container < 0 || n.Container >= i || f.Nodes[n.Container].Type != graph.TypeFlow {
				t.Fatalf("node %d is in %d", i, n.Container)
			}
			prefix = f.Nodes[n.Container].Path + ":"
		}
		name, ok := strings.CutPrefix(n.Path, prefix)
		if !ok || name == "" || strings.Contains(name, ":") || paths[n.Path] {
			t.Fatalf("node %d has the path %q in %q", i, n.Path, prefix)
		}
		paths[n.Path] = true
		for k, parent := range n.Parents {
			if parent < 0 || parent >= i || f.Nodes[parent].Container != n.Container || k > 0 && parent <= n.Parents[k-1] {
				t.Fatalf("parents of node %d are %v", i, n.Parents)
			}
		}
	}
	if _, err := decide.NewPlan(f); err != nil {
		t.Fatal(err)
	}
	ordered := 0
	for _, contents := range f.Index().Contents {
		ordered += len(contents)
	}
	if ordered != len(f.Nodes) || len(f.Nodes) == 0 {
		t.Fatalf("%d of %d nodes are in order", ordered, len(f.Nodes))
	}
}
