package nodecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

const patience = time.Minute

var errNoFiles = errors.New("no such version")

// projects is a Files with the directories of some versions.
type projects map[int64]string

func (p projects) Dir(ctx context.Context, version int64) (string, error) {
	if dir, ok := p[version]; ok {
		return dir, ctx.Err()
	}
	return "", errNoFiles
}

// bench works nodes of one project, whose directory is dir.
type bench struct {
	t      *testing.T
	pool   *pgxpool.Pool
	client *jobs.Client
	dir    string
	temp   string
}

// A killed worker has left a temporary directory before.
func newBench(t *testing.T, files Files) *bench {
	t.Helper()
	b := &bench{t: t, pool: schematest.Pool(t), dir: t.TempDir(), temp: t.TempDir()}
	if err := os.Mkdir(filepath.Join(b.temp, "pelton-node-left"), 0o700); err != nil {
		t.Fatal(err)
	}
	if files == nil {
		files = projects{7: b.dir}
	}
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, NewWorker(Config{
		Files: files, TempDir: b.temp,
		Programs: command.Config{Env: []string{"PATH=" + os.Getenv("PATH"), "BASE=base", "env=base"}, Realm: "nodecmd", KillGrace: 200 * time.Millisecond},
	}))
	client, err := jobs.NewClient(b.pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 4}}, Workers: workers,
		Heartbeat: 50 * time.Millisecond, Lease: 30 * time.Second, PollInterval: 100 * time.Millisecond,
		JobTimeout: 100 * time.Millisecond, // nodes have none unless they say so
		Logger:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := client.StopAndCancel(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		if left, err := os.ReadDir(b.temp); len(left) != 0 || err != nil {
			t.Errorf("temporary files are left: %v, %v", left, err)
		}
	})
	b.client = client
	return b
}

// node is a node of the project.
func node(commands ...string) Args {
	return Args{Run: 5, Node: "outer:inner", Version: 2, Type: graph.TypeCommand, Commands: commands, Files: 7}
}

// script is a node that runs a shell.
func script(text string) Args { return node("sh -c '" + text + "'") }

func (b *bench) enqueue(args Args) int64 {
	b.t.Helper()
	inserted, err := b.client.Insert(b.t.Context(), args, &river.InsertOpts{MaxAttempts: 1})
	if err != nil {
		b.t.Fatal(err)
	}
	return inserted.Job.ID
}

// ended is what a node's run left.
type ended struct {
	outcome, err string
	result       Result
	raw          string
	log          string
}

func (b *bench) end(id int64) ended {
	b.t.Helper()
	var e ended
	var output []byte
	pgtest.Retry(b.t, patience, func(ctx context.Context) error {
		return b.pool.QueryRow(ctx, `SELECT outcome::text, coalesce(error, ''), output FROM pelton.job_attempt WHERE job_id = $1 AND run = 1`, id).
			Scan(&e.outcome, &e.err, &output)
	})
	e.raw = string(output)
	if output != nil {
		if err := json.Unmarshal(output, &e.result); err != nil {
			b.t.Fatalf("output %s: %v", output, err)
		}
	}
	var text strings.Builder
	if err := joblog.Copy(&text, joblog.Read(b.t.Context(), b.pool, schema.DefaultName, id, 1, joblog.Options{})); err != nil {
		b.t.Fatal(err)
	}
	e.log = text.String()
	return e
}

