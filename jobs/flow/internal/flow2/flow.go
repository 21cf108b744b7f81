package flow2

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// flow reads a .flow file. Its name is the flow's.
func (d *document) flow() *draft.Flow {
	f := &draft.Flow{
		Name: strings.TrimSuffix(path.Base(d.file), FlowExt), File: d.file,
		Nodes: &draft.Set{}, Lines: draft.Lines{},
	}
	if d.root == nil {
		d.fault(0, "", "is empty: a flow needs nodes")
		return nil
	}
	for _, k := range d.fields(d.root, "") {
		f.Lines[k.name] = k.line
		switch k.name {
		case "config":
			f.Config = d.config(k, "", f.Lines)
		case "nodes":
			f.Nodes = d.nodes(k, "", 0)
		case "trigger":
			f.Trigger = d.trigger(k)
		case "max_parallel":
			f.Opts.MaxParallel = d.number(k, "", 1, math.MaxInt32)
		case "on_failure":
			f.Opts.OnFailure = graph.OnFailure(d.text(k, ""))
		case "on_cancelled_end":
			f.Opts.OnCancelledEnd = graph.OnCancelledEnd(d.text(k, ""))
		case "name", "type", "dependsOn", "condition":
			d.note(k.line, "", "%s of a whole flow is not used; the flow's name is that of its file", k.name)
		default:
			d.fault(k.line, "", "unknown key %s; a flow has config, nodes, trigger, max_parallel, on_failure, on_cancelled_end", quote(k.name))
		}
	}
	draft.Configure(&f.Opts, f.Config)
	return f
}

// config reads keys with texts. The lines of the keys are noted.
func (d *document) config(k field, node string, lines draft.Lines) graph.Config {
	config := graph.Config{}
	for _, f := range d.fields(k.value, node) {
		config[f.name] = d.text(f, node)
		if _, ok := lines[f.name]; !ok {
			lines[f.name] = f.line
		}
		if strings.Contains(f.name, "\x00") {
			d.fault(f.line, node, "a key of config holds a NUL character")
		}
	}
	return config
}

// nodes reads the nodes of a flow, or of an embedded one. Prefix is the path that they are in.
func (d *document) nodes(k field, prefix string, depth int) *draft.Set {
	s := &draft.Set{}
	owner := strings.TrimSuffix(prefix, ":")
	if depth > graph.MaxDepth {
		d.fault(k.line, "", "flows are embedded more than %d deep", graph.MaxDepth)
		return s
	}
	n := d.use(k.value)
	if n == nil || isNull(n) {
		return s
	}
	if n.Kind != yaml.SequenceNode {
		d.fault(k.line, owner, "nodes: want a list, not %s", kind(n))
		return s
	}
	for _, e := range n.Content {
		if d.nodesLeft--; d.nodesLeft == -1 {
			d.fault(e.Line, "", "more than %d nodes", graph.MaxNodes)
		}
		if d.spent || d.nodesLeft < 0 {
			break
		}
		if at := d.use(e); at != nil && at.Kind != yaml.MappingNode {
			d.fault(e.Line, owner, "nodes: want keys with values (name, type, ...), not %s", kind(at))
			continue
		}
		s.Nodes = append(s.Nodes, d.node(e, prefix, depth))
	}
	return s
}

func (d *document) node(n *yaml.Node, prefix string, depth int) *draft.Node {
	node := &draft.Node{Node: graph.Node{File: d.file, Line: n.Line}, Lines: draft.Lines{}}
	fields := d.fields(n, strings.TrimSuffix(prefix, ":"))
	for _, k := range fields {
		if k.name == "name" {
			node.Name = d.text(k, strings.TrimSuffix(prefix, ":"))
		}
	}
	at := prefix + node.Name
	for _, k := range fields {
		node.Lines[k.name] = k.line
		switch k.name {
		case "name":
		case "type":
			node.Type = strings.TrimSpace(d.text(k, at))
		case "config":
			node.Config = d.config(k, at, node.Lines)
		case "dependsOn":
			node.Lines["dependencies"] = k.line
			for _, p := range d.texts(k, at) {
				node.After = append(node.After, draft.Parent{Name: p.text, Line: p.line})
			}
		case "condition":
			node.Condition = strings.TrimSpace(d.text(k, at))
		case "nodes":
			node.Nodes = d.nodes(k, at+":", depth+1)
		default:
			d.extension(node, k, at)
		}
	}
	return node
}

// extension reads the keys that Azkaban does not have.
func (d *document) extension(node *draft.Node, k field, at string) {
	switch k.name {
	case "queue":
		node.Queue = d.text(k, at)
	case "priority":
		node.Priority = d.number(k, at, 1, 4)
	case "timeout":
		node.Timeout = d.duration(k, at)
	case "retry":
		d.retry(node, k, at)
	case "for_each":
		node.ForEach = d.forEach(k, at)
	default:
		d.fault(k.line, at, "unknown key %s; a node has name, type, config, dependsOn, condition, nodes, queue, priority, timeout, retry, for_each",
			quote(k.name))
	}
}

