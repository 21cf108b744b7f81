package flow

import (
	"io"
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

// A flow's graph is read and thought through once for a version, whoever asks; those that nobody has asked for longest are forgotten.
func TestPlansAreShared(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	c := &Client{pool: pool, store: store.New(pool, "pelton"), plans: newPlans(plansBytes)}
	var flows []*graph.Flow
	for _, name := range []string{"a", "b", "c"} {
		flows = append(flows, &graph.Flow{Name: name, Nodes: []graph.Node{{Path: "n", Type: graph.TypeNoop, Container: graph.Top}}})
	}
	v, err := c.store.Push(t.Context(), store.Push{
		Project: "p", By: "somebody", Graphs: &graph.Project{Format: graph.FormatFlow2, Flows: flows},
		Open: func(string) (io.ReadCloser, error) { return nil, io.EOF },
	})
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) *plan {
		p, err := c.plan(t.Context(), pool, v.ID, name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := get("a"), get("b")
	c.plans.limit = c.plans.bytes
	if get("a") != a || get("b") != b || a == b {
		t.Error("a plan is made twice")
	}
	get("a")
	get("c") // in place of b
	if get("a") != a || get("b") == b {
		t.Error("forgotten is not the plan that nobody has asked for longest")
	}
	if len(c.plans.all) != 2 || c.plans.bytes > c.plans.limit {
		t.Errorf("%d plans of %d bytes are kept, %d allowed", len(c.plans.all), c.plans.bytes, c.plans.limit)
	}
}

// What is kept of runs is bounded by what it takes, texts included; the one that was used last stays, and none that has ended.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory(10_000)
	run := func(id int64, output string) *loaded {
		l := &loaded{run: store.Run{ID: id}}
		l.row(0).Outputs = []byte(output)
		l.bytes = sizeOf(l.row(0))
		return l
	}
	kept := func(id int64) bool { return m.get(store.Run{ID: id}) != nil }
	m.keep(run(1, ""))
	m.keep(run(2, ""))
	m.keep(run(1, ""))
	m.keep(run(3, string(make([]byte, 2900))))
	if !kept(1) || kept(2) || !kept(3) {
		t.Errorf("kept are 1 %t, 2 %t, 3 %t; want 1 and 3", kept(1), kept(2), kept(3))
	}
	m.keep(run(4, string(make([]byte, 20_000))))
	if kept(1) || kept(3) || !kept(4) {
		t.Errorf("kept are 1 %t, 3 %t, 4 %t; want 4 alone", kept(1), kept(3), kept(4))
	}
	ended := run(4, "")
	ended.ended = true
	m.keep(ended)
	if kept(4) || m.get(store.Run{ID: 4, Step: 1}) != nil {
		t.Error("a run that has ended is kept")
	}
}
