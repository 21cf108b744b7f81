package cond

import (
	"fmt"
	"slices"
	"strings"
)

// Macro is a question about a node's parents.
type Macro string

// The macros.
const (
	AllSuccess Macro = "all_success"
	AllDone    Macro = "all_done"
	AllFailed  Macro = "all_failed"
	OneSuccess Macro = "one_success"
	OneFailed  Macro = "one_failed"
)

var macros = []Macro{AllSuccess, AllDone, AllFailed, OneSuccess, OneFailed}

func macroNames() []string {
	names := make([]string, len(macros))
	for i, m := range macros {
		names[i] = string(m)
	}
	return names
}

// macroOf returns the macro that a word names, in any case; "" if it names none.
func macroOf(word string) Macro {
	m := Macro(strings.ToLower(word))
	if slices.Contains(macros, m) {
		return m
	}
	return ""
}

// Error says what is wrong with a condition and where.
type Error struct {
	At     int    // byte offset in the condition
	Reason string // for people
}

func (e *Error) Error() string {
	return fmt.Sprintf("condition, at character %d: %s", e.At+1, e.Reason)
}

func fault(at int, format string, args ...any) error {
	return &Error{At: at, Reason: fmt.Sprintf(format, args...)}
}

// Expr is a condition.
type Expr struct {
	text      string
	root      *node
	macro     Macro
	explicit  bool // the macro was written
	variables []*node
}

// node is a node of an expression's tree. op is an operator, or the kind of an operand, or macroOp.
type node struct {
	op          kind
	left, right *node
	text        string // as written, of an operand
	at          int

	job, param string // of a variable
	value      string // of a number or a text
	macro      Macro
}

const macroOp kind = "macro"

// isOperand says whether the node is something to compare, not something that is true or false.
func (n *node) isOperand() bool { return n.op == variable || n.op == number || n.op == quoted }

// String returns the condition as it was written.
func (e *Expr) String() string { return e.text }

// Macro returns the condition's macro: AllSuccess if none is written.
func (e *Expr) Macro() Macro { return e.macro }

// Required says whether the condition cannot hold without its macro, which is the only way in which Azkaban reads it: the macro is joined
// by && to whatever else there is.
func (e *Expr) Required() bool { return !e.explicit || requires(e.root) }

func requires(n *node) bool {
	return n.op == macroOp || n.op == "&&" && (requires(n.left) || requires(n.right))
}

// Variable is ${job:param}.
type Variable struct{ Job, Param string }

// Variables returns what the condition refers to, in its order.
func (e *Expr) Variables() []Variable {
	list := make([]Variable, len(e.variables))
	for i, v := range e.variables {
		list[i] = Variable{v.job, v.param}
	}
	return list
}

// Jobs returns the names of the jobs whose outputs the condition refers to, sorted.
func (e *Expr) Jobs() []string {
	names := make([]string, 0, len(e.variables))
	for _, v := range e.variables {
		names = append(names, v.job)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
