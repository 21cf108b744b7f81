package draft

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/peltonq/pelton/internal/suggest"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Azkaban's limits of a Java process.
const (
	DefaultMaxXms = 1 << 30
	DefaultMaxXmx = 2 << 30
)

// Rules are what a project is checked against beside its own structure.
type Rules struct {
	// Types are the job kinds and the mapped types that nodes may have, beside the built-in ones.
	Types []string

	// Kinds are those of Types that are job kinds, and not mapped to a command.
	Kinds []string

	// MaxXms and MaxXmx are the greatest heaps that a Java process may ask for, in bytes. Default to 1 GiB and 2 GiB.
	MaxXms, MaxXmx int64
}

var builtIn = []string{graph.TypeCommand, graph.TypeJavaProcess, graph.TypeNoop, graph.TypeFlow}

// BuiltIn says whether a type is one of the engine's own.
func BuiltIn(typ string) bool { return slices.Contains(builtIn, typ) }

func (r Rules) withDefaults() Rules {
	if r.MaxXms == 0 {
		r.MaxXms = DefaultMaxXms
	}
	if r.MaxXmx == 0 {
		r.MaxXmx = DefaultMaxXmx
	}
	return r
}

func (r Rules) knows(typ string) bool {
	return BuiltIn(typ) || slices.Contains(r.Types, typ)
}

// Unknown gathers the nodes whose type is none that nodes can have, so that each such type is told of once.
type Unknown struct {
	nodes map[string][]graph.Fault // by type: where they are
	order []string
}

// Add notes a node, if its type is unknown.
func (u *Unknown) Add(r Rules, typ string, at graph.Fault) {
	if r.knows(typ) {
		return
	}
	if u.nodes == nil {
		u.nodes = map[string][]graph.Fault{}
	}
	if u.nodes[typ] == nil {
		u.order = append(u.order, typ)
	}
	u.nodes[typ] = append(u.nodes[typ], at)
}

// Faults is one for each type, at the first of its nodes.
func (u *Unknown) Faults(r Rules) []graph.Fault {
	faults := make([]graph.Fault, len(u.order))
	for i, typ := range u.order {
		at := u.nodes[typ]
		faults[i] = at[0]
		faults[i].Reason = fmt.Sprintf("unknown type %q%s: it is neither built in (%s), nor a job kind that a live worker knows, nor mapped to a command%s "+
			"Start a worker of that kind before you push, or map it: pelton flow push --flow-type '%s=COMMAND'",
			typ, others(at[1:]), strings.Join(builtIn, ", "), r.near(typ), plainType(typ))
	}
	return faults
}

// plainType is a type as somebody may type it, or a word that stands for it.
func plainType(typ string) string {
	if strings.ContainsFunc(typ, func(c rune) bool { return c == '\'' || c == '=' || !unicode.IsPrint(c) }) {
		return "TYPE"
	}
	return typ
}

// others names the first of the other nodes of an unknown type.
func others(at []graph.Fault) string {
	const most = 3
	if len(at) == 0 {
		return ""
	}
	names := make([]string, 0, most)
	for _, n := range at[:min(len(at), most)] {
		names = append(names, fmt.Sprintf("%.100q", n.Node))
	}
	text := ", also of " + strings.Join(names, ", ")
	if more := len(at) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// near names the type that somebody may have meant, else the kinds and mapped types that there are, if they are few.
func (r Rules) near(typ string) string {
	const most = 10
	types := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(r.Types))), BuiltIn)
	near := suggest.Near(typ, append(slices.Clone(builtIn), types...))
	switch {
	case strings.HasPrefix(near, "; did you mean"):
		return near
	case len(types) == 0 || len(types) > most:
		return "."
	}
	return "; known are " + strings.Join(types, ", ") + "."
}

// TypesOf returns the types of a project's nodes: for code, which knows its own job kinds.
func TypesOf(p *Project) []string {
	types, seen := map[string]bool{}, map[*Set]bool{}
	var visit func(s *Set)
	visit = func(s *Set) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		for _, n := range s.Nodes {
			types[n.Type] = true
			visit(n.Nodes)
		}
	}
	visit(p.Jobs)
	for _, f := range p.Flows {
		visit(f.Nodes)
	}
	return slices.Collect(maps.Keys(types))
}

// ParseMemory reads a size as Java's -Xmx takes it: "512M", "2g", "1024".
func ParseMemory(text string) (int64, error) {
	digits, shift := strings.ToUpper(strings.TrimSpace(text)), 0
	if n := len(digits); n > 0 {
		if unit := strings.IndexByte("KMGT", digits[n-1]); unit >= 0 {
			digits, shift = digits[:n-1], 10*(unit+1)
		}
	}
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || size < 0 || size > (1<<62)>>shift {
		return 0, fmt.Errorf("%q is no size of memory, want one such as 512M or 2G", text)
	}
	return size << shift, nil
}

// isParameter tells whether a text is only known when the node runs.
func isParameter(text string) bool {
	return strings.Contains(text, "${") || strings.Contains(text, "$(")
}
