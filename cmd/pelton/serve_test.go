package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

// quick makes a process notice within seconds what takes others half a minute. The lease is longer than a busy machine keeps a process from its heartbeat.
var quick = []string{"--heartbeat", "100ms", "--lease", "5s", "--poll-interval", "100ms"}

func (s *shell) launch(args ...string) *process {
	s.t.Helper()
	return launch(s.t, []string{"DATABASE_URL=" + s.url}, append(append(args, "--json"), quick...)...)
}

// command enqueues a command job.
func (s *shell) command(text string, flags ...string) string {
	s.t.Helper()
	args, err := json.Marshal(map[string]any{"command": text, "shell": true})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.enqueue(append([]string{"command", "--args", string(args)}, flags...)...)
}

func TestWorkerRunsCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["DATABASE_URL"] = s.url
	w := s.launch("worker", "--queues", "default:3,etl:2", "--poll-only")
	info := w.started()
	fields(t, info, "event", "client", "schema", "queues", "kinds", "scheduler")
	if info["scheduler"] != false || as[map[string]any](t, info["queues"])["etl"] != json.Number("2") {
		t.Errorf("started: %v", info)
	}
	id := s.command(`printf 'one\ntwo\n'; printf '\377\000end' >&2; exit 3`, "--max-attempts", "1", "--queue", "etl")
	s.waitState(id, "discarded")
	if out := s.ok("job", "logs", id, "--stream", "stdout"); out != "one\ntwo\n" {
		t.Errorf("stdout is %q", out)
	}
	if out := s.ok("job", "logs", id, "--stream", "stderr"); out != "\xff\x00end" {
		t.Errorf("stderr is %q", out)
	}
	if out := s.ok("job", "logs", id, "--stream", "stdout", "--tail", "1"); out != "two\n" {
		t.Errorf("last line is %q", out)
	}
	if out := s.ok("job", "logs", id, "--stream", "stdout", "--head", "1", "--run", "1"); out != "one\n" {
		t.Errorf("first line is %q", out)
	}
	chunk := s.object("job", "logs", id, "--stream", "stderr")
	fields(t, chunk, "run", "stream", "at", "pos", "skipped", "base64")
	shown := s.object("job", "show", id)
	runs := as[[]any](t, shown["runs"])
	fields(t, as[map[string]any](t, runs[0]), "run", "attempt", "outcome", "started_at", "ended_at", "next_due", "executor", "host", "error",
		"trace", "output")
	if out := s.ok("job", "show", id); !strings.Contains(out, "run 1: discarded") || !strings.Contains(out, "exited with code 3") {
		t.Errorf("job for people: %s", out)
	}
	executors := s.lines("executor", "list")
	if len(executors) != 1 || executors[0]["state"] != "alive" || executors[0]["name"] != info["client"] {
		t.Errorf("executors: %v", executors)
	}
	s.deadLetters(id)
	w.signal(syscall.SIGTERM)
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code after SIGTERM is %d", code)
	}
	if executors := s.lines("executor", "list"); len(executors) != 0 {
		t.Errorf("executors after the stop: %v", executors)
	}
	if executors := s.lines("executor", "list", "--ended"); len(executors) != 1 || executors[0]["state"] != "stopped" {
		t.Errorf("executors that have ended: %v", executors)
	}
}

// deadLetters looks at one dead letter, redrives it, and discards what becomes of that.
func (s *shell) deadLetters(id string) {
	t := s.t
	t.Helper()
	letters := s.lines("dead", "list", "--reason", "exhausted")
	if len(letters) != 1 || fmt.Sprint(letters[0]["job_id"]) != id {
		t.Fatalf("dead letters: %v", letters)
	}
	fields(t, letters[0], "job_id", "kind", "queue", "reason", "died_at", "created_at", "scheduled_at", "priority", "attempt",
		"max_attempts", "error", "args", "metadata", "tags", "attempts")
	if out := s.ok("dead", "show", id); !strings.Contains(out, "exhausted, attempt 1 of 1") {
		t.Errorf("dead letter for people: %s", out)
	}
	again := fmt.Sprint(s.object("dead", "redrive", id)["new_job_id"])
	s.fails(exitNotFound, "dead letter "+id, "dead", "show", id)
	for job, says := range map[string]string{id: "redriven as  " + again, again: "redriven from  " + id} {
		if out := s.ok("job", "show", job); !strings.Contains(out, says+"\n") {
			t.Errorf("job %s does not say %q: %s", job, says, out)
		}
	}
	s.waitState(again, "discarded")
	if docs := s.lines("dead", "discard", "--kind", "command"); len(docs) != 1 || docs[0]["done"] != "discarded" {
		t.Errorf("discard: %v", docs)
	}
	if letters := s.lines("dead", "list"); len(letters) != 0 {
		t.Errorf("dead letters afterwards: %v", letters)
	}
	s.fails(exitNotFound, "", "dead", "discard", again)
	s.fails(exitUsage, `did you mean "poison"?`, "dead", "list", "--reason", "poisn")
}

