package flow

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// scopes are where a node's parameters come from.
func (l *loaded) scopes(n int) param.Scopes {
	m := l.machine
	node := param.Node{Number: n, Outputs: func(p int) map[string]string { return m.Node(p).Outputs }, Empty: m.IsEmptyList, Runtime: l.runtime(n)}
	if m.IsInstance(n) {
		state := m.Node(n)
		node.Number, node.Item = state.Template, &param.Item{Index: state.Index, Value: state.Item}
	}
	return param.ForNode(l.graph, param.Run{Global: l.global, Params: l.options.Params, Nodes: l.options.NodeParams}, node)
}

// runtime are the properties that the engine sets for a node.
func (l *loaded) runtime(n int) map[string]string {
	m := l.machine
	path, spec := m.Path(n), m.Spec(n)
	names := func(numbers []int) string {
		var list []string
		for _, i := range numbers {
			list = append(list, nameOf(l.graph.Nodes[i].Path))
		}
		return strings.Join(list, ",")
	}
	values := l.runtimeOfRun()
	values["azkaban.flow.nested.path"] = path // without the flow's name, as in Azkaban
	values["azkaban.job.id"] = nameOf(path)
	values["azkaban.job.attempt"] = strconv.Itoa(m.Node(n).Attempt)
	values["azkaban.job.innodes"] = names(spec.Parents)
	values["azkaban.job.outnodes"] = names(l.children[l.numberOf(n)])
	return values
}

// runtimeOfRun are those that are the same for all nodes.
func (l *loaded) runtimeOfRun() map[string]string {
	start := l.now
	if l.run.StartedAt != nil {
		start = *l.run.StartedAt
	}
	start = start.In(time.Local) //nolint:gosmopolitan // a data team's scripts want the zone of the place
	milliseconds := fmt.Sprintf("%03d", start.Nanosecond()/1e6)
	return map[string]string{
		"azkaban.flow.execid":             strconv.FormatInt(l.run.ID, 10),
		"azkaban.flow.flowid":             l.run.Flow,
		"azkaban.flow.projectname":        l.run.Project,
		"azkaban.flow.projectversion":     strconv.Itoa(l.run.Version),
		"azkaban.flow.submituser":         l.run.CreatedBy,
		"azkaban.flow.uuid":               fmt.Sprintf("%s-%s-%d", l.run.Project, l.run.Flow, l.run.ID),
		"azkaban.flow.start.timestamp":    start.Format("2006-01-02T15:04:05.000-07:00"),
		"azkaban.flow.start.year":         start.Format("2006"),
		"azkaban.flow.start.month":        start.Format("01"),
		"azkaban.flow.start.day":          start.Format("02"),
		"azkaban.flow.start.hour":         start.Format("15"),
		"azkaban.flow.start.minute":       start.Format("04"),
		"azkaban.flow.start.second":       start.Format("05"),
		"azkaban.flow.start.millisecond":  milliseconds,
		"azkaban.flow.start.milliseconds": milliseconds,
		"azkaban.flow.start.timezone":     start.Format("MST"),
	}
}

// scopesOfFlow are where parameters of the whole flow come from: the config that names its options, which of a Flow 1.0 flow is that of its last
// job, and then the run.
func (l *loaded) scopesOfFlow() param.Scopes {
	scopes := param.Scopes{{From: "the installation", Values: l.global}}
	if last := l.graph.Find(l.run.Flow); last >= 0 && l.run.Format == graph.FormatFlow1 {
		n := &l.graph.Nodes[last]
		scopes = append(scopes, param.Scope{From: "shared properties", Values: n.Shared}, param.Scope{From: "config of " + n.Path, Values: n.Config})
	}
	return append(scopes, param.Scope{From: "the flow's config", Values: l.graph.Config},
		param.Scope{From: "the run", Values: l.options.Params}, param.Scope{From: "the run's time", Values: l.runtimeOfRun()})
}

// input is a parameter of a node that has ended, as it was resolved when it started; for conditions.
func (l *loaded) input(n int, name string) (string, bool) {
	values, err := param.Resolve(l.scopes(n))
	if err != nil {
		return "", false
	}
	value, found := values[name]
	return value, found
}

// nameOf is the last part of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, ':')+1:] }
