package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The README's table names every command; where it names some of a command's verbs, it names them all, and none that there is not.
func TestTableOfCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	named, verbs := map[string]bool{}, map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`pelton .*?) \\| ").FindAllSubmatch(text, -1) {
		for _, cell := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(row[1]), -1) {
			name, more, _ := strings.Cut(strings.TrimPrefix(cell[1], "pelton "), " ")
			named[name] = true
			if more != "" {
				verbs[name] = append(verbs[name], strings.Split(more, `\|`)...)
			}
		}
	}
	commands := (&app{}).root().Commands()
	for _, c := range commands {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if !named[c.Name()] {
			t.Errorf("the table has no pelton %s", c.Name())
		}
		delete(named, c.Name())
		if listed := verbs[c.Name()]; len(listed) > 0 {
			var all []string
			for _, verb := range c.Commands() {
				all = append(all, verb.Name())
			}
			slices.Sort(listed)
			if slices.Sort(all); !slices.Equal(listed, all) {
				t.Errorf("pelton %s: the table names %v, there are %v", c.Name(), listed, all)
			}
		}
	}
	if len(named) > 0 || len(verbs) < 4 {
		t.Errorf("there are no commands %v; verbs of %d commands are named", named, len(verbs))
	}
}
