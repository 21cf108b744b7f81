package cond

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is what a token is; operators and parentheses are their own text.
type kind string

const (
	end      kind = ""
	variable kind = "variable" // ${job:param}
	number   kind = "number"
	quoted   kind = "text"
	word     kind = "word"
)

// token is a piece of a condition.
type token struct {
	kind kind
	text string // as written
	at   int    // offset in the condition

	job, param string // of a variable
	value      string // of a number or a text
}

// operators, longer ones first.
var operators = []string{"&&", "||", "==", "!=", ">=", "<=", ">", "<", "!", "(", ")"}

// next cuts the next token from text, starting at an offset.
func next(text string, at int) (token, error) {
	for at < len(text) && isSpace(text[at]) {
		at++
	}
	rest := text[at:]
	if rest == "" {
		return token{at: at}, nil
	}
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "${"):
		return cutVariable(rest, at)
	case c == '\'' || c == '"':
		return cutQuoted(rest, at)
	case isWordByte(c) || c == '-' || c == '+' || c == '.':
		return cutWord(rest, at)
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			return token{kind: kind(op), text: op, at: at}, nil
		}
	}
	return token{}, notExpression(rest, at)
}

// cutVariable cuts ${job:param}.
func cutVariable(rest string, at int) (token, error) {
	closing := strings.IndexByte(rest, '}')
	if closing < 0 {
		return token{}, fault(at, "%s has no closing brace", excerpt(rest))
	}
	text := rest[:closing+1]
	job, param, found := strings.Cut(text[2:closing], ":")
	if !found || job == "" || param == "" || strings.ContainsAny(job+param, ":{}$") {
		return token{}, fault(at, "%s is no expression: an output is written ${job:param}", excerpt(text))
	}
	return token{kind: variable, text: text, at: at, job: strings.TrimSpace(job), param: strings.TrimSpace(param)}, nil
}

// cutQuoted cuts '...' or "...".
func cutQuoted(rest string, at int) (token, error) {
	var value strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == rest[0]:
			return token{kind: quoted, text: rest[:i+1], at: at, value: value.String()}, nil
		case c == '\\' && i+1 < len(rest):
			i++
			value.WriteByte(rest[i])
		default:
			value.WriteByte(c)
		}
	}
	return token{}, fault(at, "the text %s has no closing quote", excerpt(rest))
}

// cutWord cuts a number or a word.
func cutWord(rest string, at int) (token, error) {
	n := 1
	for n < len(rest) && (isWordByte(rest[n]) || rest[n] == '.' || isSignOfExponent(rest, n)) {
		n++
	}
	text := rest[:n]
	if isNumber(text) {
		return token{kind: number, text: text, at: at, value: text}, nil
	}
	if !isWordByte(text[0]) {
		return token{}, notExpression(rest, at)
	}
	return token{kind: word, text: text, at: at}, nil
}

// notExpression says that what stands at an offset is nothing that a condition is made of.
func notExpression(rest string, at int) error {
	// Up to the next space it is likely one thing in its author's eyes.
	if space := strings.IndexFunc(rest, func(r rune) bool { return r < utf8.RuneSelf && isSpace(byte(r)) }); space > 0 {
		rest = rest[:space]
	}
	return fault(at, "%s is no expression: a condition is made of macros (%s) and comparisons like ${job:param} == 'value', "+
		"joined by && and ||", excerpt(rest), strings.Join(macroNames(), ", "))
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isSignOfExponent says whether the sign in 1e-3 stands at i.
func isSignOfExponent(s string, i int) bool {
	return (s[i] == '-' || s[i] == '+') && (s[i-1] == 'e' || s[i-1] == 'E') && '0' <= s[0] && s[0] <= '9'
}

// excerpt quotes a part of a condition for a message.
func excerpt(s string) string {
	const limit = 60
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}
