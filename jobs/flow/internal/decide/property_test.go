package decide

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// TestDecidesAsNaive: over random flows and events the machine decides what a plain evaluator does that looks at everything anew, a machine
// made anew from the rows at every step gives the same effects, the rows that changed are told, and every run reaches its end.
func TestDecidesAsNaive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			if w.m.Run().Status.Ended() && rapid.Bool().Draw(t, "goes on later") {
				w.queue(t)
			}
			w.apply(t, w.event(t))
		}
		w.finish(t)
	})
}

// TestPiecesMakeTheSame: a machine that decides piece by piece, and is made anew from the rows in between, comes to the same rows and effects.
func TestPiecesMakeTheSame(t *testing.T) {
	t.Parallel()
	pieces := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 5 {
			w := newWorld(t)
			pieces += w.playInPieces(t, rapid.IntRange(1, 4).Draw(t, "limit"))
		}
	})
	if pieces < 20 { // short runs draw few
		t.Errorf("only %d times there was more", pieces)
	}
}

// playInPieces returns how many times there was more.
func (w *world) playInPieces(t *rapid.T, limit int) (pieces int) {
	m := w.again(t, limit)
	for range rapid.IntRange(1, 30).Draw(t, "times") {
		var events []Event
		for range rapid.IntRange(1, 4).Draw(t, "events") {
			events = append(events, w.event(t))
		}
		want := w.m.Apply(events...)
		for _, retry := range want.Retry {
			w.due[retry.Node] = retry
		}
		got := m.Apply(events...)
		for more := got.More; more; pieces++ {
			if len(got.Start) > 0 {
				t.Fatalf("%#v: %v start before all is decided", events, got.Start)
			}
			if rapid.Bool().Draw(t, "anew") {
				m = (&world{plan: w.plan, m: m}).again(t, limit)
			}
			next := m.Apply()
			got, more = m.Merge(got, next), next.More
		}
		got.Status, want.Status = "", "" // of the last piece
		if !reflect.DeepEqual(normal(got), normal(want)) || !reflect.DeepEqual(m.nodes, w.m.nodes) || m.run != w.m.run {
			t.Fatalf("%#v in pieces:\n%+v\n%+v\nat once:\n%+v\n%+v", events, got, m.nodes, want, w.m.nodes)
		}
	}
	return pieces
}

// again makes the machine anew from its rows, with a limit.
func (w *world) again(t *rapid.T, limit int) *Machine {
	m, err := w.plan.Machine(w.m.Run(), cloneNodes(w.m.nodes))
	if err != nil {
		t.Fatal(err)
	}
	m.Limit(limit)
	return m
}

// normal has no list that is empty but not nil.
func normal(e Effects) Effects {
	for _, list := range []*[]int{&e.Start, &e.Cancel, &e.Changed, &e.New} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	if len(e.Retry) == 0 {
		e.Retry = nil
	}
	if len(e.Refused) == 0 {
		e.Refused = nil
	}
	return e
}

// world is a run that random things happen to.
type world struct {
	plan *Plan
	m    *Machine
	due  map[int]Retry
}

var conditions = []string{
	"", "", "", "all_success", "all_done", "all_failed", "one_success", "one_failed", "${n0:x} == 1", "all_done && ${n1:x} != 1",
	"one_failed || ${n0:x} > 1", "${n1:list} != ''",
}

