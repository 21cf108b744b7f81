package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// asProgram in the environment makes the tests' executable the program itself, for tests of real processes.
const asProgram = "PELTON_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if databaseURL := os.Getenv(asOwner); databaseURL != "" {
		fmt.Fprintln(os.Stderr, ownServer(databaseURL))
		os.Exit(exitFailed)
	}
	if os.Getenv(asProgram) != "" {
		main()
	}
	pgtest.Main(m, pgtest.CheckLeaks())
}

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// ran is what one command line did.
type ran struct {
	code     int
	out, err string
}

// shell runs commands on one database.
type shell struct {
	t   *testing.T
	url string
	env map[string]string

	role   string        // of the database, if it was made for the test
	direct *pgxpool.Pool // nil until asked for
}

// newShell is on a migrated database of its own.
func newShell(t *testing.T) *shell {
	t.Helper()
	return shellOn(t, schematest.DSN(t))
}

func shellOn(t *testing.T, url string) *shell {
	t.Helper()
	return &shell{t: t, url: url, env: map[string]string{"DATABASE_URL": url}}
}

// try runs a command line in this process.
func (s *shell) try(stdin string, args ...string) ran {
	s.t.Helper()
	var out, err bytes.Buffer
	code := run(s.t.Context(), args, strings.NewReader(stdin), &out, &err, func(key string) string { return s.env[key] })
	return ran{code, out.String(), err.String()}
}

// ok runs a command line that must succeed, and returns what it printed on stdout.
func (s *shell) ok(args ...string) string {
	s.t.Helper()
	r := s.try("", args...)
	if r.code != exitOK {
		s.t.Fatalf("pelton %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// fails runs a command line that must end with a code and say something.
func (s *shell) fails(code int, says string, args ...string) {
	s.t.Helper()
	r := s.try("", args...)
	if r.code != code || !strings.Contains(r.err, says) {
		s.t.Errorf("pelton %s: exit code %d, want %d; stderr is %q, want %q in it", strings.Join(args, " "), r.code, code, r.err, says)
	}
}

// object runs a command line with --json and returns the one document it prints.
func (s *shell) object(args ...string) map[string]any {
	s.t.Helper()
	lines := s.lines(args...)
	if len(lines) != 1 {
		s.t.Fatalf("pelton %s printed %d documents, want 1", strings.Join(args, " "), len(lines))
	}
	return lines[0]
}

// lines runs a command line with --json and returns the documents it prints, one a line.
func (s *shell) lines(args ...string) []map[string]any {
	s.t.Helper()
	return parseLines(s.t, s.ok(append(args, "--json")...))
}

func parseLines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		var one map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&one); err != nil {
			t.Fatalf("not a line of JSON: %q: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

// enqueue enqueues a job and returns its id.
func (s *shell) enqueue(args ...string) string {
	s.t.Helper()
	return fmt.Sprint(s.object(append([]string{"job", "enqueue"}, args...)...)["id"])
}

// state is a job's.
func (s *shell) state(id string) string {
	s.t.Helper()
	return fmt.Sprint(s.object("job", "show", id)["state"])
}

// waitState waits until a job is in a state.
func (s *shell) waitState(id, want string) {
	s.t.Helper()
	pgtest.Eventually(s.t, patience, func() bool { return s.state(id) == want }, "job %s to be %s", id, want)
}

// pool is for what no command tells.
func (s *shell) pool() *pgxpool.Pool {
	s.t.Helper()
	if s.direct == nil {
		s.direct = pgtest.Pool(s.t, s.url)
	}
	return s.direct
}

// as is a part of a document with its type.
func as[T any](t *testing.T, value any) T {
	t.Helper()
	typed, ok := value.(T)
	if !ok {
		t.Fatalf("%v is a %T, want a %T", value, value, typed)
	}
	return typed
}

// fields are the names a document has, for tests of shapes.
func fields(t *testing.T, doc map[string]any, want ...string) {
	t.Helper()
	for _, name := range want {
		if _, ok := doc[name]; !ok {
			t.Errorf("document has no field %q: %v", name, doc)
		}
	}
}