func (b *bench) run(args Args) ended {
	b.t.Helper()
	return b.end(b.enqueue(args))
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

func TestWhatAProgramFinds(t *testing.T) { //nolint:paralleltest // a fork of another test could hold a script open for writing
	b := newBench(t, nil)
	b.write("bin/hello.sh", "#!/bin/sh\npwd; cat ../data.txt; echo $JOB_NAME $BASE $A $B $C $env; env | grep -c ^PELTON_; ls -l $JOB_OUTPUT_PROP_FILE | cut -c1-10")
	b.write("data.txt", "data\n")
	args := node("./hello.sh", `cat "data of the job" file`)
	args.Commands[1] = "sh -c 'cat $JOB_PROP_FILE; stat -c %a $(dirname $JOB_PROP_FILE)'"
	args.Dir = "bin"
	args.Properties = map[string]string{"env.A": "a b", "env.B": "property", "env.": "nothing", "key": "größe = 1"}
	args.Env = map[string]string{"B": "own", "C": "c"}
	got := b.run(args)
	want := filepath.Join(b.dir, "bin") + "\ndata\ninner base a b own c base\n4\n-rw-------\n" +
		"env.=nothing\nenv.A=a b\nenv.B=property\nkey=gr\\u00F6\\u00DFe \\= 1\n700\n"
	if got.outcome != "completed" || got.log != want || got.result.Command != 2 {
		t.Errorf("%s, %q: printed\n%s\nwant\n%s", got.outcome, got.err, got.log, want)
	}
}

func TestNoShell(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	if got := b.run(node(`echo $HOME 'a  b' * | "c  d" > x`)); got.log != "$HOME a  b * | c  d > x\n" {
		t.Errorf("printed %q", got.log)
	}
}

func TestOutputsAreRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	got := b.run(script(`echo "{\"param1\": \"1\", \"n\": 2.50, \"list\": [1, {\"a\": null}]}" > $JOB_OUTPUT_PROP_FILE`))
	want := map[string]string{"param1": "1", "n": "2.50", "list": `[1,{"a":null}]`}
	if got.outcome != "completed" || !maps.Equal(got.result.Outputs, want) || !strings.Contains(got.raw, `"exit_code":`) {
		t.Errorf("%s, %q: outputs %s", got.outcome, got.err, got.raw)
	}
	for name, text := range map[string]string{"untouched": "exit 0", "removed": "rm $JOB_OUTPUT_PROP_FILE"} {
		if got := b.run(script(text)); got.outcome != "completed" || got.result.Outputs != nil {
			t.Errorf("%s: %s, %q: outputs %s", name, got.outcome, got.err, got.raw)
		}
	}
}

func TestBadOutputsFailTheNodeAndTellItsLog(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.write("nul.json", `{"a": "\u0000"}`)
	b.write("huge.json", `{"a": [`+strings.Repeat(`"",`, (MaxOutputs-20)/3)+`""]}`)
	for text, want := range map[string]string{
		`echo "{\"a\": oops}" > $JOB_OUTPUT_PROP_FILE`:           "line 1: invalid character",
		`echo "[]" > $JOB_OUTPUT_PROP_FILE`:                      "want a JSON object",
		`head -c 1048577 /dev/zero > $JOB_OUTPUT_PROP_FILE`:      "more than 1048576 bytes",
		`rm $JOB_OUTPUT_PROP_FILE; mkfifo $JOB_OUTPUT_PROP_FILE`: "not a regular file",
		`ln -sf /dev/zero $JOB_OUTPUT_PROP_FILE`:                 "not a regular file",
		`cat nul.json > $JOB_OUTPUT_PROP_FILE`:                   "u0000",
		`cat huge.json > $JOB_OUTPUT_PROP_FILE`:                  "over the limit",
	} {
		got := b.run(script(text))
		if got.outcome != "discarded" || !strings.Contains(got.err, want) || !strings.Contains(got.log, want) || got.result.Outputs != nil {
			t.Errorf("%s: %s, %q; the log is %q, the output %s", text, got.outcome, got.err, got.log, got.raw)
		}
	}
}

func TestCommandsStopAtTheFirstThatFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	args := node("echo one", `sh -c "echo {} > $JOB_OUTPUT_PROP_FILE; echo oh no >&2; exit 3"`, "echo three")
	got := b.run(args)
	if got.outcome != "discarded" || got.log != "one\noh no\n" || got.result.ExitCode != 3 || got.result.Command != 2 ||
		!strings.Contains(got.err, `program "sh" exited with code 3`) || !strings.Contains(got.err, "oh no") {
		t.Errorf("%s, %q: printed %q, output %s", got.outcome, got.err, got.log, got.raw)
	}
}

func TestNodesThatCannotStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	elsewhere := node("true")
	elsewhere.Dir = "no/such"
	gone := node("true")
	gone.Files = 8
	for want, args := range map[string]Args{
		"program not found":           node("no-such-program x"),
		"working directory":           elsewhere,
		"files of version 2 of":       gone,
		"command 1 of the node is em": node(" "),
	} {
		if got := b.run(args); got.outcome != "discarded" || !strings.Contains(got.err, want) || got.raw != "" {
			t.Errorf("want %q, got %s, %q: output %q", want, got.outcome, got.err, got.raw)
		}
	}
}

func TestJavaProcess(t *testing.T) { //nolint:paralleltest // a fork of another test could hold a script open for writing
	b := newBench(t, nil)
	b.write("java", "#!/bin/sh\nprintf '%s|' \"$@\"\n")
	b.write("lib.jar", "")
	args := Args{Node: "j", Type: graph.TypeJavaProcess, Files: 7, Env: map[string]string{"PATH": b.dir + ":/usr/bin:/bin"}}
	args.Properties = map[string]string{"java.class": "a.Main", "Xmx": "1G", "main.args": "x 'y z'"}
	if got := b.run(args); got.outcome != "completed" || got.log != "-Xms64M|-Xmx1G|-cp|lib.jar|a.Main|x|y z|" {
		t.Errorf("%s, %q: printed %q", got.outcome, got.err, got.log)
	}
}

// TestKilledNode cancels a node whose program has left daemons behind and has written outputs.
func TestKilledNode(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.write("long.sh", `trap "" TERM
		setsid -f sh -c 'trap "" TERM; echo $$ > daemon; while :; do sleep 0.1; done' > /dev/null 2>&1
		until [ -s daemon ]; do sleep 0.01; done
		echo "{}" > $JOB_OUTPUT_PROP_FILE; : > ready
		while :; do sleep 0.1; done`)
	id := b.enqueue(node("sh long.sh", "echo second"))
	pgtest.Eventually(t, patience, func() bool { _, err := os.Stat(filepath.Join(b.dir, "ready")); return err == nil }, "the program to run")
	if _, err := b.client.JobCancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	got := b.end(id)
	if got.outcome != "cancelled" || got.result.Signal != "SIGKILL" || strings.Contains(got.log, "second") || got.result.Outputs != nil {
		t.Errorf("%s, %q: log %q, output %s", got.outcome, got.err, got.log, got.raw)
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "daemon"))
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	if _, err := fmt.Sscan(string(text), &pid); err != nil || syscall.Kill(pid, 0) == nil {
		t.Errorf("the daemon %d is left: %v", pid, err)
	}
}

// heldFiles lets a version's directory be had only when the node is being killed.
type heldFiles struct {
	dir   string
	asked chan struct{}
}

func (f heldFiles) Dir(ctx context.Context, _ int64) (string, error) {
	close(f.asked)
	<-ctx.Done()
	return f.dir, nil
}

// TestKilledBeforeTheProgramStarts kills a node while its files are being laid out: no program starts.
func TestKilledBeforeTheProgramStarts(t *testing.T) {
	t.Parallel()
	files := heldFiles{t.TempDir(), make(chan struct{})}
	b := newBench(t, files)
	id := b.enqueue(script("echo started; : > started"))
	<-files.asked
	if _, err := b.client.JobCancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	got := b.end(id)
	if got.outcome != "cancelled" || got.log != "" || got.raw != "" {
		t.Errorf("%s, %q: printed %q, output %q", got.outcome, got.err, got.log, got.raw)
	}
	if _, err := os.Stat(filepath.Join(files.dir, "started")); err == nil {
		t.Error("the program was started")
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	args := node("sleep 1000")
	args.Timeout = graph.Duration(2 * time.Second) // so that it has begun
	if got := b.run(args); got.outcome != "discarded" || !strings.Contains(got.err, "timed out") || got.result.Signal != "SIGTERM" {
		t.Errorf("%s, %q: output %s", got.outcome, got.err, got.raw)
	}
	if got := b.run(node("sleep 0.3")); got.outcome != "completed" {
		t.Errorf("without a timeout: %s, %q", got.outcome, got.err)
	}
}
