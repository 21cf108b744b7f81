package decide

import (
	"fmt"
	"slices"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// settle decides until nothing is left to decide, or the limit is reached. The order of what can fail the run is by number, so the same rows always give
// the same effects. Nothing here calls itself: a flow of any depth and width takes one loop.
func (m *Machine) settle() {
	for {
		switch {
		case m.mustKill():
			m.kill(m.whyCancelAll())
		case m.mustRest():
			m.effects.More = true
			return
		case len(m.judged) > 0:
			n := m.judged[len(m.judged)-1]
			m.judged = m.judged[:len(m.judged)-1]
			m.judge(n)
		case len(m.closing) > 0:
			scope := m.closing[len(m.closing)-1]
			m.closing = m.closing[:len(m.closing)-1]
			m.close(scope)
		case m.flush:
			m.flush = false
			m.flushWaiting()
		case len(m.free) > 0 && m.mayStart():
			n := m.free.pop()
			m.counts[n].waits = false
			m.pass(n)
		default:
			m.dispatch()
			return
		}
	}
}

// mustRest says whether the limit is reached and what is left to do is known from the rows alone.
func (m *Machine) mustRest() bool {
	return m.limit > 0 && len(m.effects.Changed)+len(m.effects.New) >= m.limit && len(m.closing) == 0 && !m.flush &&
		(len(m.judged) > 0 || len(m.free) > 0 && m.mayStart())
}

// status returns the run's status as it follows from everything else.
func (m *Machine) status() Status {
	switch {
	case m.over != "":
		return m.over
	case m.killing:
		return Killing
	case !m.begun:
		return m.run
	case m.paused:
		return Paused
	case m.top.failing > 0:
		return FailedFinishing
	default:
		return Running
	}
}

func (m *Machine) mayStart() bool { return m.isOpen(Top) && !m.paused && !m.killing }

// mustKill says whether a failure is to kill the run.
func (m *Machine) mustKill() bool {
	return m.top.failing > 0 && m.settings.OnFailure == graph.CancelAll && !m.killing && m.isOpen(Top)
}

// whyCancelAll says that a failure kills the run.
func (m *Machine) whyCancelAll() string {
	failed := "a node"
	if n := m.effects.FirstFailure; n != None {
		failed = m.Path(n)
	}
	return fmt.Sprintf("the run was killed: %s failed, and the failure action is %s", failed, graph.CancelAll)
}

// kill begins to kill everything.
func (m *Machine) kill(reason string) {
	if !m.killing {
		m.reason = reason
	}
	m.killing, m.paused, m.flush = true, false, true
	for n := range m.nodes {
		m.killNode(n)
	}
}

// killNode begins to kill a node if it runs.
func (m *Machine) killNode(n int) {
	if !m.nodes[n].Status.active() {
		return
	}
	m.change(n).Status = Killing
	if !m.isScope(n) {
		m.cancelJob(n)
	}
}

// judge decides on a node whose parents have all ended: it is skipped, cancelled, or waits to be started.
func (m *Machine) judge(n int) {
	if !m.nodes[n].Status.fresh() || m.counts[n].waits || !m.isOpen(m.scopeOf(n)) {
		return
	}
	switch {
	case m.nodes[n].Status == Disabled:
		m.endInside(n, Skipped, "")
		m.end(n, Skipped, "it was disabled")
	case m.mayNotStart(n) != "":
		m.cancel(n, m.mayNotStart(n))
	default:
		if holds, why := m.condition(n); !holds {
			m.cancel(n, why)
			return
		}
		m.wait(n)
	}
}

// whyStopped says why a node is being killed, as far as that is known: the run's reason, or that of an embedded flow around it whose time is over.
func (m *Machine) whyStopped(n int) string {
	if m.killing {
		return m.reason
	}
	for scope := m.scopeOf(n); scope != Top; scope = m.scopeOf(scope) {
		if m.timedOut(scope) {
			return m.nodes[scope].Reason
		}
	}
	return ""
}

// beforeItStarted says why a node was cancelled that could have started later.
func beforeItStarted(why string) string {
	if why == "" {
		return "the run was killed before it started"
	}
	return why + ", before it started"
}

// mayNotStart says why a node cannot start any more, whatever its condition says; "" if it can.
func (m *Machine) mayNotStart(n int) string {
	switch {
	case m.killing:
		return beforeItStarted(m.reason)
	case m.whyStopped(n) != "":
		return beforeItStarted(m.whyStopped(n))
	case m.isStopped(m.scopeOf(n)):
		return "another node had failed before it started"
	default:
		return ""
	}
}

// condition says whether a node's condition holds, and if not why.
func (m *Machine) condition(n int) (holds bool, why string) {
	if m.isInstance(n) {
		return true, ""
	}
	return m.plan.exprs[n].Eval(m.parents(n), func(job, name string) (string, bool) {
		of := m.plan.sibling(n, job)
		if of == None || !m.nodes[of].Status.Ended() {
			return "", false
		}
		if value, found := m.nodes[of].Outputs[name]; found {
			return value, true
		}
		if m.inputs != nil {
			if value, found := m.inputs(of, name); found {
				return value, true
			}
		}
		if m.IsEmptyList(of) {
			return "[]", true
		}
		return "", false
	})
}

// wait puts a node where it waits to be started.
func (m *Machine) wait(n int) {
	m.counts[n].waits = true
	switch {
	case m.nodes[n].Held != "":
		m.held = append(m.held, n)
	case m.isScope(n) || m.Spec(n).Type == graph.TypeNoop:
		m.free.push(n)
	default:
		m.jobs.push(n)
	}
}

// flushWaiting has whatever waits and may not start any more decided on again, which cancels it.
func (m *Machine) flushWaiting() {
	var gone []int
	sift := func(list []int) []int {
		return slices.DeleteFunc(list, func(n int) bool {
			if m.mayNotStart(n) == "" {
				return false
			}
			gone = append(gone, n)
			return true
		})
	}
	m.free, m.jobs, m.held = sorted(sift(m.free)), sorted(sift(m.jobs)), sift(m.held)
	for _, n := range gone {
		m.counts[n].waits = false
	}
	m.judged = append(m.judged, gone...)
	gone = nil
	m.retrying = sift(m.retrying)
	m.closing = append(m.closing, gone...)
}

// sorted makes a heap of a list: a sorted one is one.
func sorted(list []int) minHeap {
	slices.Sort(list)
	return list
}

// pass starts a node that needs no job.
func (m *Machine) pass(n int) {
	switch {
	case m.isTemplate(n):
		m.expand(n)
	case m.isContainer(n):
		m.begin(n)
		m.open(n)
	default:
		m.begin(n)
		m.end(n, Succeeded, "")
	}
}

// begin makes a node one that has started.
func (m *Machine) begin(n int) {
	node := m.change(n)
	node.Status, node.Attempt, node.Outputs, node.Reason = Running, 0, nil, ""
}

// open lets the nodes of an embedded flow be decided on.
func (m *Machine) open(n int) {
	m.limitTime(n)
	for _, member := range m.plan.members[n] {
		if m.counts[member].pending == 0 {
			m.judged = append(m.judged, member)
		}
	}
	if m.counts[n].left == 0 {
		m.closing = append(m.closing, n)
	}
}

// limitTime asks for the timeout of an embedded flow's attempt, which has begun.
func (m *Machine) limitTime(n int) {
	if m.isContainer(n) && m.Spec(n).Timeout > 0 {
		m.effects.Limit = append(m.effects.Limit, Retry{Node: n, Try: m.nodes[n].Try, Attempt: m.nodes[n].Attempt})
	}
}

// dispatch makes jobs of nodes, in the order of the graph, as many as may run at a time.
func (m *Machine) dispatch() {
	for m.mayStart() && len(m.jobs) > 0 && m.running < m.settings.MaxParallel {
		n := m.jobs.pop()
		m.counts[n].waits = false
		m.begin(n)
		m.nodes[n].Status = Queued
		m.running++
		m.effects.Start = append(m.effects.Start, n)
	}
}