func TestLogsFollow(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.command("echo first; sleep 0.5; echo last")
	follower := launch(t, []string{"DATABASE_URL=" + s.url}, "job", "logs", id, "--follow")
	s.launch("worker").started()
	if code := follower.exit(); code != exitOK || follower.out.String() != "first\nlast\n" {
		t.Errorf("exit code %d, followed %q", code, follower.out.String())
	}
	s.fails(exitNotFound, "job 5: not found", "job", "logs", "5", "--follow")
}

func TestFollowIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.command("echo never")
	follower := launch(t, []string{"DATABASE_URL=" + s.url}, "job", "logs", id, "--follow", "-v")
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(follower.err.String(), "database from") }, "the follower to begin")
	follower.signal(syscall.SIGINT)
	if code := follower.exit(); code != exitInterrupted {
		t.Errorf("exit code is %d, want %d", code, exitInterrupted)
	}
}

// SIGTERM: a running job may end, and what has not begun is handed back at once, uncounted.
func TestStopIsSoft(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	w := s.launch("worker", "--queues", "default:1")
	w.started()
	goesOn := filepath.Join(t.TempDir(), "goes on")
	running := s.command("echo begun; until [ -e '" + goesOn + "' ]; do sleep 0.1; done; echo ended")
	s.waitState(running, "running")
	waiting := s.command("echo waits")
	w.signal(syscall.SIGTERM)
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(w.err.String(), "stopping") }, "the stop to begin")
	if err := os.WriteFile(goesOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code is %d", code)
	}
	if doc := s.object("job", "show", running); doc["state"] != "completed" {
		t.Errorf("the running job: %v", doc)
	}
	if doc := s.object("job", "show", waiting); doc["state"] != "available" || doc["attempt"] != json.Number("0") {
		t.Errorf("the waiting job: %v", doc)
	}
}

// A second signal, or the deadline, cancels running jobs: they are back, uncounted.
func TestStopIsHard(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]struct {
		timeout string
		signals int
	}{"second signal": {"1h", 2}, "deadline": {"100ms", 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			w := s.launch("worker", "--shutdown-timeout", stop.timeout)
			w.started()
			id := s.command("echo begun; exec sleep 1000")
			s.waitState(id, "running")
			w.signal(syscall.SIGTERM)
			pgtest.Eventually(t, patience, func() bool { return strings.Contains(w.err.String(), "stopping") }, "the stop to begin")
			if stop.signals > 1 {
				w.signal(syscall.SIGTERM)
			}
			if code := w.exit(); code != exitOK {
				t.Errorf("exit code is %d", code)
			}
			if doc := s.object("job", "show", id); doc["state"] != "available" || doc["attempt"] != json.Number("0") {
				t.Errorf("the cancelled job: %v", doc)
			}
		})
	}
}

// kill -9 of a worker at work: the job is back after the lease and completed by another.
func TestKilledWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.launch("server", "--listen", "127.0.0.1:0").started()
	victim := s.launch("worker")
	victim.started()
	id := s.command(`if [ "$PELTON_ATTEMPT" = 1 ]; then echo begun; sleep 1000; fi; echo done`)
	s.waitState(id, "running")
	victim.kill()
	s.launch("worker").started()
	s.waitState(id, "completed")
	runs := as[[]any](t, s.object("job", "show", id)["runs"])
	if len(runs) != 2 || as[map[string]any](t, runs[0])["outcome"] != "lost" {
		t.Errorf("runs: %v", runs)
	}
	if out := s.ok("job", "logs", id); out != "done\n" {
		t.Errorf("log of the last run is %q", out)
	}
}

func TestServerHasAnEndpoint(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	server := s.launch("server", "--worker", "--listen", "127.0.0.1:0")
	info := server.started()
	where := fmt.Sprint(info["endpoint"])
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
		if status := get(t, where+path); status != http.StatusOK {
			t.Errorf("GET %s: %d", path, status)
		}
	}
	s.waitState(s.enqueue("noop"), "completed")
	taken := strings.TrimPrefix(where, "http://")
	s.fails(exitFailed, taken+" is taken by another program; choose another address with --listen", "server", "--listen", taken)
	s.fails(exitUsage, "allow it with --insecure-listen", "server", "--listen", "0.0.0.0:0")
	server.signal(syscall.SIGINT)
	if code := server.exit(); code != exitOK {
		t.Errorf("exit code is %d", code)
	}
}

func get(t *testing.T, url string) int {
	t.Helper()
	var status int
	pgtest.Retry(t, patience, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		request.Close = true
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		status = response.StatusCode
		return response.Body.Close()
	})
	return status
}

func TestServingNeedsASchema(t *testing.T) {
	t.Parallel()
	s := shellOn(t, pgtest.Database(t))
	for _, command := range []string{"worker", "server"} {
		s.fails(exitSchema, "run `pelton migrate up`", command, "--listen", "127.0.0.1:0")
	}
}

func TestParseQueues(t *testing.T) {
	t.Parallel()
	queues, err := parseQueues("default:100, etl")
	if err != nil || queues["default"].MaxWorkers != 100 || queues["etl"].MaxWorkers != defaultSlots {
		t.Errorf("queues: %v, %v", queues, err)
	}
	for text, says := range map[string]string{"a:b": "want NAME:JOBS", "a,a": "twice"} {
		if _, err := parseQueues(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("queues %q: %v, want %q", text, err, says)
		}
	}
}
