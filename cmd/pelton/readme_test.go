package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
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

// The README's example of a command line prints what the README says, but for ids, times and who runs it.
func TestExampleOfCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.launch("worker", "--poll-interval", "100ms").started()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```console\n(\\$ pelton job enqueue.*?)```").FindStringSubmatch(string(text))
	if block == nil {
		t.Fatal("the README has no example that begins with pelton job enqueue")
	}
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	id := ""
	for _, step := range strings.Split(block[1], "$ ")[1:] {
		line, want, _ := strings.Cut(step, "\n")
		if line == "cat jobs.jsonl" {
			if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		args := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)[1:]
		for i, arg := range args {
			args[i] = strings.ReplaceAll(strings.Trim(arg, "'"), "jobs.jsonl", file)
			if regexp.MustCompile(`^\d{16}$`).MatchString(arg) {
				args[i] = id
			}
		}
		got := s.ok(args...)
		if args[0] == "job" && args[1] == "enqueue" && id == "" {
			id = regexp.MustCompile(`\d{16}`).FindString(got)
		}
		if reads := args[1] == "list" || args[1] == "logs"; reads { // of jobs that are worked meanwhile
			pgtest.Eventually(t, patience, func() bool { got = s.ok(args...); return masked(got, file) == masked(want, file) }, "%s to print what the README says", line)
		}
		if masked(got, file) != masked(want, file) {
			t.Errorf("%s printed\n%s, the README says\n%s", line, got, want)
		}
	}
}

// masked is a text of which what differs from run to run, and how wide columns are, is left out.
func masked(text, file string) string {
	text = strings.ReplaceAll(text, file, "jobs.jsonl")
	text = regexp.MustCompile(`os:\S+`).ReplaceAllString(text, "os:user")
	text = regexp.MustCompile(`\d{16}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\d\.\d s`).ReplaceAllString(text, "#")
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}
