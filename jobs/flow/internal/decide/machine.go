package decide

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// Machine decides for one run. It is not safe for concurrent use.
type Machine struct {
	plan     *Plan
	settings Settings
	disabled map[string]bool // instances that will be skipped
	limit    int             // rows that an Apply may change before it leaves the rest to the next; 0: any number
	inputs   func(node int, name string) (string, bool)

	run                    Status // as it is in its row, at the end of Apply
	begun, paused, killing bool
	reason                 string // why it is being killed, or ended otherwise than well
	over                   Status // how the run ended; "": it has not
	reopened               bool   // in this Apply, after it had ended
	nodes                  []Node
	counts                 []counts
	top                    counts
	instances              map[int][]int // of templates, by index

	// What there is to do. Between calls of Apply it is empty, or, where there is more, nothing but what count finds in the rows.
	judged  []int // nodes whose parents have all ended
	closing []int // containers, templates and Top in which nothing is left
	flush   bool  // something has failed or is being killed: look through who waits

	// Who waits. Each node is in at most one of them, see counts.waits.
	free     minHeap // passed without a job, when the run is not paused
	jobs     minHeap // for a free slot
	held     []int   // to be released
	retrying []int   // embedded flows for their next attempt
	running  int     // jobs

	effects Effects
	marks   []mark // by node: what effects has of it
}

// counts is what the machine knows about a node beside its row. All of it follows from the rows.
type counts struct {
	pending, succeeded, failed int // its parents: not ended, and how the others did

	waits   bool // it is in one of the machine's lists
	counted bool // its failure is counted in what it is in

	// Of a container, a template and the run: what is in it.
	left    int // not ended
	failing int // failed, with no child that tolerates it
	killed  int // killed, likewise
	badEnds int // end nodes that did not succeed
}

// Machine returns the machine of a run from the rows of its nodes, which it takes over. The rows may be of any moment between two calls of
// Apply.
func (p *Plan) Machine(run Run, nodes []Node) (*Machine, error) {
	if len(nodes) < len(p.flow.Nodes) {
		return nil, fmt.Errorf("flow %s has %d nodes, and its run only %d", p.flow.Name, len(p.flow.Nodes), len(nodes))
	}
	m := &Machine{plan: p, settings: run.Settings.withDefaults(""), disabled: run.Disabled, run: run.Status, reason: run.Reason, nodes: nodes}
	for n := len(p.flow.Nodes); n < len(nodes); n++ {
		if t := nodes[n].Template; t < 0 || t >= len(p.flow.Nodes) || p.flow.Nodes[t].ForEach == nil {
			return nil, fmt.Errorf("flow %s: node number %d is an instance of number %d, which has no for_each", p.flow.Name, n, t)
		}
	}
	m.begun = run.Status != Preparing && run.Status != Queued && run.Status != Ready
	m.paused = run.Status == Paused
	m.killing = run.Status == Killing
	if run.Status.Ended() {
		m.over = run.Status
	}
	m.marks = make([]mark, len(nodes))
	m.count()
	return m, nil
}

// UseInputs lets conditions see the inputs of jobs that have ended, where they have no output of a name.
func (m *Machine) UseInputs(inputs func(node int, name string) (string, bool)) { m.inputs = inputs }

// Limit has an Apply stop deciding once it has changed so many rows, or not many more, and say that there is more (Effects.More).
func (m *Machine) Limit(rows int) { m.limit = rows }

// Len returns the number of nodes, instances of for_each included.
func (m *Machine) Len() int { return len(m.nodes) }

// Node returns the state of a node. It is not to be changed, and holds until the next call of Apply.
func (m *Machine) Node(n int) *Node { return &m.nodes[n] }

// Spec returns the node in the graph; of an instance, its template.
func (m *Machine) Spec(n int) *graph.Node {
	if m.isInstance(n) {
		n = m.nodes[n].Template
	}
	return &m.plan.flow.Nodes[n]
}

// IsInstance says whether a node is an instance of a for_each.
func (m *Machine) IsInstance(n int) bool { return m.isInstance(n) }

// Run returns the state of the run.
func (m *Machine) Run() Run {
	return Run{Status: m.run, Reason: m.reason, Settings: m.settings, Disabled: m.disabled}
}

// RunningJobs returns the number of nodes that have a job that has not ended.
func (m *Machine) RunningJobs() int { return m.running }

// Path returns the path of a node.
func (m *Machine) Path(n int) string {
	if m.isInstance(n) {
		return param.InstancePath(m.plan.flow.Nodes[m.nodes[n].Template].Path, m.nodes[n].Index)
	}
	return m.plan.flow.Nodes[n].Path
}

// Number returns the number of a node by its path, instances included; None if there is none.
func (m *Machine) Number(path string) int {
	if n, found := m.plan.byPath[path]; found {
		return n
	}
	open := strings.LastIndexByte(path, '[')
	if open < 0 || !strings.HasSuffix(path, "]") {
		return None
	}
	index, err := strconv.Atoi(path[open+1 : len(path)-1])
	template, found := m.plan.byPath[path[:open]]
	if err != nil || !found || index < 0 || index >= len(m.instances[template]) {
		return None
	}
	return m.instances[template][index]
}

