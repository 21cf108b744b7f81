package line_test

import (
	"slices"
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/line"
)

func TestWordsAsInAzkaban(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                               nil,
		"   ":                            nil,
		"echo  a b ":                     {"echo", "a", "b"},
		`echo "a  b" 'c  d'`:             {"echo", "a  b", "c  d"},
		`echo "it's" 'say "hi"'`:         {"echo", "it's", `say "hi"`},
		`a"b c"d`:                        {"ab cd"},
		`bash -c 'exit $(( 1 ))'`:        {"bash", "-c", "exit $(( 1 ))"},
		`echo $HOME | wc > x && y \" z"`: {"echo", "$HOME", "|", "wc", ">", "x", "&&", "y", `\ z`},
		"cut -d\t -f1":                   {"cut", "-d\t", "-f1"},
		"echo a\n":                       {"echo", "a\n"},
		`echo '' "" x`:                   {"echo", "x"},
		`echo it's all one`:              {"echo", "its all one"},
		"echo 日本語 'ü ö' \xff":            {"echo", "日本語", "ü ö", "\xff"},
		"echo “curly quotes”":            {"echo", "“curly", "quotes”"},
	} {
		if got := line.Split(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{ // the word that is a script
		"bash -c 'a b' c":                   2,
		"/bin/sh -euc 'a b'":                2,
		"bash -o pipefail -c 'a' -c 'b'":    4,
		"bash --norc -c a":                  3,
		"nice -n 5 bash -c a":               5,
		"bash script.sh -x a":               -1,
		"mysql -c a":                        -1,
		"-c a":                              -1,
		"grep -c a":                         -1,
		"bash -c":                           -1,
		"env A=1 timeout 5 sh -c 'x' sh -c": 6,
	} {
		argv := line.Split(text)
		got := -1
		for at := range argv {
			if line.IsScript(argv, at) {
				got = at
			}
		}
		if got != want {
			t.Errorf("%q: word %d is the script, want %d", text, got, want)
		}
	}
}
