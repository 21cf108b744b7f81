package decide

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/peltonq/pelton/jobs/flow/internal/cond"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// naive decides from the rows alone, looking at everything again and again. It is slow and plain: what the machine does is checked
// against it.
type naive struct {
	flow    *graph.Flow
	run     Run
	nodes   []Node
	killing bool
	paused  bool
	begun   bool
	over    Status
	starts  []int
	cancels []int
}

func newNaive(flow *graph.Flow, run Run, nodes []Node) *naive {
	x := &naive{flow: flow, run: run, nodes: cloneNodes(nodes)}
	x.begun = run.Status != Preparing && run.Status != Queued
	x.paused, x.killing = run.Status == Paused, run.Status == Killing
	if run.Status.Ended() {
		x.over = run.Status
	}
	return x
}

func (x *naive) spec(n int) graph.Node {
	if n >= len(x.flow.Nodes) {
		return x.flow.Nodes[x.nodes[n].Template]
	}
	return x.flow.Nodes[n]
}

func (x *naive) instance(n int) bool  { return n >= len(x.flow.Nodes) }
func (x *naive) container(n int) bool { return !x.instance(n) && x.spec(n).Type == graph.TypeFlow }
func (x *naive) template(n int) bool  { return !x.instance(n) && x.spec(n).ForEach != nil }

func (x *naive) scope(n int) int {
	if x.instance(n) {
		return x.nodes[n].Template
	}
	return x.spec(n).Container
}

func (x *naive) in(scope int) (members []int) {
	for n := range x.nodes {
		if x.scope(n) == scope && (x.instance(n) || scope == Top || x.container(scope)) {
			members = append(members, n)
		}
	}
	return members
}

func (x *naive) children(n int) (children []int) {
	for c := range x.flow.Nodes {
		if !x.instance(n) && slices.Contains(x.flow.Nodes[c].Parents, n) {
			children = append(children, c)
		}
	}
	return children
}

func (x *naive) tolerated(n int) bool {
	children := x.children(n)
	for _, c := range children {
		if expr, _ := cond.Parse(x.flow.Nodes[c].Condition); expr.Macro() == cond.AllSuccess {
			return false
		}
	}
	return len(children) > 0
}

func (x *naive) retries(n int) bool {
	return x.container(n) && x.nodes[n].Attempt < x.spec(n).Retry.Max
}

// fails says whether a node counts as a failure in what it is in.
func (x *naive) fails(n int) bool {
	switch {
	case x.tolerated(n):
		return false
	case x.nodes[n].Status == Failed:
		return true
	case !x.container(n) && !x.template(n), !x.nodes[n].Status.active(), x.retries(n), x.spec(n).SucceedOnFailure:
		return false
	default:
		return x.failing(n)
	}
}

func (x *naive) failing(scope int) bool { return slices.ContainsFunc(x.in(scope), x.fails) }

func (x *naive) stopped(scope int) bool {
	switch {
	case x.run.Settings.OnFailure == graph.FinishPossible:
		return false
	case scope == Top:
		return x.failing(Top)
	case x.container(scope) && x.failing(scope):
		return true
	default:
		return x.stopped(x.scope(scope))
	}
}

func (x *naive) open(scope int) bool {
	if scope == Top {
		return x.begun && x.over == ""
	}
	return x.begun && x.nodes[scope].Status.active()
}

func (x *naive) job(n int) bool {
	return !x.container(n) && !x.template(n) && x.spec(n).Type != graph.TypeNoop
}

// judgeable says whether a node has not started and has no parent that has not ended.
func (x *naive) judgeable(n int) bool {
	if !x.nodes[n].Status.fresh() || !x.open(x.scope(n)) {
		return false
	}
	return x.instance(n) || !slices.ContainsFunc(x.spec(n).Parents, func(p int) bool { return !x.nodes[p].Status.Ended() })
}

func (x *naive) holds(n int) bool {
	if x.instance(n) {
		return true
	}
	var parents cond.Parents
	for _, p := range x.spec(n).Parents {
		if x.nodes[p].Status.Success() {
			parents.Succeeded++
		} else {
			parents.Failed++
		}
	}
	expr, _ := cond.Parse(x.spec(n).Condition)
	holds, _ := expr.Eval(parents, func(job, name string) (string, bool) {
		for m := range x.flow.Nodes {
			path := job
			if c := x.spec(n).Container; c != Top {
				path = x.flow.Nodes[c].Path + ":" + job
			}
			if x.flow.Nodes[m].Path == path && x.nodes[m].Status.Ended() {
				value, found := x.nodes[m].Outputs[name]
				if !found && x.emptyList(m) {
					return "[]", true
				}
				return value, found
			}
		}
		return "", false
	})
	return holds
}

