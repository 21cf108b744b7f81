package cond

import (
	"fmt"
	"strings"
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
		value, found := output(v.job, v.param)
		if !found {
			return false, fmt.Sprintf("condition %s was false: %s has no output %s", e.text, v.job, v.param)
		}
		values[v] = value
	}
	if e.root.holds(parents, values) {
		return true, ""
	}
	if len(e.variables) == 0 && e.root.op == macroOp {
		return false, macroWhy(e.macro, parents)
	}
	return false, e.why(parents, values)
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

// why says which values made the condition false.
func (e *Expr) why(parents Parents, values map[*node]string) string {
	var facts []string
	if e.explicit {
		facts = append(facts, fmt.Sprintf("of %d parents %d succeeded and %d failed",
			parents.Succeeded+parents.Failed, parents.Succeeded, parents.Failed))
	}
	said := map[string]bool{}
	for _, v := range e.variables {
		if said[v.text] {
			continue
		}
		said[v.text] = true
		facts = append(facts, fmt.Sprintf("%s's %s is %s", v.job, v.param, shown(values[v])))
	}
	if len(facts) == 0 {
		return fmt.Sprintf("condition %s was false", e.text)
	}
	return fmt.Sprintf("condition %s was false: %s", e.text, strings.Join(facts, ", "))
}

// macroWhy says why a condition that is a macro alone was false.
func macroWhy(m Macro, p Parents) string {
	return fmt.Sprintf("%s was false: of %d parents %d succeeded and %d failed", m, p.Succeeded+p.Failed, p.Succeeded, p.Failed)
}

// shown quotes a value for a person, shortened.
func shown(value string) string {
	const limit = 100
	if len(value) > limit {
		value = strings.ToValidUTF8(value[:limit], "") + "..."
	}
	return "'" + value + "'"
}
