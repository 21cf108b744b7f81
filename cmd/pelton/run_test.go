package main

import (
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/suggest"
)

func TestUsageErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := shellOn(t, "")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, `unknown command "jbo" for "pelton"; did you mean "job"?`, []string{"jbo"}},
		{exitUsage, `did you mean "list"?`, []string{"job", "lst"}},
		{exitUsage, "unknown flag: --frob", []string{"job", "list", "--frob"}},
		{exitUsage, `unknown state "runnning"; did you mean "running"?`, []string{"job", "list", "--state", "runnning"}},
		{exitUsage, "want one of available, cancelled", []string{"job", "list", "--state", "x"}},
		{exitUsage, `"abc" is not a job id`, []string{"job", "show", "abc"}},
		{exitUsage, "accepts 1 arg(s), received 0", []string{"job", "show"}},
		{exitUsage, "--limit is 0", []string{"job", "list", "--limit", "0"}},
		{exitUsage, `unknown stream "stdot"; did you mean "stdout"?`, []string{"job", "logs", "5", "--stream", "stdot"}},
		{exitUsage, "which kind of job?", []string{"job", "enqueue"}},
		{exitUsage, "args from --args are not JSON", []string{"job", "enqueue", "noop", "--args", "{"}},
		{exitUsage, "want NAME:JOBS", []string{"worker", "--queues", "default:many", "--database-url", "postgres://127.0.0.1:1/x"}},
		{exitUsage, "--queues without --worker", []string{"server", "--queues", "default"}},
		{exitUsage, "say --yes", []string{"migrate", "down", "--database-url", "postgres://127.0.0.1:1/x"}},
		{exitUsage, "name their ids, or a filter", []string{"dead", "redrive"}},
		{exitUsage, "database URL: ", []string{"job", "list", "--database-url", "postgres://[bad"}},
		{exitUnreachable, "127.0.0.1:1", []string{"job", "list", "--database-url", "postgres://127.0.0.1:1/x"}},
		{
			exitUnreachable, "The address is that of --database-url; without it, that of a running `pelton dev` is taken",
			[]string{"job", "list", "--database-url", "postgres://127.0.0.1:1/x"},
		},
		{exitUnreachable, "pelton dev runs a server of its own", []string{"dev", "--database-url", "postgres://127.0.0.1:1/x"}},
		{exitUsage, "start `pelton dev`", []string{"job", "list", "--data-dir", t.TempDir()}},
	} {
		r := s.try("", c.args...)
		if r.code != c.code || !strings.Contains(strings.ToLower(r.err), strings.ToLower(c.says)) {
			t.Errorf("pelton %s: exit code %d, want %d; stderr %q, want %q in it", strings.Join(c.args, " "), r.code, c.code, r.err, c.says)
		}
	}
}

func TestErrorsAsJSON(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"job", "list", "--state", "x", "--json"}, {"job", "list", "--limit", "x", "--json"}, {"job", "--frob", "list", "--json"},
	} {
		r := shellOn(t, "").try("", args...)
		doc := parseLines(t, r.err)[0]
		fields(t, doc, "error", "exit_code")
		if r.code != exitUsage || r.out != "" {
			t.Errorf("%v: exit code %d, stdout %q", args, r.code, r.out)
		}
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	s := shellOn(t, "")
	for _, args := range []string{
		"", "dev", "worker", "server", "migrate", "migrate up", "job", "job enqueue", "job list", "job logs", "queue", "dead",
		"partitions", "audit", "executor", "loadtest", "loadtest drain", "completion bash",
	} {
		line := append(strings.Fields(args), "--help")
		if out := s.ok(line...); !strings.Contains(out, "Usage:") {
			t.Errorf("pelton %s prints %q", strings.Join(line, " "), out)
		}
	}
	if out := s.ok("--version"); !strings.HasPrefix(out, "pelton ") {
		t.Errorf("version is %q", out)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["PELTON_SCHEMA"] = "other"
	s.fails(exitSchema, "run `pelton migrate up`", "job", "list")
	s.fails(exitSchema, "run `pelton migrate up`", "migrate", "version")
	r := s.try("", "migrate", "version", "--json")
	if v := parseLines(t, r.out)[0]; r.code != exitSchema || v["ok"] != false || v["schema"] != "other" {
		t.Errorf("version of no schema: %v, exit code %d", v, r.code)
	}
	if v := s.object("migrate", "up"); v["ok"] != true {
		t.Errorf("version after up: %v", v)
	}
	s.ok("job", "list")
	if out := s.ok("migrate", "version"); !strings.Contains(out, "as this program needs it") {
		t.Errorf("version for people: %q", out)
	}
	if _, err := s.pool().Exec(t.Context(), `UPDATE other.schema_migrations SET version = version + 1`); err != nil {
		t.Fatal(err)
	}
	s.fails(exitSchema, "upgrade the program", "migrate", "version")
	if _, err := s.pool().Exec(t.Context(), `UPDATE other.schema_migrations SET version = version - 1`); err != nil {
		t.Fatal(err)
	}
	s.ok("migrate", "down", "--yes")
	s.fails(exitSchema, "holds no tables", "job", "list")
	s.fails(exitUsage, "want a lower-case letter", "migrate", "up", "--schema", "Bad Name")
}

func TestMigrateWithAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env = map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/pooler", "PELTON_MIGRATE_DATABASE_URL": s.url}
	s.ok("migrate", "up")
	s.fails(exitUnreachable, "127.0.0.1:1", "job", "list")
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	known := []string{"queue", "tags", "at", "args"}
	for word, want := range map[string]string{
		"quue": `; did you mean "queue"?`, "Queue": `; did you mean "queue"?`, "tag": `; did you mean "tags"?`,
		"unrelated": "; want one of queue, tags, at, args",
	} {
		if got := suggest.Near(word, known); got != want {
			t.Errorf("suggest %q: %q, want %q", word, got, want)
		}
	}
}
