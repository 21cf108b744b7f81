// Package cond reads and evaluates the condition of a flow's node: at most one macro about the node's parents and comparisons
// of jobs' outputs, joined by &&, ||, ! and parentheses.
//
//	one_success && (${jobA:rows} > 100 || ${jobA:mode} == 'full')
//
// Macros are all_success, all_done, all_failed, one_success and one_failed, in any case. Without one, all_success is asked
// for beside the rest. A macro is true or false where it stands in the expression, and all of them ask about parents that have all ended:
// who evaluates a condition waits for that. Azkaban differs where a macro is not joined by && alone: there it must hold whatever the
// rest says. Required tells such conditions apart.
//
// Operands of ==, !=, >, >=, <, <= are ${job:param}, a number, and text in '...' or "..." (a backslash takes the next character as
// it is). If neither side is quoted and both are numbers, numbers are compared, otherwise texts, byte by byte.
//
// An output that a job does not have makes the whole condition false, whatever the rest of it says, so that a comparison by != does not
// hold for what was never written. That is Azkaban's rule.
//
// The package calls out to nothing: there is no expression engine. Length and nesting of a condition are bounded.
package cond