func (d *document) retry(node *draft.Node, k field, at string) {
	for _, f := range d.fields(k.value, at) {
		name := f.name
		f.name = "retry." + name
		switch name {
		case "max":
			node.Retry.Max, node.Retry.Set = d.number(f, at, 0, math.MaxInt32), true
		case "backoff":
			node.Retry.Backoff = d.duration(f, at)
		case "max_backoff":
			node.Retry.MaxBackoff = d.duration(f, at)
		case "jitter":
			text := d.text(f, at)
			jitter, err := strconv.ParseFloat(text, 64)
			if err != nil || !(jitter >= 0 && jitter <= 1) {
				d.fault(f.line, at, "retry.jitter: %s, want a number from 0 to 1", quote(text))
				continue
			}
			node.Retry.Jitter = jitter
		default:
			d.fault(f.line, at, "unknown key %s; retry has max, backoff, max_backoff, jitter", quote(name))
		}
	}
}

// output is a reference to a parent's output.
var output = regexp.MustCompile(`^\$\{([^:{}]+):([^:{}]+)\}$`)

func (d *document) forEach(k field, at string) *graph.ForEach {
	n := d.use(k.value)
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		f := &graph.ForEach{Items: []string{}}
		for _, i := range d.texts(k, at) {
			f.Items = append(f.Items, i.text)
		}
		return f
	case n.Kind == yaml.ScalarNode:
		if m := output.FindStringSubmatch(strings.TrimSpace(n.Value)); m != nil {
			return &graph.ForEach{Node: m[1], Key: m[2]}
		}
	}
	d.fault(k.line, at, "for_each: want a list, or the output of a parent as ${parent:key}, not %s", kind(n))
	return nil
}

func (d *document) trigger(k field) *graph.Trigger {
	t := &graph.Trigger{}
	for _, f := range d.fields(k.value, "") {
		switch f.name {
		case "maxWaitMins":
			t.MaxWait = graph.Duration(time.Duration(d.number(f, "", 0, 1<<30)) * time.Minute)
		case "schedule":
			t.Schedule = d.schedule(f)
		case "triggerDependencies":
			t.DependsOn = d.dependencies(f)
		default:
			d.fault(f.line, "", "unknown key %s; a trigger has maxWaitMins, schedule, triggerDependencies", quote(f.name))
		}
	}
	return t
}

func (d *document) schedule(k field) (expression string) {
	for _, f := range d.fields(k.value, "") {
		switch f.name {
		case "type":
			if typ := d.text(f, ""); !strings.EqualFold(typ, "cron") {
				d.fault(f.line, "", "trigger: the schedule's type is %s, want cron", quote(typ))
			}
		case "value":
			expression = strings.TrimSpace(d.text(f, ""))
			if check := d.report.CheckTrigger; check != nil && expression != "" {
				if err := check(expression); err != nil {
					d.fault(f.line, "", "trigger: the schedule %s: %v", quote(expression), err)
				}
			}
		default:
			d.fault(f.line, "", "unknown key %s; a schedule has type, value", quote(f.name))
		}
	}
	if expression == "" {
		d.fault(k.line, "", "trigger: the schedule has no value")
	}
	return expression
}

// dependencies returns the names of the data that a trigger waits for in Azkaban.
func (d *document) dependencies(k field) []string {
	n := d.use(k.value)
	if n == nil || isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.fault(k.line, "", "triggerDependencies: want a list, not %s", kind(n))
		return nil
	}
	var names []string
	for i, e := range n.Content {
		if d.spent {
			break
		}
		name := fmt.Sprintf("dependency %d", i+1)
		for _, f := range d.fields(e, "") {
			if f.name == "name" {
				name = d.text(f, "")
			}
		}
		names = append(names, name)
	}
	return names
}

// number reads a whole number.
func (d *document) number(f field, node string, least, most int) int {
	text := d.text(f, node)
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < least || n > most {
		want := fmt.Sprintf("%d to %d", least, most)
		if most >= math.MaxInt32 {
			want = fmt.Sprintf("of %d or more", least)
		}
		d.fault(f.line, node, "%s: %s, want a whole number %s", f.name, quote(text), want)
		return 0
	}
	return n
}

// duration reads text as "90s" or "1h30m", or a number of seconds.
func (d *document) duration(f field, node string) graph.Duration {
	text := strings.TrimSpace(d.text(f, node))
	t, err := time.ParseDuration(text)
	if seconds, e := strconv.ParseFloat(text, 64); e == nil && math.Abs(seconds) < 1e9 {
		t, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || t < 0 {
		d.fault(f.line, node, "%s: %s, want a number of seconds, or text as \"90s\" or \"1h30m\"", f.name, quote(text))
		return 0
	}
	return graph.Duration(t)
}
