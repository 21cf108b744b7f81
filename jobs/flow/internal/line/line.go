package line

import (
	"path"
	"slices"
	"strings"
)

// Split splits a command as Azkaban does: at spaces, and at nothing else, outside '...' and "...". The quotes go away. Words that
// are empty do too, and a quote that is not closed reaches to the end.
func Split(text string) (list []string) {
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			list = append(list, word.String())
		}
		word.Reset()
	}
	quote := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && c == ' ':
			end()
		default:
			word.WriteByte(c)
		}
	}
	end()
	return list
}

var shells = []string{"sh", "bash", "dash", "ksh", "zsh", "ash"}

// IsShell tells whether a word calls a shell.
func IsShell(word string) bool { return slices.Contains(shells, path.Base(word)) }

// IsScript tells whether a word of a command is what a shell runs: the one behind the first -c behind the shell.
func IsScript(argv []string, at int) bool {
	shell := slices.IndexFunc(argv[:at], IsShell)
	return shell >= 0 && at > shell+1 && slices.IndexFunc(argv[shell+1:], isMinusC) == at-shell-2
}

func isMinusC(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.HasSuffix(word, "c")
}
