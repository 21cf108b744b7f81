package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

// example is a command of the documentation, and what it prints.
type example struct {
	line    int
	command string
	prints  string
}

// examplesOf are the commands of a text's console blocks.
func examplesOf(text string) (list []example) {
	inside := false
	for i, line := range strings.Split(text, "\n") {
		switch rest, isCommand := strings.CutPrefix(line, "$ "); {
		case line == "```console":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside && isCommand:
			list = append(list, example{line: i + 1, command: rest})
		case inside:
			list[len(list)-1].prints += line + "\n"
		}
	}
	return list
}

// The examples of docs/api.md are run, in turn, by a shell with curl. What they print must have all that the documentation shows: with
// the same values, but for times; ids and cursors of the documentation stand for those that the server gave in their place.
func TestExamplesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl on this machine; CI has one")
	}
	s := start(t)
	text, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	s.workAll()
	dir := t.TempDir()
	project := zipped(t, map[string]string{"shop.project": projectFile, "nightly.flow": block(t, string(text), "yaml")})
	if err := os.WriteFile(filepath.Join(dir, "shop.zip"), []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	known := map[string]string{} // of the documentation: what it stands for here
	examples := examplesOf(string(text))
	if len(examples) < 60 {
		t.Errorf("only %d examples were found", len(examples))
	}
	for _, e := range examples {
		line := e.command
		for doc, here := range known {
			line = strings.ReplaceAll(line, doc, here)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PELTON="+s.url, "TOKEN="+s.tokens[access.Operator], "ADMIN_TOKEN="+s.tokens[access.Admin])
		var problems bytes.Buffer
		cmd.Stderr = &problems
		out, err := cmd.Output()
		cancel()
		if err != nil {
			t.Fatalf("docs/api.md:%d: %v: %s", e.line, err, problems.String())
		}
		if fault := shows(e.prints, string(out), known); fault != "" {
			t.Fatalf("docs/api.md:%d: %s\n%s\nprints\n%s\nwant\n%s", e.line, fault, line, out, e.prints)
		}
		s.waitForQuiet()
	}
}

// block is what is in the only block of a language.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "```"+language+"\n")
	inside, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("the documentation has no block of %s", language)
	}
	return inside
}

// workAll works commands, those of flows too, advances flows and fires schedules.
func (s *service) workAll() {
	s.t.Helper()
	workers := jobs.NewWorkers()
	command.Register(workers, command.Config{})
	if err := flow.AddWorkers(workers, s.pool, flow.WorkerConfig{FilesDir: s.t.TempDir()}); err != nil {
		s.t.Fatal(err)
	}
	client, err := jobs.NewClient(s.pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 5}}, Workers: workers, Logger: slog.New(slog.DiscardHandler), ID: "worker-1",
		DutiesOff: true, // a pass over the partitions would keep that of the examples from its work
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.run(client)
	flows, err := flow.NewClient(s.pool, client, &flow.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	schedules, err := periodic.NewClient(s.pool, client, flows, &periodic.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	flows.Start(s.t.Context())
	s.t.Cleanup(flows.Stop)
	if err := schedules.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(schedules.Stop)
}

// waitForQuiet waits until nothing is to be done any more, but what is in a queue that nobody works.
func (s *service) waitForQuiet() {
	s.t.Helper()
	const busy = `SELECT EXISTS (SELECT FROM pelton.job_state s JOIN pelton.job j ON j.id = s.job_id
			WHERE j.kind IN ('command', 'flow_command') AND j.queue = 'default' AND s.state NOT IN ('completed', 'cancelled', 'discarded'))
		OR EXISTS (SELECT FROM pelton.flow_report)
		OR EXISTS (SELECT FROM pelton.flow_run WHERE status IN ('PREPARING', 'KILLING'))
		OR EXISTS (SELECT FROM pelton.schedule_backfill WHERE status = 'running')`
	pgtest.Eventually(s.t, patience, func() (quiet bool) {
		if err := s.pool.QueryRow(s.t.Context(), "SELECT NOT ("+busy+")").Scan(&quiet); err != nil {
			s.t.Fatal(err)
		}
		return quiet
	}, "all to be done")
}

// shows tells what is missing in an output; empty: nothing.
func shows(doc, here string, known map[string]string) string {
	var want, got any
	if json.Unmarshal([]byte(doc), &want) != nil {
		digits := regexp.MustCompile(`\d+`)
		if w, g := digits.ReplaceAllString(strings.TrimSpace(doc), "0"), digits.ReplaceAllString(strings.TrimSpace(here), "0"); w != g {
			return "the text differs"
		}
		return ""
	}
	for value, text := range map[*any]string{&want: doc, &got: here} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(value); err != nil {
			return "no JSON: " + err.Error()
		}
	}
	return has("", want, got, known)
}

// stand are the fields whose values in the documentation stand for others.
var stand = []string{"id", "job_id", "new_job_id", "next_cursor", "backfill_id"}

// standsIn tells whether a field's value in the documentation stands for another. A run of a flow is known by its large number: those of jobs
// are counted, and are as the documentation says.
func standsIn(name string, value any) bool {
	return slices.Contains(stand, name) || name == "run" && len(fmt.Sprint(value)) > len("999")
}

// has tells where a value lacks what another has.
func has(at string, want, got any, known map[string]string) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return at + " is no object"
		}
		for _, name := range sortedKeys(want) {
			value, there := object[name]
			if !there {
				return at + "." + name + " is missing"
			}
			if standsIn(name, want[name]) {
				doc, here := fmt.Sprint(want[name]), fmt.Sprint(value)
				if before, met := known[doc]; met && before != here {
					return at + "." + name + " is another"
				}
				known[doc] = here
				continue
			}
			if fault := has(at+"."+name, want[name], value, known); fault != "" {
				return fault
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s is no list of %d", at, len(want))
		}
		for i := range want {
			if fault := has(fmt.Sprintf("%s[%d]", at, i), want[i], list[i], known); fault != "" {
				return fault
			}
		}
		return ""
	case string:
		if text, ok := got.(string); ok && isTime(text) && isTime(want) {
			return ""
		}
	}
	if want != got {
		return fmt.Sprintf("%s is %v, want %v", at, got, want)
	}
	return ""
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

func sortedKeys(object map[string]any) []string {
	var keys []string
	for name := range object {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

// The documentation explains every type of problem.
func TestTypesOfProblemsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("problem.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\t"([a-z-]+)": +\{http\.Status`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 20 {
		t.Errorf("only %d types were found", len(found))
	}
	for _, kind := range found {
		if !strings.Contains(string(text), "`"+kind[1]+"`") {
			t.Errorf("docs/api.md does not explain %s", kind[1])
		}
	}
}
