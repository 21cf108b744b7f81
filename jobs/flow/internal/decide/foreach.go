package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// expand starts a for_each: it makes an instance for each item. Those of an earlier try, which have not
// started again, are used; of them, those that there is no item
// for any more are skipped.
func (m *Machine) expand(n int) {
	m.begin(n)
	items, err := m.items(n)
	if err != nil {
		m.endInside(n, Skipped, "there are no items this time")
		m.end(n, Failed, err.Error())
		return
	}
	old := m.instances[n]
	m.counts[n].left = len(items)
	for index, item := range items {
		if index < len(old) {
			m.change(old[index]).Item = item
			continue
		}
		m.addInstance(n, index, item)
	}
	for _, gone := range old[min(len(items), len(old)):] {
		node := m.change(gone)
		node.Status, node.Reason = Skipped, "there is no item for it this time"
	}
	m.judged = append(m.judged, m.instances[n][:len(items)]...)
	if len(items) == 0 {
		m.closing = append(m.closing, n)
	}
}

func (m *Machine) addInstance(template, index int, item string) {
	n := len(m.nodes)
	status := Ready
	if len(m.disabled) > 0 && m.disabled[param.InstancePath(m.plan.flow.Nodes[template].Path, index)] {
		status = Disabled
	}
	m.nodes = append(m.nodes, Node{Status: status, Try: m.nodes[template].Try, Template: template, Index: index, Item: item})
	m.counts = append(m.counts, counts{})
	m.marks = append(m.marks, markRow)
	m.effects.New = append(m.effects.New, n)
	m.instances[template] = append(m.instances[template], n)
}

// items returns what a for_each is for.
func (m *Machine) items(n int) ([]string, error) {
	each := m.plan.flow.Nodes[n].ForEach
	items := each.Items
	if each.Node != "" {
		parent := m.plan.sibling(n, each.Node)
		if parent == None {
			return nil, fmt.Errorf("for_each: there is no node %s", each.Node)
		}
		value, found := m.nodes[parent].Outputs[each.Key]
		if !found && m.IsEmptyList(parent) {
			return nil, nil
		}
		if !found {
			return nil, fmt.Errorf("for_each: %s has no output %s", each.Node, each.Key)
		}
		var err error
		if items, err = parseItems(value); err != nil {
			return nil, fmt.Errorf("for_each: output %s of %s: %w", each.Key, each.Node, err)
		}
	}
	if len(m.nodes)+len(items)-len(m.instances[n]) > 2*graph.MaxNodes {
		return nil, fmt.Errorf("for_each: with %d items the run would have more than %d nodes", len(items), 2*graph.MaxNodes)
	}
	return items, nil
}

// parseItems reads a JSON array. Texts become what they hold, other values their JSON.
func parseItems(value string) ([]string, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(value), &raw); err != nil || !strings.HasPrefix(strings.TrimSpace(value), "[") {
		return nil, errors.New("it is not a JSON array, which a list of items has to be")
	}
	items := make([]string, len(raw))
	for i, r := range raw {
		if r[0] != '"' {
			items[i] = string(r)
			continue
		}
		if err := json.Unmarshal(r, &items[i]); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		if strings.Contains(items[i], "\x00") {
			return nil, fmt.Errorf("item %d holds a NUL byte", i)
		}
	}
	return items, nil
}

// IsEmptyList says whether a node has ended well with outputs that are lists, all of them empty, so that nobody knows their names: a for_each
// without items, or an embedded flow that ends with one.
func (m *Machine) IsEmptyList(n int) bool {
	switch {
	case m.isInstance(n) || m.nodes[n].Status != Succeeded:
		return false
	case m.isTemplate(n):
		return !slices.ContainsFunc(m.instances[n], func(n int) bool { return m.nodes[n].Status != Skipped })
	case m.isContainer(n):
		return slices.ContainsFunc(m.plan.members[n], func(member int) bool { return len(m.plan.children[member]) == 0 && m.IsEmptyList(member) })
	}
	return false
}

// collectLists returns, for each output that an instance of a for_each has, a JSON array of all instances' values, null for those that have
// none. A list that is too long for a parameter is left out, and the note says so.
func (m *Machine) collectLists(template int) (outputs map[string]string, note string) {
	lists := map[string][]*string{}
	live := slices.DeleteFunc(slices.Clone(m.instances[template]), func(n int) bool { return m.nodes[n].Status == Skipped })
	for i, n := range live {
		for name, value := range m.nodes[n].Outputs {
			if lists[name] == nil {
				lists[name] = make([]*string, len(live))
			}
			lists[name][i] = &value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		list, err := json.Marshal(lists[name])
		if err != nil || len(list) > param.MaxValue {
			note = fmt.Sprintf("the list of its outputs %s has more than %d bytes and was left out", name, param.MaxValue)
			continue
		}
		if outputs == nil {
			outputs = map[string]string{}
		}
		outputs[name] = string(list)
	}
	return outputs, note
}