// set ends or starts a node, and with one that will not start what is in it.
func (x *naive) set(n int, status Status) {
	if status == Failed && x.spec(n).SucceedOnFailure {
		status = FailedSucceeded
	}
	x.nodes[n].Status = status
	if status == Cancelled || status == Skipped {
		for _, in := range x.in(n) {
			if (x.container(n) || x.template(n)) && !x.nodes[in].Status.Ended() {
				x.set(in, status)
			}
		}
	}
}

func (x *naive) verdict(scope int) Status {
	bad, killed := false, false
	for _, n := range x.in(scope) {
		status := x.nodes[n].Status
		bad = bad || status.Failure() && len(x.children(n)) == 0
		killed = killed || status == Killed && !x.tolerated(n)
	}
	switch {
	case scope == Top && x.killing:
		return Killed
	case x.failing(scope):
		return Failed
	case !bad:
		return Succeeded
	case x.killing, killed, x.run.Settings.OnCancelledEnd == graph.EndKilled, scope != Top && x.stopped(x.scope(scope)):
		return Killed
	default:
		return Succeeded
	}
}

// step does the first thing that is to be done, and says whether there was one.
func (x *naive) step() bool {
	if x.run.Settings.OnFailure == graph.CancelAll && !x.killing && x.open(Top) && x.failing(Top) {
		x.kill()
		return true
	}
	for n := range x.nodes {
		switch {
		case !x.judgeable(n):
			continue
		case x.nodes[n].Status == Disabled:
			x.set(n, Skipped)
		case x.killing, x.stopped(x.scope(n)), !x.holds(n):
			x.set(n, Cancelled)
		default:
			continue
		}
		return true
	}
	for scope := len(x.flow.Nodes) - 1; scope >= Top; scope-- {
		if x.close(scope) {
			return true
		}
	}
	if x.killing || x.paused {
		return false
	}
	for n := range x.nodes {
		if x.judgeable(n) && !x.job(n) && x.nodes[n].Held == "" {
			x.pass(n)
			return true
		}
	}
	running := 0
	for n := range x.nodes {
		if x.job(n) && x.nodes[n].Status.active() {
			running++
		}
	}
	for n := range x.nodes {
		if running < x.run.Settings.MaxParallel && x.judgeable(n) && x.nodes[n].Held == "" {
			x.nodes[n].Status, x.nodes[n].Attempt, x.nodes[n].Outputs = Queued, 0, nil
			x.starts = append(x.starts, n)
			return true
		}
	}
	return false
}

// close ends a scope in which everything has ended.
func (x *naive) close(scope int) bool {
	if !x.open(scope) || scope != Top && !x.container(scope) && !x.template(scope) {
		return false
	}
	if slices.ContainsFunc(x.in(scope), func(n int) bool { return !x.nodes[n].Status.Ended() }) {
		return false
	}
	status := x.verdict(scope)
	if scope == Top {
		x.over = status
		return true
	}
	if status == Failed && x.retries(scope) && !x.killing && !x.stopped(x.scope(scope)) {
		return false
	}
	x.nodes[scope].Outputs = x.outputs(scope)
	x.set(scope, status)
	return true
}

// emptyList says whether a node's outputs are lists without elements.
func (x *naive) emptyList(n int) bool {
	if x.nodes[n].Status != Succeeded {
		return false
	}
	live, empty := 0, false
	for _, in := range x.in(n) {
		if x.nodes[in].Status != Skipped {
			live++
		}
		empty = empty || len(x.children(in)) == 0 && x.emptyList(in)
	}
	return x.template(n) && live == 0 || x.container(n) && empty
}

// outputs puts together what a scope gives.
func (x *naive) outputs(scope int) map[string]string {
	all := map[string]string{}
	for _, n := range x.in(scope) {
		if x.container(scope) && len(x.children(n)) == 0 {
			maps.Copy(all, x.nodes[n].Outputs)
		}
	}
	for _, key := range []string{"x", "list"} {
		var values []any
		some := false
		for _, n := range x.in(scope) {
			if value, found := x.nodes[n].Outputs[key]; found {
				values = append(values, value)
				some = true
			} else if x.nodes[n].Status != Skipped {
				values = append(values, nil)
			}
		}
		if x.template(scope) && some {
			list, _ := json.Marshal(values)
			all[key] = string(list)
		}
	}
	return all
}

