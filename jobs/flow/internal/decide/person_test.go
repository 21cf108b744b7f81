package decide

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// plain makes a random world without conditions, lists and disabled nodes, and begins it.
func plain(t *rapid.T) *world {
	flow := &graph.Flow{Name: "random"}
	names := map[int]int{}
	for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
		node := randomNode(t, flow, names, i)
		node.Condition, node.ForEach, node.SucceedOnFailure, node.Retry = "", nil, false, graph.Retry{}
		flow.Nodes = append(flow.Nodes, node)
	}
	plan, err := NewPlan(flow)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := plan.NewNodes()
	if err != nil {
		t.Fatal(err)
	}
	action := rapid.SampledFrom([]graph.OnFailure{graph.FinishCurrent, graph.CancelAll, graph.FinishPossible}).Draw(t, "on failure")
	m, err := plan.Machine(Run{Status: Preparing, Settings: Settings{OnFailure: action, MaxParallel: 3}}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{plan: plan, m: m, due: map[int]Retry{}}
	w.apply(t, Begin{})
	return w
}

// play ends all jobs until none is left.
func (w *world) play(t *rapid.T, outcome func(n int) Outcome) {
	for w.m.RunningJobs() > 0 {
		for n := range w.m.Len() {
			if w.m.hasJob(n) {
				w.apply(t, Ended{Node: n, Try: w.m.Node(n).Try, Outcome: outcome(n)})
			}
		}
	}
}

func succeeds(int) Outcome { return JobSucceeded }

// TestRetryFailedFinishes: whatever failed or was killed, and whenever, after a retry in which nothing fails everything has succeeded, and
// no job that had succeeded before has run again.
func TestRetryFailedFinishes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := plain(t)
		kill := rapid.IntRange(0, 20).Draw(t, "kill after")
		w.play(t, func(int) Outcome {
			if kill--; kill == 0 {
				w.apply(t, Kill{})
			}
			return rapid.SampledFrom([]Outcome{JobSucceeded, JobSucceeded, JobFailed, JobKilled, JobCancelled}).Draw(t, "outcome")
		})
		before := cloneNodes(w.m.nodes)
		if w.m.Run().Status != Succeeded {
			later := w.m.Run().Status.Ended() && rapid.Bool().Draw(t, "goes on later")
			if later {
				w.queue(t)
			}
			w.apply(t, RetryFailed{})
			if later && w.m.RunningJobs() > 0 {
				t.Fatal("jobs start before the run goes on")
			}
			w.apply(t, Begin{})
		}
		w.play(t, succeeds)
		if w.m.Run().Status != Succeeded {
			t.Fatalf("after a retry in which nothing fails the run is %s", w.m.Run().Status)
		}
		for n, was := range before {
			is := w.m.nodes[n]
			if is.Status != Succeeded {
				t.Fatalf("%s is %s", w.m.Path(n), is.Status)
			}
			if was.Status == Succeeded && is.Try != was.Try {
				t.Fatalf("%s had succeeded and was started over", w.m.Path(n))
			}
		}
	})
}

// TestRerunIsWhatDepends: of a run that succeeded, a rerun starts over the node, what is in it and what depends on it, found here by
// looking at every pair of nodes again and again; and nothing else.
func TestRerunIsWhatDepends(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := plain(t)
		w.play(t, succeeds)
		nodes := w.plan.flow.Nodes
		from := rapid.IntRange(0, len(nodes)-1).Draw(t, "from")
		isIn := func(n, container int) bool {
			for ; n != Top; n = nodes[n].Container {
				if n == container {
					return true
				}
			}
			return false
		}
		again := map[int]bool{from: true}
		for grows := true; grows; {
			grows = false
			for n := range nodes {
				for a := range again {
					depends := isIn(n, a)
					for _, parent := range nodes[n].Parents {
						depends = depends || isIn(a, parent)
					}
					if depends && !again[n] {
						again[n], grows = true, true
					}
				}
			}
		}
		w.apply(t, Rerun{Nodes: []int{from}})
		w.play(t, succeeds)
		for n := range nodes {
			is := w.m.nodes[n]
			around := !again[n] && isIn(from, n) // it goes on, but does not start over
			if is.Status != Succeeded || is.Try > 0 != (again[n] || around) {
				t.Fatalf("%s is %s, try %d; it is among what starts over: %v", w.m.Path(n), is.Status, is.Try, again[n])
			}
		}
	})
}
