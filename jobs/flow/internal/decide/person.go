package decide

import (
	"fmt"
	"slices"
)

func (Pause) apply(m *Machine) string {
	switch {
	case !m.isOpen(Top):
		return fmt.Sprintf("the run is %s: only one that runs can be paused", m.status())
	case m.killing:
		return "the run is being killed"
	}
	m.paused = true
	return ""
}

func (Resume) apply(m *Machine) string {
	if !m.paused {
		return fmt.Sprintf("the run is %s, not PAUSED", m.status())
	}
	m.paused = false
	return ""
}

func (e Kill) apply(m *Machine) string {
	if m.over != "" {
		return fmt.Sprintf("the run has ended: %s", m.over)
	}
	m.start()
	m.kill(e.Reason)
	return ""
}

// continues says why nodes of the run cannot be started over now; "" if they can.
func (m *Machine) continues() string {
	switch {
	case !m.begun && !slices.ContainsFunc(m.nodes, func(n Node) bool { return n.Status.Ended() }):
		return fmt.Sprintf("the run is %s: nothing has started yet", m.status())
	case m.killing && m.over == "":
		return "the run is being killed: wait until it is KILLED"
	default:
		return ""
	}
}

// reopen lets the run go on with the rows as they were changed.
func (m *Machine) reopen() {
	m.reopened = m.reopened || m.over != ""
	m.over, m.killing, m.reason = "", false, ""
	m.count()
}

func (RetryFailed) apply(m *Machine) string {
	if reason := m.continues(); reason != "" {
		return reason
	}
	// A run that was killed when everything in it had just succeeded has nothing to start over, and has succeeded then.
	if m.over == Succeeded || m.refreshFailed() == 0 && m.over == "" && m.begun {
		return "no node has failed, was killed or cancelled"
	}
	m.reopen()
	return ""
}

// refreshFailed starts over what did not succeed, and returns how many nodes that are. It does not look into what succeeded.
func (m *Machine) refreshFailed() int {
	found := 0
	for scopes := []int{Top}; len(scopes) > 0; {
		scope := scopes[len(scopes)-1]
		scopes = scopes[:len(scopes)-1]
		for _, n := range m.contents(scope) {
			status := m.nodes[n].Status
			switch {
			case m.isScope(n) && (status == Failed || status == Killed) && m.failedInside(n):
				m.reopenScope(n)
				scopes = append(scopes, n)
				found++
			case m.isScope(n) && status.active():
				scopes = append(scopes, n)
			case status.Failure():
				m.refreshAll(n)
				found++
			}
		}
	}
	return found
}

// failedInside says whether something directly in a scope did not succeed.
func (m *Machine) failedInside(scope int) bool {
	return slices.ContainsFunc(m.contents(scope), func(n int) bool { return m.nodes[n].Status.Failure() })
}

// refreshAll starts over a node and whatever is in it.
func (m *Machine) refreshAll(n int) {
	m.refresh(n)
	m.inside(n, m.refresh)
}

// reopenScope makes an embedded flow or a for_each that had ended one that runs.
func (m *Machine) reopenScope(n int) {
	node := m.change(n)
	node.Status, node.Attempt, node.Outputs, node.Reason = Running, 0, nil, ""
	node.Try++
	m.limitTime(n)
}

func (e RetryFlow) apply(m *Machine) string {
	if e.Node < 0 || e.Node >= len(m.nodes) || !m.isContainer(e.Node) && !m.isInstance(e.Node) {
		return "it is neither an embedded flow nor an instance of a for_each: rerun from the node instead"
	}
	return Rerun{Nodes: []int{e.Node}}.apply(m)
}

func (e Rerun) apply(m *Machine) string {
	if reason := m.continues(); reason != "" {
		return reason
	}
	again := make([]bool, len(m.nodes))
	for _, n := range e.Nodes {
		if n < 0 || n >= len(m.nodes) {
			return fmt.Sprintf("the run has no node number %d", n)
		}
		if reason := m.notReached(n); reason != "" {
			return reason
		}
		m.markAfter(n, again)
	}
	for n, is := range again {
		if is && m.nodes[n].Status.active() && !m.isScope(n) {
			return fmt.Sprintf("%s runs: kill it or wait until it has ended", m.Path(n))
		}
	}
	for n, is := range again {
		if is {
			m.refresh(n)
		}
	}
	for _, n := range e.Nodes {
		m.reopenAbove(n)
	}
	m.refreshFailed()
	m.reopen()
	return ""
}

// notReached says which embedded flow around a node has not started, so that the node cannot be dealt with alone.
func (m *Machine) notReached(n int) string {
	for scope := m.scopeOf(n); scope != Top; scope = m.scopeOf(scope) {
		switch s := m.nodes[scope].Status; {
		case s.fresh(), s == Cancelled, s == Skipped:
			return fmt.Sprintf("%s is in %s, which is %s", m.Path(n), m.Path(scope), s)
		}
	}
	return ""
}

// markAfter marks a node, all that depends on it, inside and around the embedded flows it is in, and whatever is in those.
func (m *Machine) markAfter(n int, marked []bool) {
	mark := func(n int) { marked[n] = true }
	for stack := []int{n}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !marked[n] {
			mark(n)
			m.inside(n, mark)
		}
		for at := n; at != Top; at = m.scopeOf(at) {
			if m.isInstance(at) {
				continue
			}
			for _, child := range m.plan.children[at] {
				if !marked[child] {
					mark(child)
					m.inside(child, mark)
					stack = append(stack, child)
				}
			}
		}
	}
}

// reopenAbove makes what a node is in run again if it had ended.
func (m *Machine) reopenAbove(n int) {
	for scope := m.scopeOf(n); scope != Top; scope = m.scopeOf(scope) {
		if m.nodes[scope].Status.Ended() {
			m.reopenScope(scope)
		}
	}
}

func (e MarkSucceeded) apply(m *Machine) string {
	if e.Node < 0 || e.Node >= len(m.nodes) {
		return fmt.Sprintf("the run has no node number %d", e.Node)
	}
	node := &m.nodes[e.Node]
	switch {
	case m.killing && m.over == "":
		return "the run is being killed: wait until it is KILLED"
	case node.Status.Success():
		return fmt.Sprintf("%s is %s already", m.Path(e.Node), node.Status)
	case node.Status.active() && (!m.isScope(e.Node) || m.counts[e.Node].left > 0):
		return fmt.Sprintf("%s runs: kill it or wait until it has ended", m.Path(e.Node))
	case m.notReached(e.Node) != "":
		return m.notReached(e.Node)
	}
	m.change(e.Node)
	reason := "marked as succeeded by " + cmpOr(e.By, "a person")
	if node.Status.Ended() {
		reason += ", was " + string(node.Status)
		if node.Reason != "" {
			reason += ": " + node.Reason
		}
	}
	node.Status, node.Outputs, node.Reason = Succeeded, e.Outputs, reason
	m.endInside(e.Node, Cancelled, "what it is in was marked as succeeded")
	m.reopenAbove(e.Node)
	m.refreshCancelled()
	m.reopen()
	return ""
}

// refreshCancelled lets nodes that were cancelled be decided on again, in everything that runs.
func (m *Machine) refreshCancelled() {
	for scopes := []int{Top}; len(scopes) > 0; {
		scope := scopes[len(scopes)-1]
		scopes = scopes[:len(scopes)-1]
		for _, n := range m.contents(scope) {
			switch status := m.nodes[n].Status; {
			case status == Cancelled:
				m.refreshAll(n)
			case m.isScope(n) && status.active():
				scopes = append(scopes, n)
			}
		}
	}
}