func (x *naive) pass(n int) {
	x.nodes[n].Attempt, x.nodes[n].Outputs = 0, nil
	switch {
	case x.container(n):
		x.nodes[n].Status = Running
	case x.template(n):
		x.nodes[n].Status = Running
		x.expand(n)
	default:
		x.nodes[n].Status = Succeeded
	}
}

func (x *naive) expand(n int) {
	each := x.spec(n).ForEach
	items := each.Items
	if each.Node != "" {
		var err error
		value := ""
		for _, p := range x.spec(n).Parents {
			if path := x.flow.Nodes[p].Path; path == each.Node || path[max(0, len(path)-len(each.Node)-1):] == ":"+each.Node {
				var found bool
				if value, found = x.nodes[p].Outputs[each.Key]; !found && x.emptyList(p) {
					value = "[]"
				}
			}
		}
		if items, err = parseItems(value); err != nil {
			for _, in := range x.in(n) {
				x.nodes[in].Status = Skipped
			}
			x.set(n, Failed)
			return
		}
	}
	old := x.in(n)
	for i, item := range items {
		if i < len(old) {
			x.nodes[old[i]].Item = item
			continue
		}
		x.nodes = append(x.nodes, Node{Status: Ready, Try: x.nodes[n].Try, Template: n, Index: i, Item: item})
	}
	for _, gone := range old[min(len(items), len(old)):] {
		x.nodes[gone].Status = Skipped
	}
}

func (x *naive) kill() {
	x.killing, x.paused, x.begun = true, false, true
	for n := range x.nodes {
		if x.nodes[n].Status.active() {
			x.nodes[n].Status = Killing
			if x.job(n) {
				x.cancels = append(x.cancels, n)
			}
		}
	}
}

// apply takes in an event of those that a person does not make, or makes none of if nil, and settles.
func (x *naive) apply(event Event) {
	switch e := event.(type) {
	case Begin:
		x.begun = true
	case Pause:
		x.paused = x.paused || x.open(Top) && !x.killing
	case Resume:
		x.paused = false
	case Kill:
		if x.over == "" {
			x.kill()
		}
	case Hold:
		if x.nodes[e.Node].Status.fresh() {
			x.nodes[e.Node].Held = e.By
		}
	case Release:
		x.nodes[e.Node].Held = ""
	case CouldNotStart:
		if x.job(e.Node) && x.nodes[e.Node].Status.active() {
			x.set(e.Node, Failed)
		}
	case Ended:
		x.end(e)
	case RetryDue:
		x.retry(e)
	}
	for x.step() {
	}
}

func (x *naive) end(e Ended) {
	if !x.job(e.Node) || !x.nodes[e.Node].Status.active() || x.nodes[e.Node].Try != e.Try {
		return
	}
	x.nodes[e.Node].Attempt, x.nodes[e.Node].Outputs = e.Attempt, e.Outputs
	killing := x.nodes[e.Node].Status == Killing
	switch {
	case e.Outcome == JobSucceeded:
		x.set(e.Node, Succeeded)
	case e.Outcome == JobFailed && !killing:
		x.set(e.Node, Failed)
	case e.Outcome == JobCancelled && killing:
		x.set(e.Node, Cancelled)
	default:
		x.set(e.Node, Killed)
	}
}

func (x *naive) retry(e RetryDue) {
	all := !slices.ContainsFunc(x.in(e.Node), func(n int) bool { return !x.nodes[n].Status.Ended() })
	node := &x.nodes[e.Node]
	if !node.Status.active() || !all || !x.failing(e.Node) || node.Try != e.Try || node.Attempt+1 != e.Attempt {
		return
	}
	node.Attempt++
	for n := range x.nodes {
		inside := false
		for scope := x.scope(n); scope != Top; scope = x.scope(scope) {
			inside = inside || scope == e.Node
		}
		if inside {
			status := Ready
			if x.nodes[n].Status == Skipped && !x.instance(n) {
				status = Disabled
			}
			x.nodes[n].Status, x.nodes[n].Attempt, x.nodes[n].Outputs = status, 0, nil
			x.nodes[n].Try++
		}
	}
}

func (x *naive) status() Status {
	switch {
	case x.over != "":
		return x.over
	case x.killing:
		return Killing
	case !x.begun:
		return x.run.Status
	case x.paused:
		return Paused
	case x.failing(Top):
		return FailedFinishing
	default:
		return Running
	}
}
