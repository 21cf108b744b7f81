package decide

import (
	"fmt"
	"slices"
	"strings"
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
		return fmt.Sprintf("%d of %d nodes in it have ended", total-m.counts[n].left, total)
	default:
		return "its job waits in its queue or runs"
	}
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
