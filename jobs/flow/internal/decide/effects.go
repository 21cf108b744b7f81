package decide

import "slices"

// Effects is what is to be done after Apply, all of it in one transaction. Numbers of nodes are sorted.
type Effects struct {
	Start   []int   // nodes that become jobs now
	Cancel  []int   // nodes whose jobs are to be killed, or cancelled if they have not started
	Changed []int   // rows to update
	New     []int   // rows to insert: instances of for_each, which are in no other list but Start
	Retry   []Retry // embedded flows to try again after their wait; a RetryDue is expected then
	Limit   []Retry // embedded flows with a timeout of which an attempt has begun; a TimedOut is expected when it has passed

	Status       Status    // of the run, if it changed; else ""
	More         bool      // the machine's limit was reached: Apply once more, without an event say
	Ended        bool      // the run came to its end, perhaps once more
	FirstFailure int       // the node that made the run fail; None if it did not, or had before
	Refused      []Refusal // events that were not possible, and had no effect
}

// Retry is the next attempt of an embedded flow.
type Retry struct {
	Node    int
	Try     int
	Attempt int // its index: 1 is the first retry
}

// Refusal says why an event was not possible.
type Refusal struct {
	Event  int    // its place among the arguments of Apply
	Reason string // for people
}

// Empty says whether there is nothing to do.
func (e *Effects) Empty() bool {
	return len(e.Start)+len(e.Cancel)+len(e.Changed)+len(e.New)+len(e.Retry)+len(e.Limit)+len(e.Refused) == 0 && e.Status == "" && e.FirstFailure == None
}

// Merge returns the effects of two calls of Apply as those of one. What the first started and the second ended (CouldNotStart) is not
// started. Places of refused events stay those of their own call.
func (m *Machine) Merge(first, second Effects) Effects {
	merged := Effects{
		Start:        union(first.Start, second.Start),
		Cancel:       union(first.Cancel, second.Cancel),
		Changed:      union(first.Changed, second.Changed),
		New:          union(first.New, second.New),
		Retry:        append(slices.Clone(first.Retry), second.Retry...),
		Limit:        append(slices.Clone(first.Limit), second.Limit...),
		Status:       first.Status,
		More:         second.More,
		Ended:        second.Ended || first.Ended && second.Status == "",
		FirstFailure: first.FirstFailure,
		Refused:      append(slices.Clone(first.Refused), second.Refused...),
	}
	merged.Start = slices.DeleteFunc(merged.Start, func(n int) bool { return !m.nodes[n].Status.active() })
	merged.Changed = slices.DeleteFunc(merged.Changed, func(n int) bool { return contains(merged.New, n) })
	if second.Status != "" {
		merged.Status = second.Status
	}
	if merged.FirstFailure == None {
		merged.FirstFailure = second.FirstFailure
	}
	return merged
}

func union(a, b []int) []int {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

func contains(list []int, n int) bool {
	_, found := slices.BinarySearch(list, n)
	return found
}

// mark says which lists of the effects a node is in.
type mark uint8

const (
	markRow    mark = 1 << iota // Changed or New
	markCancel                  // Cancel
)

// change notes that a node's row is to be written.
func (m *Machine) change(n int) *Node {
	if m.marks[n]&markRow == 0 {
		m.marks[n] |= markRow
		m.effects.Changed = append(m.effects.Changed, n)
	}
	return &m.nodes[n]
}

func (m *Machine) cancelJob(n int) {
	if m.marks[n]&markCancel == 0 {
		m.marks[n] |= markCancel
		m.effects.Cancel = append(m.effects.Cancel, n)
	}
}

// takeEffects returns the effects and forgets them.
func (m *Machine) takeEffects() Effects {
	e := m.effects
	for _, list := range [][]int{e.Changed, e.New, e.Cancel} {
		for _, n := range list {
			m.marks[n] = 0
		}
	}
	slices.Sort(e.Start)
	slices.Sort(e.Cancel)
	slices.Sort(e.Changed)
	slices.Sort(e.New)
	for _, list := range [][]Retry{e.Retry, e.Limit} {
		slices.SortFunc(list, func(a, b Retry) int { return a.Node - b.Node })
	}
	m.effects = Effects{FirstFailure: None}
	return e
}
