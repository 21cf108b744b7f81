package project_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/project"
)

// faultsOf reads files and returns what is wrong with them, a line each.
func faultsOf(t testing.TB, fsys fstest.MapFS) string {
	t.Helper()
	b, faults, err := bundle.Dir(fsys, bundle.Limits{})
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	p, faults, _ := project.Read(b, options)
	if (p == nil) != (len(faults) > 0) {
		t.Fatalf("project %v with faults %v", p, faults)
	}
	return list("fault", faults)
}

func text(format string, args ...any) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
}

// flow2Files are a project of one flow.
func flow2Files(flow string) fstest.MapFS {
	return fstest.MapFS{"p.project": text("azkaban-flow-version: 2.0"), "a.flow": text("%s", flow)}
}

// embeddedByTens is a Flow 1.0 project whose flow fN embeds f(N-1) ten times, down to f0.
func embeddedByTens(levels int) fstest.MapFS {
	fsys := fstest.MapFS{"f0.job": text("type=noop")}
	for level := 1; level <= levels; level++ {
		var names []string
		for i := range 10 {
			name := fmt.Sprintf("f%d-%d", level, i)
			names = append(names, name)
			fsys[name+".job"] = text("type=flow\nflow.name=f%d", level-1)
		}
		fsys[fmt.Sprintf("f%d.job", level)] = text("type=noop\ndependencies=%s", strings.Join(names, ","))
	}
	return fsys
}

func TestEmbeddingThatGrowsIsFoundWithoutMakingIt(t *testing.T) {
	t.Parallel()
	if got := faultsOf(t, embeddedByTens(3)); got != "" {
		t.Error(got)
	}
	got := faultsOf(t, embeddedByTens(5))
	want := fmt.Sprintf("fault: f5.job: flow f5 has 222221 nodes, embedded ones counted each time; at most %d are allowed\n", graph.MaxNodes)
	if got != want {
		t.Errorf("got %swant %s", got, want)
	}
	got = faultsOf(t, embeddedByTens(30))
	if strings.Count(got, "\n") != 26 || !strings.Contains(got, "flow f30 has more nodes than can be counted") {
		t.Errorf("got %s", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	chain := func(levels int) fstest.MapFS {
		fsys := fstest.MapFS{"f0.job": text("type=noop")}
		for level := 1; level <= levels; level++ {
			fsys[fmt.Sprintf("f%d.job", level)] = text("type=flow\nflow.name=f%d", level-1)
		}
		return fsys
	}
	roots := func(jobs int) fstest.MapFS {
		fsys := fstest.MapFS{"r.properties": text("type=noop\nroot.node=true"), "0.job": text("")}
		for i := 1; i < jobs; i++ {
			fsys[fmt.Sprintf("%d.job", i)] = text("dependencies=%d", i-1)
		}
		return fsys
	}
	long := fstest.MapFS{strings.Repeat("a", 200) + ".job": text("type=noop")}
	below := strings.Repeat("a", 200)
	for _, letter := range "bcdef" {
		name := strings.Repeat(string(letter), 200)
		long[name+".job"] = text("type=flow\nflow.name=%s", below)
		below = name
	}
	aliases := "nodes:\n  - {name: l0, type: flow, nodes: &0 [{name: x, type: noop}]}\n"
	for level := 1; level < 8; level++ {
		nodes := strings.Repeat(fmt.Sprintf("{name: x, type: flow, nodes: *%d}, ", level-1), 10)
		aliases += fmt.Sprintf("  - {name: l%d, type: flow, nodes: &%d [%s]}\n", level, level, nodes)
	}
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string // among the faults
	}{
		"deep enough":       {chain(graph.MaxDepth), ""},
		"too deep":          {chain(graph.MaxDepth + 1), "f51.job: flow f51 embeds flows 51 deep, at most 50 are allowed"},
		"long path":         {long, "has a node whose path is 1205 bytes long, at most 1000 are allowed"},
		"many roots":        {roots(100), ""},
		"too many roots":    {roots(1100), "the flows have more than 500000 nodes together"},
		"aliases of nodes":  {flow2Files(aliases), "a.flow: its aliases stand for too many values"},
		"too large a file":  {flow2Files("#" + strings.Repeat(" ", 8<<20)), "a.flow: has 8388609 bytes, a file of this kind may have 8388608"},
		"too deep in lists": {flow2Files("nodes: " + strings.Repeat("[", 5000)), "a.flow"},
		"too deep in YAML":  {flow2Files(strings.Repeat("{a: ", 300) + strings.Repeat("}", 300)), "a.flow"},
		"large job":         {fstest.MapFS{"a.job": text("type=noop\n#%s", strings.Repeat(" ", 1<<20))}, "a.job: has "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := faultsOf(t, c.files)
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %.300q, want %q", got, c.want)
			}
			if n := strings.Count(got, "\n"); n > 1001 {
				t.Errorf("%d faults", n)
			}
		})
	}
}

// Each directory has a chain of its own with the keys of those above it; together they are bounded.
func TestSharedKeysAreBounded(t *testing.T) {
	t.Parallel()
	var keys strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&keys, "key%d=value\n", i)
	}
	fsys := fstest.MapFS{"a.properties": text("%s", keys.String()), "a.job": text("type=noop")}
	for i := range 100 {
		dir := fmt.Sprintf("dir%d/", i)
		fsys[dir+"b.properties"], fsys[dir+fmt.Sprintf("b%d.job", i)] = text("x=y"), text("type=noop")
	}
	if got := faultsOf(t, fsys); !strings.Contains(got, "have more than 1000000 keys") {
		t.Errorf("got %q", got)
	}
}

// A condition on each of many nodes costs no search of the whole graph each.
func TestManyConditions(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("nodes:\n- {name: n0, type: noop}\n")
	const nodes = 3000
	for i := 1; i < nodes; i++ {
		fmt.Fprintf(&b, "- {name: n%d, type: noop, dependsOn: [n%d], condition: \"${n%d:x} == 1\"}\n", i, i-1, i/2)
	}
	if got := faultsOf(t, flow2Files(b.String())); got != "" {
		t.Errorf("got %.300q", got)
	}
	wrong := strings.Replace(b.String(), "${n750:x}", "${n1502:x}", 1)
	if got := faultsOf(t, flow2Files(wrong)); !strings.Contains(got, `n1500: condition: refers to "n1502", which runs after it`) {
		t.Errorf("got %.300q", got)
	}
}
