package project

import (
	"slices"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/line"
)

// surprises says what in a command line would work in a shell and does not without one. A character behind quotes is data for
// everybody, except for a variable in double quotes.
func surprises(text string) []string {
	text = strings.TrimSpace(text)
	words := strings.Fields(text)
	if len(words) > 1 && line.IsShell(words[0]) && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		return nil
	}
	var found []string
	add := func(what string) {
		if len(found) < 20 && !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	const instead = "; there is no shell: use bash -c '...'"
	quote := rune(0)
	runes := []rune(text)
	at := func(i int) rune {
		if i < len(runes) {
			return runes[i]
		}
		return 0
	}
	for i, r := range runes {
		switch {
		case r == '$' && quote != '\'' && isLetter(at(i+1)):
			add(variable(runes[i:]) + " is passed on as text" + instead)
		case r == '$' && at(i+1) == '(' && isLetter(at(i+2)):
			add("$(...) is arithmetic, not the output of a command" + instead)
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '`':
			add("` is passed on as text" + instead)
		case r == '|' && at(i+1) == '|' || r == '&' && at(i+1) == '&':
			add(string([]rune{r, r}) + " is an argument" + instead)
		case i > 0 && (r == '|' || r == '&') && runes[i-1] == r:
		case r == '|':
			add("| is no pipe but an argument" + instead)
		case r == '>' || r == '<':
			add(string(r) + " redirects nothing" + instead)
		case r == ';' || r == '&':
			add(string(r) + " separates no commands" + instead)
		case r == '*' || r == '?' && at(i+1) == '.':
			add(string(r) + " stands for no file names" + instead)
		case strings.ContainsRune("“”‘’", r):
			add("curly quotes (“ ” ‘ ’) are letters: words are split inside them")
		case r == '~' && (i == 0 || runes[i-1] == ' ') && (at(i+1) == '/' || at(i+1) == ' ' || at(i+1) == 0):
			add("~ is not the home directory" + instead)
		case r == '\n':
			add("several lines are one command: a line's end separates words only")
		}
	}
	if quote != 0 {
		add("the quote " + string(quote) + " is not closed")
	}
	return found
}

func isLetter(r rune) bool { return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// variable returns the variable that a text begins with.
func variable(text []rune) string {
	const longest = 60
	end := 1
	for end < min(longest, len(text)) && (isLetter(text[end]) || text[end] >= '0' && text[end] <= '9') {
		end++
	}
	return string(text[:end])
}
