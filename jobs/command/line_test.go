package command

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                        nil,
		"  ":                      nil,
		"echo":                    {"echo"},
		" a\tb\n c ":              {"a", "b", "c"},
		`echo "a  b" 'c  d'`:      {"echo", "a  b", "c  d"},
		`echo "it's" 'say "hi"'`:  {"echo", "it's", `say "hi"`},
		`a"b c"d`:                 {"ab cd"},
		`'' x ""`:                 {"", "x", ""},
		`echo $HOME \n | wc > x`:  {"echo", "$HOME", `\n`, "|", "wc", ">", "x"},
		`echo 日本語 'ü ö'`:          {"echo", "日本語", "ü ö"},
		"echo \xff'\xfe \xfd'":    {"echo", "\xff\xfe \xfd"},
		`bash -c 'exit $(( 1 ))'`: {"bash", "-c", "exit $(( 1 ))"},
	} {
		if got, err := splitLine(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q: %v", text, got, want, err)
		}
	}
	for _, text := range []string{`'`, `a "b`, `"'`, `a'b"c"`} {
		if got, err := splitLine(text); err == nil {
			t.Errorf("%q: got %q, want an error", text, got)
		}
	}
}

// FuzzSplitLine quotes the words that came out and splits again; nothing but white space and quotes may be lost.
func FuzzSplitLine(f *testing.F) {
	f.Add(`echo "a  b" 'c  d' e\ f`)
	f.Add("\x00\xff '")
	f.Fuzz(func(t *testing.T, text string) {
		words, err := splitLine(text)
		if err != nil {
			return
		}
		strip := func(s string) string {
			return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
				return strings.ContainsRune(" \t\r\n'\"", r)
			}), "")
		}
		if got := strip(strings.Join(words, "")); got != strip(text) {
			t.Fatalf("%q became %q", text, words)
		}
		quoted := make([]string, len(words))
		for i, word := range words {
			if strings.Contains(word, "'") {
				if strings.Contains(word, `"`) {
					return
				}
				quoted[i] = `"` + word + `"`
				continue
			}
			quoted[i] = "'" + word + "'"
		}
		if again, err := splitLine(strings.Join(quoted, " ")); err != nil || !slices.Equal(again, words) {
			t.Fatalf("%q became %q, and quoted %q: %v", text, words, again, err)
		}
	})
}
