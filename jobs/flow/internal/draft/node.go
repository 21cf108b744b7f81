package draft

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Bounds of the extensions.
const (
	maxRetries = 10_000
	maxItems   = graph.MaxNodes
)

// badName says what is wrong with a name, "" if nothing is.
func badName(name, format string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "is empty"
	case len(name) > graph.MaxName:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(name), graph.MaxName)
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.Contains(name, ":"):
		return "holds a colon, which separates the names of embedded flows"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "holds a control character"
	case format == graph.FormatFlow1 && name == "ROOT":
		return "is reserved"
	}
	return ""
}

// node checks one node, and what is in it.
func (c *checker) node(n *Node, prefix string, inherited []graph.Config) {
	fault := func(key, format string, args ...any) { c.fault(n, prefix, key, format, args...) }
	if reason := badName(n.Name, c.project.Format); reason != "" {
		fault("name", "name %q %s", n.Name, reason)
	}
	missing := func(key string) bool {
		for _, config := range inherited {
			if strings.TrimSpace(config[key]) != "" {
				return false
			}
		}
		return strings.TrimSpace(n.Config[key]) == "" && strings.TrimSpace(n.Shared[key]) == ""
	}
	switch {
	case n.Type == "":
		fault("type", "type is missing")
	case !c.rules.knows(n.Type):
		c.unknown.Add(c.rules, n.Type, graph.Fault{File: n.File, Line: n.Lines.of("type", n.Line), Node: prefix + n.Name})
	case n.Type == graph.TypeCommand && n.Args == nil && missing("command"):
		fault("command", "command is missing")
	case n.Type == graph.TypeJavaProcess && missing("java.class"):
		fault("java.class", "java.class is missing")
	}
	c.config(n.Config, fault)
	c.secrets(n, inherited, fault)
	c.extensions(n, fault)
	c.contents(n, prefix, inherited, fault)
}

// contents checks the nodes of an embedded flow.
func (c *checker) contents(n *Node, prefix string, inherited []graph.Config, fault faultFunc) {
	switch {
	case n.Type != graph.TypeFlow:
		if n.Nodes != nil {
			fault("nodes", "has nodes, but its type is %q: an embedded flow has type flow", n.Type)
		}
	case c.project.Jobs != nil:
		c.embeds(n, fault)
	case n.Nodes == nil || len(n.Nodes.Nodes) == 0:
		fault("nodes", "an embedded flow needs nodes")
	default:
		c.set(n.Nodes, prefix+n.Name+":", append([]graph.Config{n.Config}, inherited...))
	}
}

// embeds checks the flow that a node of a Flow 1.0 project names.
func (c *checker) embeds(n *Node, fault faultFunc) {
	switch {
	case n.Embeds == "":
		fault("flow.name", "flow.name is missing: it names the flow to embed")
	case c.flows[n.Embeds] != nil:
	case c.isJob(n.Embeds):
		fault("flow.name", "flow.name is %q, which is no flow: other jobs depend on that job; root.node=true in it makes it a flow too", n.Embeds)
	default:
		fault("flow.name", "flow.name is %q, but the project has no such flow", n.Embeds)
	}
}

func (c *checker) isJob(name string) bool {
	_, ok := c.jobs[name]
	return ok
}

// instance is how the instances of a for_each are named.
var instance = regexp.MustCompile(`^(.+)\[\d+\]$`)

// queueName is the rule that jobs has for names of queues.
var queueName = regexp.MustCompile(`^[a-z0-9]+([_|-][a-z0-9]+)*$`)

// BadQueue says what is wrong with the name of a queue, "" if nothing is.
func BadQueue(name string) string {
	if len(name) > 64 || !queueName.MatchString(name) {
		return "want up to 64 lower-case letters and digits, separated by single _ or -"
	}
	return ""
}

// extensions checks the keys that Azkaban does not have.
func (c *checker) extensions(n *Node, fault faultFunc) {
	if n.Queue != "" {
		if reason := BadQueue(n.Queue); reason != "" {
			fault("queue", "queue %q: %s", n.Queue, reason)
		}
	}
	if n.Priority < 0 || n.Priority > 4 {
		fault("priority", "priority is %d, want 1 (first) to 4", n.Priority)
	}
	if n.Timeout < 0 {
		fault("timeout", "timeout is negative")
	}
	switch r := n.Retry; {
	case r.Max < 0 || r.Max > maxRetries:
		fault("retry", "retries are %d, want 0 to %d", r.Max, maxRetries)
	case r.Backoff < 0 || r.MaxBackoff < 0:
		fault("retry", "the backoff of retries is negative")
	case r.MaxBackoff > 0 && r.MaxBackoff < r.Backoff:
		fault("retry", "max_backoff is shorter than backoff")
	case !(r.Jitter >= 0 && r.Jitter <= 1):
		fault("retry", "jitter is %v, want 0 to 1", r.Jitter)
	}
	c.forEach(n, fault)
}

func (c *checker) forEach(n *Node, fault faultFunc) {
	f := n.ForEach
	if f == nil {
		return
	}
	if n.Type == graph.TypeFlow {
		fault("for_each", "for_each of an embedded flow is not supported")
	}
	if len(f.Items) > maxItems {
		fault("for_each", "for_each has %d items, at most %d are allowed", len(f.Items), maxItems)
	}
	if f.Node == "" {
		return
	}
	if f.Key == "" {
		fault("for_each", "for_each: the key of the output of %q is missing", f.Node)
	}
	for _, p := range n.After {
		if p.Name == f.Node {
			return
		}
	}
	fault("for_each", "for_each uses the output of %q, which is none of its parents", f.Node)
}