func newWorld(t *rapid.T) *world {
	flow := &graph.Flow{Name: "random"}
	names := map[int]int{} // of a scope: how many nodes are in it
	for i := range rapid.IntRange(0, 12).Draw(t, "nodes") {
		flow.Nodes = append(flow.Nodes, randomNode(t, flow, names, i))
	}
	plan, err := NewPlan(flow)
	if err != nil {
		t.Fatal(err)
	}
	var disabled []string
	for _, node := range flow.Nodes {
		if rapid.IntRange(0, 9).Draw(t, "disabled") == 0 {
			disabled = append(disabled, node.Path)
		}
	}
	nodes, err := plan.NewNodes(disabled...)
	if err != nil {
		t.Fatal(err)
	}
	settings := Settings{
		OnFailure:      rapid.SampledFrom([]graph.OnFailure{graph.FinishCurrent, graph.CancelAll, graph.FinishPossible}).Draw(t, "on failure"),
		OnCancelledEnd: rapid.SampledFrom([]graph.OnCancelledEnd{graph.EndKilled, graph.EndSucceeded}).Draw(t, "on cancelled end"),
		MaxParallel:    rapid.IntRange(1, 5).Draw(t, "parallel"),
	}
	m, err := plan.Machine(Run{Status: Preparing, Settings: settings}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return &world{plan: plan, m: m, due: map[int]Retry{}}
}

func randomNode(t *rapid.T, flow *graph.Flow, names map[int]int, i int) graph.Node {
	scopes := []int{Top}
	for n, node := range flow.Nodes {
		if node.Type == graph.TypeFlow {
			scopes = append(scopes, n)
		}
	}
	node := graph.Node{
		Type:      rapid.SampledFrom([]string{"test", "test", "test", graph.TypeNoop, graph.TypeFlow}).Draw(t, "type"),
		Container: rapid.SampledFrom(scopes).Draw(t, "container"),
		Condition: rapid.SampledFrom(conditions).Draw(t, "condition"),
	}
	node.Path = fmt.Sprintf("n%d", names[node.Container])
	names[node.Container]++
	if node.Container != Top {
		node.Path = flow.Nodes[node.Container].Path + ":" + node.Path
	}
	for n := range i {
		if flow.Nodes[n].Container == node.Container && rapid.IntRange(0, 2).Draw(t, "parent") == 0 {
			node.Parents = append(node.Parents, n)
		}
	}
	node.SucceedOnFailure = rapid.IntRange(0, 7).Draw(t, "succeed on failure") == 0
	switch {
	case node.Type == graph.TypeFlow:
		node.Retry.Max = rapid.IntRange(0, 2).Draw(t, "retries")
	case len(node.Parents) > 0 && rapid.IntRange(0, 3).Draw(t, "each") == 0:
		parent := flow.Nodes[node.Parents[0]].Path
		node.ForEach = &graph.ForEach{Node: parent[strings.LastIndexByte(parent, ':')+1:], Key: "list"}
	case rapid.IntRange(0, 9).Draw(t, "each") == 0:
		node.ForEach = &graph.ForEach{Items: []string{"a", "b"}}
	}
	return node
}

// event draws something that could happen.
func (w *world) event(t *rapid.T) Event {
	var jobs, all []int
	for n := range w.m.Len() {
		all = append(all, n)
		if w.m.hasJob(n) {
			jobs = append(jobs, n)
		}
	}
	node := func() int { return rapid.SampledFrom(all).Draw(t, "node") }
	kind := rapid.IntRange(0, 29).Draw(t, "kind")
	switch {
	case w.m.Run().Status == Preparing && kind > 3 && kind != 12 && kind != 13, w.m.Run().Status == Queued && kind > 14:
		return Begin{}
	case kind == 0 && rapid.IntRange(0, 2).Draw(t, "really") == 0:
		return Kill{}
	case kind == 1:
		return Pause{}
	case kind <= 3:
		return Resume{}
	case kind == 4:
		return RetryFailed{}
	case kind <= 8 && len(w.due) > 0:
		for _, n := range all {
			if retry, found := w.due[n]; found {
				return RetryDue(retry)
			}
		}
	case len(all) == 0:
	case kind == 9:
		return Hold{Node: node(), By: "somebody"}
	case kind <= 11:
		return Release{Node: node()}
	case kind == 12:
		return MarkSucceeded{Node: node(), Outputs: randomOutputs(t)}
	case kind == 13:
		return Rerun{Nodes: []int{node()}}
	case kind == 14:
		return RetryFlow{Node: node()}
	case len(jobs) == 0:
	case kind == 15:
		return CouldNotStart{Node: rapid.SampledFrom(jobs).Draw(t, "job"), Reason: "why not"}
	default:
		n := rapid.SampledFrom(jobs).Draw(t, "job")
		return Ended{
			Node: n, Try: w.m.Node(n).Try - rapid.IntRange(0, 9).Draw(t, "late")/9, Attempt: rapid.IntRange(0, 3).Draw(t, "attempt"),
			Outcome: rapid.SampledFrom([]Outcome{JobSucceeded, JobSucceeded, JobSucceeded, JobFailed, JobKilled, JobCancelled}).Draw(t, "outcome"),
			Outputs: randomOutputs(t),
		}
	}
	return Resume{}
}

func randomOutputs(t *rapid.T) map[string]string {
	return rapid.SampledFrom([]map[string]string{
		nil, {"x": "1", "list": `["p"]`}, {"x": "2", "list": `[]`}, {"list": `["p","q","r"]`}, {"x": "1", "list": "none"},
	}).Draw(t, "outputs")
}

// apply applies an event in all ways, and compares.
func (w *world) apply(t *rapid.T, event Event) {
	before := cloneNodes(w.m.nodes)
	run := w.m.Run()
	again, err := w.plan.Machine(run, cloneNodes(before))
	if err != nil {
		t.Fatal(err)
	}
	got := w.m.Apply(event)
	if want := again.Apply(event); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(w.m.nodes, again.nodes) {
		t.Fatalf("%#v: a machine made anew decides otherwise\n%+v\n%+v", event, got, want)
	}
	for _, retry := range got.Retry {
		w.due[retry.Node] = retry
	}
	w.checkChanged(t, event, before, got)

	x := newNaive(w.plan.flow, run, before)
	switch event.(type) {
	case RetryFailed, RetryFlow, Rerun, MarkSucceeded:
		// Only that nothing is left to decide.
		x = newNaive(w.plan.flow, w.m.Run(), w.m.nodes)
		x.apply(nil)
		if len(x.starts) > 0 {
			t.Fatalf("%#v: %v could start", event, x.starts)
		}
	default:
		_, isKill := event.(Kill)
		mayFail := !isKill && !x.killing && !x.failing(Top)
		x.apply(event)
		if got.FirstFailure != None != (mayFail && x.failing(Top)) {
			t.Fatalf("%#v: the first failure is told as %d", event, got.FirstFailure)
		}
		slices.Sort(x.starts)
		if !slices.Equal(x.starts, got.Start) || !slices.Equal(x.cancels, got.Cancel) {
			t.Fatalf("%#v: starts %v and cancels %v, should be %v, %v", event, got.Start, got.Cancel, x.starts, x.cancels)
		}
	}
	if x.status() != w.m.Run().Status {
		t.Fatalf("%#v: the run is %s, should be %s", event, w.m.Run().Status, x.status())
	}
	for n := range x.nodes {
		is, should := w.m.nodes[n], x.nodes[n]
		if is.Status != should.Status || is.Try != should.Try || is.Attempt != should.Attempt || is.Item != should.Item || !maps.Equal(is.Outputs, should.Outputs) || is.Held != should.Held {
			t.Fatalf("%#v: %s is\n%+v, should be\n%+v", event, w.m.Path(n), is, should)
		}
	}
}

// queue has a run that has ended wait for its turn to go on.
func (w *world) queue(t *rapid.T) {
	run := w.m.Run()
	run.Status = rapid.SampledFrom([]Status{Preparing, Queued}).Draw(t, "waits as")
	m, err := w.plan.Machine(run, cloneNodes(w.m.nodes))
	if err != nil {
		t.Fatal(err)
	}
	w.m = m
}

// checkChanged: what changed is in the effects, each row once.
func (w *world) checkChanged(t *rapid.T, event Event, before []Node, got Effects) {
	told := slices.Concat(got.Changed, got.New)
	slices.Sort(told)
	if len(slices.Compact(slices.Clone(told))) != len(told) {
		t.Fatalf("%#v: rows are told twice: %v", event, told)
	}
	for n := range w.m.nodes {
		if n >= len(before) != slices.Contains(got.New, n) {
			t.Fatalf("%#v: row %d is new, or is not: %v", event, n, got.New)
		}
		if n < len(before) && !reflect.DeepEqual(before[n], w.m.nodes[n]) && !slices.Contains(got.Changed, n) {
			t.Fatalf("%#v: row %d changed\n%+v\n%+v", event, n, before[n], w.m.nodes[n])
		}
		if w.m.Why(n) == "" {
			t.Fatalf("%#v: row %d does not say why", event, n)
		}
	}
}

// finish lets everything end that can, and requires that everything does.
func (w *world) finish(t *rapid.T) {
	for range 1000 {
		if w.m.Run().Status.Ended() {
			for n := range w.m.nodes {
				if !w.m.nodes[n].Status.Ended() {
					t.Fatalf("the run has ended, and %s is %s", w.m.Path(n), w.m.nodes[n].Status)
				}
			}
			if w.m.RunningJobs() != 0 {
				t.Fatalf("the run has ended with %d jobs", w.m.RunningJobs())
			}
			return
		}
		if status := w.m.Run().Status; status == Preparing || status == Queued {
			w.apply(t, Begin{})
		}
		if w.m.Run().Status == Paused {
			w.apply(t, Resume{})
		}
		for n := range w.m.Len() {
			switch {
			case w.m.Node(n).Held != "":
				w.apply(t, Release{Node: n})
			case w.m.hasJob(n):
				outcome := rapid.SampledFrom([]Outcome{JobSucceeded, JobFailed, JobKilled}).Draw(t, "outcome")
				w.apply(t, Ended{Node: n, Try: w.m.Node(n).Try, Outcome: outcome})
			default:
				if retry, found := w.due[n]; found {
					delete(w.due, n)
					w.apply(t, RetryDue(retry))
				}
			}
		}
	}
	t.Fatalf("the run does not end: %s", w.m.Run().Status)
}
