package cond

import (
	"fmt"
	"strings"

	"github.com/peltonq/pelton/internal/quantity"
)

// Parents counts how a node's parents have ended. Those that count as a success are SUCCEEDED, SKIPPED and FAILED_SUCCEEDED, as
// a failure FAILED, KILLED and CANCELLED.
type Parents struct {
	Succeeded, Failed int
}

// Holds says whether a macro is true of parents that have all ended. Of no parents, every macro is.
func (m Macro) Holds(p Parents) bool {
	if p.Succeeded+p.Failed == 0 {
		return true
	}
	switch m {
	case AllDone:
		return true
	case AllFailed:
		return p.Succeeded == 0
	case OneSuccess:
		return p.Succeeded > 0
	case OneFailed:
		return p.Failed > 0
	case AllSuccess:
	}
	return p.Failed == 0
}

// Eval says whether the condition holds, for a node whose parents have all ended. output returns an output of a job, and false if it has
// none by that name. If the condition is false, why tells a person what made it so.
func (e *Expr) Eval(parents Parents, output func(job, param string) (string, bool)) (holds bool, why string) {
	if !e.explicit && !AllSuccess.Holds(parents) {
		return false, macroWhy(AllSuccess, parents)
	}
	values := make(map[*node]string, len(e.variables))
	for _, v := range e.variables {
		if value, found := output(v.job, v.param); found {
			values[v] = value
		}
	}
	for _, part := range e.root.conjuncts() {
		if missing := part.missing(values); missing != nil {
			return false, fmt.Sprintf("condition %s was false: %s has no output %s", e.text, missing.job, missing.param)
		}
		if !part.holds(parents, values) {
			return false, e.why(part, parents, values)
		}
	}
	return true, ""
}

// conjuncts are the parts of an expression that all have to hold.
func (n *node) conjuncts() []*node {
	if n.op != "&&" {
		return []*node{n}
	}
	return append(n.left.conjuncts(), n.right.conjuncts()...)
}

// operands calls a function for the variables and macros of an expression, from left to right.
func (n *node) operands(do func(*node)) {
	if n.op == variable || n.op == macroOp {
		do(n)
	}
	for _, side := range []*node{n.left, n.right} {
		if side != nil {
			side.operands(do)
		}
	}
}

// missing is the first output in an expression that is not there; nil if all are.
func (n *node) missing(values map[*node]string) (first *node) {
	n.operands(func(v *node) {
		if _, found := values[v]; v.op == variable && !found && first == nil {
			first = v
		}
	})
	return first
}

func (n *node) holds(parents Parents, values map[*node]string) bool {
	switch n.op {
	case macroOp:
		return n.macro.Holds(parents)
	case "!":
		return !n.left.holds(parents, values)
	case "&&":
		return n.left.holds(parents, values) && n.right.holds(parents, values)
	case "||":
		return n.left.holds(parents, values) || n.right.holds(parents, values)
	default:
		return n.compare(n.left.valueOf(values), n.right.valueOf(values))
	}
}

func (n *node) valueOf(values map[*node]string) string {
	if n.op == variable {
		return values[n]
	}
	return n.value
}

// compare compares two values by the node's operator.
func (n *node) compare(left, right string) bool {
	order := strings.Compare(left, right)
	if n.left.op != quoted && n.right.op != quoted && isNumber(left) && isNumber(right) {
		order = compareNumbers(left, right)
	}
	switch n.op {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "<":
		return order < 0
	default:
		return order <= 0
	}
}

// why says which values made the condition false, by that part of it which is the first that was.
func (e *Expr) why(part *node, parents Parents, values map[*node]string) string {
	if part.op == macroOp {
		why := macroWhy(part.macro, parents)
		if part == e.root {
			return why
		}
		return fmt.Sprintf("condition %s was false: %s", e.text, why)
	}
	var facts []string
	said := map[string]bool{}
	part.operands(func(v *node) {
		switch {
		case said[v.text]:
			return
		case v.op == macroOp:
			facts = append(facts, parents.String())
		default:
			facts = append(facts, fmt.Sprintf("%s's %s is %s", v.job, v.param, shown(values[v])))
		}
		said[v.text] = true
	})
	if len(facts) == 0 {
		return fmt.Sprintf("condition %s was false", e.text)
	}
	return fmt.Sprintf("condition %s was false: %s", e.text, strings.Join(facts, ", "))
}

// macroWhy says why a macro was false.
func macroWhy(m Macro, p Parents) string {
	return fmt.Sprintf("%s was false: %s", m, p)
}

// String is for people.
func (p Parents) String() string {
	return fmt.Sprintf("of %s %d succeeded and %d failed", quantity.Of(p.Succeeded+p.Failed, "parent"), p.Succeeded, p.Failed)
}

// shown quotes a value for a person, shortened.
func shown(value string) string {
	const limit = 100
	if len(value) > limit {
		value = strings.ToValidUTF8(value[:limit], "") + "..."
	}
	return "'" + value + "'"
}
