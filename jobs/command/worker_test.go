//go:build linux

package command_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(executorDSN); dsn != "" {
		beExecutor(dsn)
		return
	}
	pgtest.Main(m, pgtest.CheckLeaks())
}

var lastJob atomic.Int64

// bench works command jobs with a log in a real database.
type bench struct {
	t    *testing.T
	pool *pgxpool.Pool
	log  *joblog.Writer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	pool := schematest.Pool(t)
	log := joblog.NewWriter(pool, schema.DefaultName, joblog.Config{FlushInterval: 5 * time.Millisecond})
	log.Start(t.Context())
	t.Cleanup(log.Stop)
	return &bench{t, pool, log}
}

// run is one job's run.
type run struct {
	*bench
	id  int64
	err error
}

func (b *bench) work(ctx context.Context, config command.Config, args command.Args) *run {
	b.t.Helper()
	r := &run{bench: b, id: lastJob.Add(1)}
	log := b.log.Run(r.id, 3)
	job := &river.Job[command.Args]{JobRow: &rivertype.JobRow{ID: r.id, Attempt: 2, Kind: command.Kind}, Args: args}
	r.err = command.NewWorker(config).Work(joblog.NewContext(ctx, log), job)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := log.Close(closing); err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (r *run) printed(streams string) string {
	r.t.Helper()
	var b strings.Builder
	chunks := joblog.Read(r.t.Context(), r.pool, schema.DefaultName, r.id, 3, joblog.Options{Streams: streams})
	if err := joblog.Copy(&b, chunks); err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}

func (r *run) ok() *run {
	r.t.Helper()
	if r.err != nil {
		r.t.Fatal(r.err)
	}
	return r
}

func shell(text string) command.Args { return command.Args{Command: command.Line(text), Shell: true} }

// gone tells whether a process has ended; a zombie has.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// pids reads the numbers that a script wrote to a file.
func pids(t *testing.T, file string) []int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for field := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}

func TestOutputByteForByte(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.work(t.Context(), command.Config{}, shell(`printf 'a\000b\377\n'; printf 'err\303' >&2; printf '\244' >&2`)).ok()
	if out, errs := r.printed("o"), r.printed("e"); out != "a\x00b\xff\n" || errs != "errä" {
		t.Fatalf("stdout %q, stderr %q", out, errs)
	}
}

func TestNoShellUnlessAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.work(t.Context(), command.Config{}, command.Args{Command: command.Line(`echo $HOME 'a  b' * | "c"`)}).ok()
	if got := r.printed("o"); got != "$HOME a  b * | c\n" {
		t.Fatalf("got %q", got)
	}
	r = b.work(t.Context(), command.Config{}, shell(`echo one | tr a-z A-Z`)).ok()
	if got := r.printed("o"); got != "ONE\n" {
		t.Fatalf("got %q", got)
	}
}

func TestEnvironmentAndDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	args := shell(`echo $A $B $C $PELTON_RUN $PELTON_ATTEMPT; pwd; test $PELTON_JOB_ID -gt 0`)
	args.Env, args.Dir = map[string]string{"B": "job", "C": "c"}, "sub"
	config := command.Config{Env: []string{"A=base", "B=base"}, Dir: dir}
	r := b.work(t.Context(), config, args).ok()
	if got, want := r.printed("o"), "base job c 3 2\n"+filepath.Join(dir, "sub")+"\n"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestFailingProgram(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	script := `i=0; while [ $i -lt 30 ]; do echo line $i >&2; i=$((i+1)); done; printf 'last\000\377' >&2; exit 3`
	r := b.work(t.Context(), command.Config{}, shell(script))
	var exit *command.ExitError
	if !errors.As(r.err, &exit) || exit.ExitCode != 3 || exit.Signal != "" {
		t.Fatalf("got %v", r.err)
	}
	if strings.Contains(exit.Stderr, "line 20") || !strings.HasSuffix(exit.Stderr, "line 29\nlast\uFFFD\uFFFD") {
		t.Fatalf("last lines: %q", exit.Stderr)
	}
	r = b.work(t.Context(), command.Config{}, shell(`kill -9 $$`))
	if !errors.As(r.err, &exit) || exit.ExitCode != 137 || exit.Signal != "SIGKILL" {
		t.Fatalf("got %v", r.err)
	}
}

func TestCommandsStopAtTheFirstThatFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	list := []command.Command{command.Line("echo one"), command.Line("false"), command.Line("echo three")}
	r := b.work(t.Context(), command.Config{}, command.Args{Commands: list})
	var exit *command.ExitError
	if !errors.As(r.err, &exit) || exit.Program != "false" || r.printed("o") != "one\n" {
		t.Fatalf("printed %q: %v", r.printed("o"), r.err)
	}
}

func TestProgramThatCannotStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plain"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args command.Args
		want string
	}{
		"unknown":   {command.Args{Command: command.Line("no-such-program x")}, `program not found: "no-such-program" is in no directory of PATH`},
		"path":      {command.Args{Command: command.Line("/no/such")}, `program not found: "/no/such": no such file`},
		"plain":     {command.Args{Command: command.Line("./plain"), Dir: dir}, `program not found: "./plain": permission denied`},
		"path, env": {command.Args{Command: command.Line("echo"), Env: map[string]string{"PATH": dir}}, `"echo" is in no directory`},
		"directory": {command.Args{Command: command.Line("echo"), Dir: dir + "/none"}, "working directory"},
		"file":      {command.Args{Command: command.Line("echo"), Dir: dir + "/plain"}, "is not a directory"},
	} {
		if r := b.work(t.Context(), command.Config{}, test.args); r.err == nil || !strings.Contains(r.err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, r.err, test.want)
		}
	}
}

// TestScriptBesideTheJob runs before the parallel tests: a fork of theirs could hold the script open for writing for a moment.
func TestScriptBesideTheJob(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\necho script $1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := b.work(t.Context(), command.Config{}, command.Args{Command: command.Line("./script x"), Dir: dir}).ok()
	if got := r.printed("o"); got != "script x\n" {
		t.Fatalf("got %q", got)
	}
	r = b.work(t.Context(), command.Config{}, command.Args{
		Command: command.Line("script y"), Env: map[string]string{"PATH": dir + ":/bin:/usr/bin"},
	}).ok()
	if got := r.printed("o"); got != "script y\n" {
		t.Fatalf("got %q", got)
	}
}