// count makes everything that follows from the rows.
func (m *Machine) count() {
	m.counts = make([]counts, len(m.nodes))
	m.top = counts{}
	m.instances = map[int][]int{}
	m.judged, m.closing = nil, nil
	m.free, m.jobs, m.held, m.retrying, m.running = nil, nil, nil, nil, 0
	for n := len(m.plan.flow.Nodes); n < len(m.nodes); n++ {
		m.instances[m.nodes[n].Template] = append(m.instances[m.nodes[n].Template], n)
	}
	// From the last to the first, so that contents come before what they are in.
	for n := range slices.Backward(m.nodes) {
		m.countNode(n)
	}
	for n := range m.nodes {
		switch {
		case m.nodes[n].Status.fresh() && m.counts[n].pending == 0 && m.isOpen(m.scopeOf(n)):
			m.judged = append(m.judged, n)
		case m.isScope(n) && m.nodes[n].Status.active() && m.counts[n].left == 0:
			if (m.counts[n].failing > 0 || m.timedOut(n)) && m.retriesLeft(n) {
				m.retrying = append(m.retrying, n)
			} else {
				m.closing = append(m.closing, n)
			}
		}
	}
	if m.isOpen(Top) && m.top.left == 0 {
		m.closing = append(m.closing, Top)
	}
}

func (m *Machine) countNode(n int) {
	status := m.nodes[n].Status
	in := m.at(m.scopeOf(n))
	if !status.Ended() {
		in.left++
	}
	if m.isFailure(n) {
		m.counts[n].counted = true
		in.failing++
	}
	m.countEnd(n, in)
	if status.active() && !m.isScope(n) {
		m.running++
	}
	if m.isInstance(n) {
		return
	}
	for _, parent := range m.plan.flow.Nodes[n].Parents {
		switch s := m.nodes[parent].Status; {
		case s.Success():
			m.counts[n].succeeded++
		case s.Failure():
			m.counts[n].failed++
		default:
			m.counts[n].pending++
		}
	}
}

// countEnd counts a node's end in what it is in.
func (m *Machine) countEnd(n int, in *counts) {
	status := m.nodes[n].Status
	if status == Killed && !m.isTolerated(n) {
		in.killed++
	}
	if status.Failure() && (m.isInstance(n) || len(m.plan.children[n]) == 0) {
		in.badEnds++
	}
}

// Top stands for the run, as what nodes are in that are in no container.
const Top = graph.Top

// at returns the counts of a node, or of the run.
func (m *Machine) at(n int) *counts {
	if n == Top {
		return &m.top
	}
	return &m.counts[n]
}

// scopeOf returns what a node is in: its container, an instance's template, or Top.
func (m *Machine) scopeOf(n int) int {
	if m.isInstance(n) {
		return m.nodes[n].Template
	}
	return m.plan.flow.Nodes[n].Container
}

func (m *Machine) isInstance(n int) bool { return n >= len(m.plan.flow.Nodes) }

// isTemplate says whether a node has a for_each.
func (m *Machine) isTemplate(n int) bool {
	return n != Top && !m.isInstance(n) && m.plan.flow.Nodes[n].ForEach != nil
}

// isContainer says whether a node is an embedded flow.
func (m *Machine) isContainer(n int) bool {
	return n != Top && !m.isInstance(n) && m.plan.flow.Nodes[n].Type == graph.TypeFlow
}

// isScope says whether a node is one that others are in.
func (m *Machine) isScope(n int) bool { return m.isContainer(n) || m.isTemplate(n) }

// isOpen says whether nodes in a scope are being decided on.
func (m *Machine) isOpen(scope int) bool {
	if scope == Top {
		return m.begun && m.over == ""
	}
	return m.begun && m.nodes[scope].Status.active()
}

// isTolerated says whether a node's failure does not fail what it is in.
func (m *Machine) isTolerated(n int) bool { return !m.isInstance(n) && m.plan.tolerated[n] }

// retriesLeft says whether an embedded flow will be tried again if it fails.
func (m *Machine) retriesLeft(n int) bool {
	return m.isContainer(n) && m.nodes[n].Attempt < m.plan.flow.Nodes[n].Retry.Max
}

// isFailure says whether a node counts as a failure in what it is in: it has failed, or something in it has and it will not be tried again.
func (m *Machine) isFailure(n int) bool {
	if m.isTolerated(n) {
		return false
	}
	if m.nodes[n].Status == Failed {
		return true
	}
	return m.isScope(n) && m.nodes[n].Status.active() && (m.counts[n].failing > 0 || m.timedOut(n)) && !m.retriesLeft(n) && !m.Spec(n).SucceedOnFailure
}

// isStopped says whether nothing may start in a scope because something has failed. Instances of a for_each do not stop each other.
func (m *Machine) isStopped(scope int) bool {
	if m.settings.OnFailure == graph.FinishPossible {
		return false
	}
	for ; scope != Top; scope = m.scopeOf(scope) {
		if m.isContainer(scope) && m.counts[scope].failing > 0 {
			return true
		}
	}
	return m.top.failing > 0
}
