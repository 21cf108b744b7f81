package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

// writeLines makes a file of jobs.
func writeLines(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// noops are lines of so many jobs.
func noops(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"kind":"noop","args":{"n":%d}}`, i+1)
	}
	return lines
}

func (s *shell) count() int {
	s.t.Helper()
	var n int
	if err := s.pool().QueryRow(s.t.Context(), "SELECT count(*) FROM pelton.job").Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func TestEnqueueFile(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	path := writeLines(t,
		`{"kind":"report","args":{"a":"<&>"},"queue":"etl","priority":2,"at":"2030-01-02T03:04:05Z","tags":["nightly"],`+
			`"max_attempts":3,"metadata":{"m":1},"unique_key":"k"}`,
		``,
		`{"kind":"report","unique_key":"k"}`,
		`{"kind":"noop","pending":true}`)
	doc := s.object("job", "enqueue", "--file", path)
	fields(t, doc, "enqueued", "duplicates", "lines", "seconds")
	if doc["enqueued"] != json.Number("2") || doc["duplicates"] != json.Number("1") || doc["lines"] != json.Number("4") {
		t.Errorf("answer: %v", doc)
	}
	job := s.lines("job", "list", "--kind", "report")[0]
	for name, want := range map[string]any{
		"queue": "etl", "priority": json.Number("2"), "scheduled_at": "2030-01-02T03:04:05Z", "max_attempts": json.Number("3"),
		"state": "scheduled",
	} {
		if job[name] != want {
			t.Errorf("%s is %v, want %v", name, job[name], want)
		}
	}
	if args := as[map[string]any](t, job["args"]); args["a"] != "<&>" {
		t.Errorf("args are %v", args)
	}
	if out := s.ok("job", "enqueue", "--file", writeLines(t, noops(2)...)); !strings.HasPrefix(out, "2 jobs enqueued from ") {
		t.Errorf("answer for people: %q", out)
	}
	if r := s.try(`{"kind":"noop"}`, "job", "enqueue", "--file", "-"); r.code != exitOK || !strings.HasPrefix(r.out, "1 job enqueued from stdin") {
		t.Errorf("from stdin: %+v", r)
	}
}

// A bad line says where it is and what is wrong; its batch does not go in, those before it have.
func TestEnqueueFileBadLines(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for says, line := range map[string]string{
		`unknown field "quue"; did you mean "queue"?`:      `{"kind":"noop","quue":"etl"}`,
		"not JSON, at byte ":                               `{"kind":"noop",}`,
		"not a job: unexpected EOF":                        `{"kind":"noop"`,
		"more than one JSON value":                         `{"kind":"noop"} {"kind":"noop"}`,
		"kind is missing":                                  `{"args":{}}`,
		"a JSON array, want an object":                     `["noop"]`,
		`field "priority" is a string, want a whole`:       `{"kind":"noop","priority":"high"}`,
		`field "at" is "tomorrow", want RFC 3339`:          `{"kind":"noop","at":"tomorrow"}`,
		"priority is 9, want 1 (first) to 4":               `{"kind":"noop","priority":9}`,
		`queue name "No": want`:                            `{"kind":"noop","queue":"No"}`,
		"command is missing":                               `{"kind":"command","args":{}}`,
		"the line is longer than 4 MiB":                    `{"kind":"noop","args":"` + strings.Repeat("x", 5<<20) + `"}`,
		"args is 2097154 bytes, over the limit of 1048576": `{"kind":"noop","args":"` + strings.Repeat("x", 2<<20) + `"}`,
	} {
		path := writeLines(t, `{"kind":"noop"}`, "", line, `{"kind":"noop"}`)
		r := s.try("", "job", "enqueue", "--file", path)
		if r.code != exitUsage || !strings.Contains(r.err, path+", line 3: ") || !strings.Contains(r.err, says) {
			t.Errorf("line %.60s: exit code %d, stderr %q, want line 3 and %q", line, r.code, r.err, says)
		}
		if !strings.Contains(r.err, "Nothing was enqueued.") || strings.Contains(r.err, "Resume") {
			t.Errorf("line %.60s: stderr %q does not say that nothing was enqueued", line, r.err)
		}
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d jobs went in with bad lines beside them", n)
	}
}

func TestEnqueueFileResumes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	lines := noops(2*fileBatch + 10)
	lines[fileBatch+20] = `{"kind":"noop","priority":9}`
	r := s.try("", "job", "enqueue", "--file", writeLines(t, lines...), "--json")
	doc := parseLines(t, r.out)[0]
	if r.code != exitUsage || doc["enqueued"] != json.Number("5000") || doc["resume_line"] != json.Number("5001") {
		t.Errorf("exit code %d, answer %v, stderr %q", r.code, doc, r.err)
	}
	if !strings.Contains(r.err, "line 5021: priority is 9") || !strings.Contains(r.err, "5000 jobs were enqueued, from lines 1 to 5000") {
		t.Errorf("stderr is %q", r.err)
	}
	if n := s.count(); n != fileBatch {
		t.Fatalf("%d jobs went in before the bad batch, want %d", n, fileBatch)
	}
	lines[fileBatch+20] = `{"kind":"noop"}`
	rest := s.object("job", "enqueue", "--file", writeLines(t, lines...), "--from-line", "5001")
	if rest["enqueued"] != json.Number("5010") || rest["lines"] != json.Number("10010") {
		t.Errorf("the rest: %v", rest)
	}
	if n := s.count(); n != len(lines) {
		t.Errorf("%d jobs, want %d", n, len(lines))
	}
}

// An interrupt while stdin is silent ends the command, and says where to resume.
func TestEnqueueFileIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := prepare(t, []string{"DATABASE_URL=" + s.url}, "job", "enqueue", "--file", "-")
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.start()
	if _, err := io.WriteString(stdin, strings.Join(noops(fileBatch+1), "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, patience, func() bool { return s.count() == fileBatch }, "the first batch to go in")
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exitInterrupted || !strings.Contains(p.err.String(), "Resume with --from-line 5001") {
		t.Errorf("exit code is %d, stderr %q", code, &p.err)
	}
	if n := s.count(); n != fileBatch {
		t.Errorf("%d jobs went in, want %d", n, fileBatch)
	}
}

func TestEnqueueFileFlags(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	path := writeLines(t, `{"kind":"noop"}`)
	s.fails(exitUsage, "the file's lines name their kinds", "job", "enqueue", "noop", "--file", path)
	s.fails(exitUsage, "--queue and --file", "job", "enqueue", "--queue", "etl", "--file", path)
	s.fails(exitUsage, "--from-line is 0", "job", "enqueue", "--file", path, "--from-line", "0")
	s.fails(exitUsage, "--from-line is 3, but "+path+" has 1 line: nothing was enqueued", "job", "enqueue", "--file", path, "--from-line", "3")
	s.fails(exitUsage, "--from-line goes with --file", "job", "enqueue", "noop", "--from-line", "3")
	s.fails(exitUsage, "no such file", "job", "enqueue", "--file", "/no/such/file")
}
