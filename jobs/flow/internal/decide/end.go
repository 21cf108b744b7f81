package decide

import (
	"fmt"
	"maps"
	"slices"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs/flow/internal/cond"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// end brings a node to its end, and counts that in what it is in and in its children.
func (m *Machine) end(n int, status Status, reason string) {
	node := m.change(n)
	if node.Status.active() && !m.isScope(n) && m.Spec(n).Type != graph.TypeNoop {
		m.running--
	}
	node.Status, node.Reason = status, reason
	if status == Failed && m.Spec(n).SucceedOnFailure {
		node.Status = FailedSucceeded
	}
	scope := m.scopeOf(n)
	in := m.at(scope)
	in.left--
	m.countEnd(n, in)
	m.fail(n)
	if in.left == 0 {
		m.closing = append(m.closing, scope)
	}
	if m.isInstance(n) {
		return
	}
	for _, child := range m.plan.children[n] {
		c := &m.counts[child]
		c.pending--
		if node.Status.Success() {
			c.succeeded++
		} else {
			c.failed++
		}
		if c.pending == 0 {
			m.judged = append(m.judged, child)
		}
	}
}

// fail counts a node's failure, if it is one, in what it is in, and that one's in turn.
func (m *Machine) fail(origin int) {
	for n := origin; !m.counts[n].counted && m.isFailure(n); {
		m.counts[n].counted = true
		n = m.scopeOf(n)
		in := m.at(n)
		if in.failing++; in.failing > 1 {
			return
		}
		m.flush = true
		if n == Top {
			if m.effects.FirstFailure == None && !m.killing {
				m.effects.FirstFailure = origin
			}
			return
		}
	}
}

// cancel ends a node that has not started, with whatever is in it.
func (m *Machine) cancel(n int, reason string) {
	m.endInside(n, Cancelled, "what it is in was cancelled")
	m.end(n, Cancelled, reason)
}

// endInside ends what is in a node that will not start. Nobody else waits for it, so nothing is counted.
func (m *Machine) endInside(n int, status Status, reason string) {
	m.inside(n, func(in int) {
		if !m.nodes[in].Status.Ended() {
			node := m.change(in)
			node.Status, node.Reason = status, reason
		}
	})
}

// inside calls a function for everything that is in a node, at any depth.
func (m *Machine) inside(n int, do func(in int)) {
	if !m.isScope(n) {
		return
	}
	for stack := []int{n}; len(stack) > 0; {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, in := range m.contents(top) {
			do(in)
			if m.isScope(in) {
				stack = append(stack, in)
			}
		}
	}
}

// contents returns what is directly in a scope.
func (m *Machine) contents(scope int) []int {
	switch {
	case scope == Top:
		return m.plan.top
	case m.isTemplate(scope):
		return m.instances[scope]
	default:
		return m.plan.members[scope]
	}
}

// parents counts how a node's parents ended.
func (m *Machine) parents(n int) cond.Parents {
	return cond.Parents{Succeeded: m.counts[n].succeeded, Failed: m.counts[n].failed}
}

// close ends what has nothing left in it: the run, an embedded flow, a for_each. An embedded flow that failed may wait for its next
// attempt instead.
func (m *Machine) close(scope int) {
	if !m.isOpen(scope) || m.at(scope).left > 0 {
		return
	}
	status := m.verdict(scope)
	if scope != Top && m.timedOut(scope) {
		status = Failed
	}
	if scope == Top {
		if m.reason == "" && status != Succeeded {
			m.reason = m.whyOver(Top, status)
		}
		m.over, m.paused, m.killing = status, false, false
		return
	}
	if status == Failed && m.retriesLeft(scope) && m.mayNotStart(scope) == "" {
		if m.nodes[scope].Status == Killing {
			m.change(scope).Status = Running
		}
		node := &m.nodes[scope]
		m.effects.Retry = append(m.effects.Retry, Retry{Node: scope, Try: node.Try, Attempt: node.Attempt + 1})
		m.retrying = append(m.retrying, scope)
		return
	}
	reason := ""
	switch {
	case m.timedOut(scope):
		reason = m.nodes[scope].Reason
	case status == Failed:
		reason = fmt.Sprintf("%d of %s in it failed", m.counts[scope].failing, quantity.Of(len(m.contents(scope)), "node"))
	case status == Killed:
		reason = cmpOr(m.whyStopped(scope), m.whyOver(scope, status))
	}
	outputs, note := m.collect(scope)
	m.change(scope).Outputs = outputs
	m.end(scope, status, cmpOr(reason, note))
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// verdict says how a scope ends in which everything has ended.
func (m *Machine) verdict(scope int) Status {
	in := m.at(scope)
	switch {
	case scope == Top && m.killing:
		return Killed
	case in.failing > 0:
		return Failed
	case in.badEnds == 0:
		return Succeeded
	case m.killing || in.killed > 0 || m.settings.OnCancelledEnd == graph.EndKilled:
		return Killed
	case scope != Top && m.isStopped(m.scopeOf(scope)):
		return Killed
	default:
		return Succeeded
	}
}

// collect returns the outputs of a scope: of an embedded flow those of its end nodes, later ones first; of a for_each lists.
func (m *Machine) collect(scope int) (outputs map[string]string, note string) {
	if m.isTemplate(scope) {
		return m.collectLists(scope)
	}
	for _, member := range m.plan.members[scope] {
		if len(m.plan.children[member]) > 0 || len(m.nodes[member].Outputs) == 0 {
			continue
		}
		if outputs == nil {
			outputs = map[string]string{}
		}
		maps.Copy(outputs, m.nodes[member].Outputs)
	}
	return outputs, ""
}

func (Begin) apply(m *Machine) string {
	m.start()
	return ""
}

// start lets a run that has not begun do so, with its nodes as they are: one that had ended before, and is to go on, has some that have.
func (m *Machine) start() {
	if !m.begun {
		m.begun = true
		m.count()
	}
}

func (e Ended) apply(m *Machine) string {
	if !m.hasJob(e.Node) || m.nodes[e.Node].Try != e.Try {
		return ""
	}
	node := m.change(e.Node)
	killing, why := node.Status == Killing, m.whyStopped(e.Node)
	node.Attempt, node.Outputs = e.Attempt, e.Outputs
	switch {
	case e.Outcome == JobSucceeded:
		m.end(e.Node, Succeeded, "")
	case e.Outcome == JobFailed && !killing:
		m.end(e.Node, Failed, e.Reason)
	case e.Outcome == JobCancelled && killing:
		m.end(e.Node, Cancelled, beforeItStarted(why))
	case killing:
		m.end(e.Node, Killed, cmpOr(why, cmpOr(e.Reason, "the run was killed")))
	default:
		m.end(e.Node, Killed, cmpOr(e.Reason, "its job was cancelled"))
	}
	return ""
}

func (e CouldNotStart) apply(m *Machine) string {
	if m.hasJob(e.Node) {
		m.change(e.Node)
		m.end(e.Node, Failed, e.Reason)
	}
	return ""
}

// hasJob says whether a node has a job that has not ended.
func (m *Machine) hasJob(n int) bool {
	return n >= 0 && n < len(m.nodes) && m.nodes[n].Status.active() && !m.isScope(n)
}

func (e RetryDue) apply(m *Machine) string {
	i := slices.Index(m.retrying, e.Node)
	if i < 0 || m.nodes[e.Node].Try != e.Try || m.nodes[e.Node].Attempt+1 != e.Attempt {
		return ""
	}
	m.retrying = slices.Delete(m.retrying, i, i+1)
	parents := m.parents(e.Node)
	m.counts[e.Node] = counts{succeeded: parents.Succeeded, failed: parents.Failed, left: len(m.plan.members[e.Node])}
	node := m.change(e.Node)
	node.Attempt++
	node.Reason = ""
	m.inside(e.Node, func(in int) {
		m.refresh(in)
		m.counts[in] = m.blank(in)
	})
	m.open(e.Node)
	return ""
}

func (e TimedOut) apply(m *Machine) string {
	if e.Node < 0 || e.Node >= len(m.plan.flow.Nodes) || !m.isContainer(e.Node) || !m.nodes[e.Node].Status.active() ||
		m.nodes[e.Node].Try != e.Try || m.nodes[e.Node].Attempt != e.Attempt || m.timedOut(e.Node) {
		return ""
	}
	if !m.begun { // it is to go on, and has its time once more
		m.limitTime(e.Node)
		return ""
	}
	if m.counts[e.Node].left == 0 { // it waits for its next attempt
		return ""
	}
	node := m.change(e.Node)
	node.Status, node.Reason = Killing, e.Reason
	m.inside(e.Node, m.killNode)
	m.fail(e.Node)
	m.flush = true
	return ""
}

// timedOut says whether an embedded flow's attempt has lasted too long. Its row tells by the reason, which one that has not ended has for
// nothing else.
func (m *Machine) timedOut(n int) bool {
	return m.isContainer(n) && m.nodes[n].Status.active() && m.nodes[n].Reason != ""
}

// blank returns the counts of a node in a scope that starts over.
func (m *Machine) blank(n int) counts {
	if m.isInstance(n) {
		return counts{}
	}
	c := counts{pending: len(m.plan.flow.Nodes[n].Parents)}
	if m.isContainer(n) {
		c.left = len(m.plan.members[n])
	}
	return c
}

// refresh makes a node one that has not started, whatever it was.
func (m *Machine) refresh(n int) {
	node := m.change(n)
	if node.Status == Ready || node.Status == Disabled {
		return
	}
	disabled := node.Status == Skipped
	if m.isInstance(n) { // which is skipped too when there is no item for it
		disabled = len(m.disabled) > 0 && m.disabled[m.Path(n)]
	}
	node.Status, node.Attempt, node.Outputs, node.Reason = Ready, 0, nil, ""
	node.Try++
	if disabled {
		node.Status = Disabled
	}
}

func (e Hold) apply(m *Machine) string {
	if e.Node < 0 || e.Node >= len(m.nodes) || !m.nodes[e.Node].Status.fresh() {
		return ""
	}
	m.change(e.Node).Held = e.By
	if m.counts[e.Node].waits {
		is := func(n int) bool { return n == e.Node }
		m.free = sorted(slices.DeleteFunc(m.free, is))
		m.jobs = sorted(slices.DeleteFunc(m.jobs, is))
		m.held = slices.DeleteFunc(m.held, is)
		m.wait(e.Node)
	}
	return ""
}

func (e Release) apply(m *Machine) string {
	if e.Node < 0 || e.Node >= len(m.nodes) || m.nodes[e.Node].Held == "" {
		return ""
	}
	m.change(e.Node).Held = ""
	if i := slices.Index(m.held, e.Node); i >= 0 {
		m.held = slices.Delete(m.held, i, i+1)
		m.wait(e.Node)
	}
	return ""
}
