package draft

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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

// Unknown says what is wrong with a type that nodes cannot have; "" if they can.
func (r Rules) Unknown(typ string) string {
	if r.knows(typ) {
		return ""
	}
	return unknownType(typ)
}

func unknownType(typ string) string {
	return fmt.Sprintf("unknown type %q: it is neither built in (%s), nor a registered job kind, nor mapped to a command", typ, strings.Join(builtIn, ", "))
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
