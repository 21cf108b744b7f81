package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Why says in a sentence for people why a node has not started, what it waits for, or why it ended as it did.
func (m *Machine) Why(n int) string {
	node := &m.nodes[n]
	switch status := node.Status; {
	case status.Ended():
		if node.Reason == "" {
			return "it has ended: " + string(status)
		}
		return node.Reason
	case status.fresh():
		return m.whyNotStarted(n)
	case status == Killing:
		return "it is being killed: " + cmpOr(cmpOr(m.whyStopped(n), node.Reason), "the run was killed")
	case m.isScope(n) && m.counts[n].left == 0:
		return fmt.Sprintf("it failed and waits for its retry %d of %d", node.Attempt+1, m.Spec(n).Retry.Max)
	case m.isScope(n):
		total := len(m.contents(n))
		return fmt.Sprintf("%d of %s ended", total-m.counts[n].left, quantity.Say(total, "1 node in it has", "%d nodes in it have"))
	default:
		return "its job waits in its queue or runs"
	}
}

// WhyRun says in a sentence for people how the run stands, or why it ended as it did.
func (m *Machine) WhyRun() string {
	switch {
	case m.over != "":
		return cmpOr(m.reason, m.whyOver(Top, m.over))
	case m.killing:
		return "it is being killed: " + cmpOr(m.reason, "the run was killed")
	}
	total := len(m.plan.top)
	stands := fmt.Sprintf("it is %s: %d of %s ended", m.status(), total-m.top.left, quantity.Say(total, "1 node has", "%d nodes have"))
	if m.top.failing > 0 {
		stands += "; " + m.failures(Top)
	}
	return stands
}

// whyOver says what made a scope end as it did in which everything has ended. The order is that of verdict.
func (m *Machine) whyOver(scope int, status Status) string {
	in := m.at(scope)
	switch {
	case m.killing:
		return "the run was killed"
	case status == Failed:
		return m.failures(scope)
	case in.badEnds == 0 && status == Succeeded:
		return "every end node has succeeded or was skipped"
	case in.badEnds == 0:
		return "the run was killed"
	case in.killed > 0:
		return m.nameSome(m.these(scope, func(n int) bool { return m.nodes[n].Status == Killed && !m.isTolerated(n) }), "was killed", "were killed")
	}
	if scope != Top && m.settings.OnCancelledEnd != graph.EndKilled {
		return "another node had failed before it ended"
	}
	ends := m.these(scope, func(n int) bool {
		return m.nodes[n].Status.Failure() && (m.isInstance(n) || len(m.plan.children[n]) == 0)
	})
	text := "end node %s was cancelled by its condition"
	if len(ends) > 1 {
		text = "end nodes %s were cancelled by their conditions"
	}
	return fmt.Sprintf(text+"; on_cancelled_end: %s", m.names(ends), m.settings.OnCancelledEnd)
}

// failures names what failed in a scope, as deep inside as it is known.
func (m *Machine) failures(scope int) string {
	var failed []int
	for scopes := []int{scope}; len(scopes) > 0; {
		at := scopes[0]
		scopes = scopes[1:]
		for _, n := range m.these(at, m.isFailure) {
			if m.isScope(n) && m.counts[n].failing > 0 && !m.timedOut(n) {
				scopes = append(scopes, n)
			} else {
				failed = append(failed, n)
			}
		}
	}
	return m.nameSome(failed, "failed", "failed")
}

// these are the nodes directly in a scope of which something is true.
func (m *Machine) these(scope int, is func(n int) bool) []int {
	return slices.DeleteFunc(slices.Clone(m.contents(scope)), func(n int) bool { return !is(n) })
}

// nameSome names nodes and what became of them: of a single one with its reason.
func (m *Machine) nameSome(nodes []int, one, many string) string {
	switch len(nodes) {
	case 0:
		return "a node " + one
	case 1:
		text := m.Path(nodes[0]) + " " + one
		if why := m.nodes[nodes[0]].Reason; why != "" {
			text += ": " + why
		}
		return text
	}
	return m.names(nodes) + " " + many
}

// names lists the paths of nodes, the first few.
func (m *Machine) names(nodes []int) string {
	const limit = 5
	var paths []string
	for _, n := range nodes[:min(limit, len(nodes))] {
		paths = append(paths, m.Path(n))
	}
	if len(nodes) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(paths, ", "), len(nodes)-limit)
	}
	if last := len(paths) - 1; last > 0 {
		return strings.Join(paths[:last], ", ") + " and " + paths[last]
	}
	return strings.Join(paths, "")
}

func (m *Machine) whyNotStarted(n int) string {
	// What a node is in comes first, from the outermost.
	var around []int
	for scope := m.scopeOf(n); scope != Top; scope = m.scopeOf(scope) {
		around = append(around, scope)
	}
	switch {
	case m.over != "":
		return fmt.Sprintf("the run has ended: %s", m.over)
	case !m.begun:
		return fmt.Sprintf("the run is %s", m.status())
	}
	for _, scope := range slices.Backward(around) {
		if m.nodes[scope].Status.fresh() {
			return fmt.Sprintf("%s, which it is in, has not started: %s", m.Path(scope), m.whyWaits(scope))
		}
	}
	return m.whyWaits(n)
}

// whyWaits says what a node waits for that nothing around it keeps from starting.
func (m *Machine) whyWaits(n int) string {
	held := ""
	if by := m.nodes[n].Held; by != "" {
		held = "held by " + by
	}
	switch {
	case m.counts[n].pending > 0 && held != "":
		return m.waitsFor(n) + ", and is " + held
	case m.counts[n].pending > 0:
		return m.waitsFor(n)
	case held != "":
		return held
	case m.paused:
		return "the run is paused"
	case m.running >= m.settings.MaxParallel:
		return fmt.Sprintf("%d of %d jobs at a time", m.running, m.settings.MaxParallel)
	default:
		return "it is about to start"
	}
}

// waitsFor names the parents that have not ended.
func (m *Machine) waitsFor(n int) string {
	const limit = 5
	var names []string
	for _, parent := range m.plan.flow.Nodes[n].Parents {
		if m.nodes[parent].Status.Ended() {
			continue
		}
		if len(names) == limit {
			return fmt.Sprintf("waits for %s and %d more", strings.Join(names, ", "), m.counts[n].pending-limit)
		}
		names = append(names, m.Path(parent))
	}
	return "waits for " + strings.Join(names, ", ")
}
