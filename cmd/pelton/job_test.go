package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestEnqueueOne(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	doc := s.object("job", "enqueue", "report", "--args", `{"a": 1}`, "--queue", "etl", "--priority", "2", "--at", "2030-01-02T03:04:05Z",
		"--max-attempts", "3", "--tag", "nightly", "--tag", "big", "--metadata", `{"m":1}`)
	fields(t, doc, "id", "kind", "queue", "state", "priority", "attempt", "max_attempts", "created_at", "scheduled_at", "attempted_at",
		"finalized_at", "attempted_by", "args", "metadata", "output", "tags", "errors", "duplicate")
	id := fmt.Sprint(doc["id"])
	shown := s.object("job", "show", id)
	fields(t, shown, "runs", "logs")
	for name, want := range map[string]any{
		"kind": "report", "queue": "etl", "state": "scheduled", "priority": json.Number("2"), "max_attempts": json.Number("3"),
		"scheduled_at": "2030-01-02T03:04:05Z",
	} {
		if shown[name] != want {
			t.Errorf("%s is %v, want %v", name, shown[name], want)
		}
	}
	if tags := as[[]any](t, shown["tags"]); len(tags) != 2 || tags[0] != "nightly" {
		t.Errorf("tags are %v", tags)
	}
	if out := s.ok("job", "show", id); !strings.Contains(out, "scheduled") || !strings.Contains(out, `{"a":1}`) {
		t.Errorf("job for people: %s", out)
	}
}

func TestEnqueueUniqueAndPending(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	first := s.enqueue("noop", "--unique-key", "only", "--pending")
	again := s.object("job", "enqueue", "noop", "--unique-key", "only")
	if again["duplicate"] != true || fmt.Sprint(again["id"]) != first {
		t.Errorf("second job of the key: %v, want a duplicate of %s", again, first)
	}
	if other := s.object("job", "enqueue", "report", "--unique-key", "only"); other["duplicate"] != false {
		t.Errorf("job of another kind counts as a duplicate: %v", other)
	}
	if state := s.state(first); state != "pending" {
		t.Errorf("state is %s, want pending", state)
	}
	if doc := s.object("job", "retry", first); doc["state"] != "available" {
		t.Errorf("released job: %v", doc)
	}
}

func TestEnqueueRefusals(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fails(exitUsage, "priority is 9", "job", "enqueue", "noop", "--priority", "9")
	s.fails(exitUsage, "queue name", "job", "enqueue", "noop", "--queue", "No Good")
	s.fails(exitUsage, `tag "x"`, "job", "enqueue", "noop", "--tag", "x")
	s.fails(exitUsage, "metadata", "job", "enqueue", "noop", "--metadata", "[]")
	s.fails(exitUsage, "time \"soon\"", "job", "enqueue", "noop", "--at", "soon")
	s.fails(exitUsage, `unknown field "cmd"`, "job", "enqueue", "command", "--args", `{"cmd":"echo"}`)
	s.fails(exitUsage, "no such file", "job", "enqueue", "noop", "--args", "@/no/such/file")
	if r := s.try(`{"from":"stdin"}`, "job", "enqueue", "noop", "--args", "@-", "--json"); r.code != exitOK ||
		!strings.Contains(r.out, `{"from":"stdin"}`) {
		t.Errorf("args from stdin: %+v", r)
	}
	if jobs := s.lines("job", "list"); len(jobs) != 1 {
		t.Errorf("%d jobs are there, want 1", len(jobs))
	}
}

func TestListFiltersAndPages(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.enqueue("noop", "--queue", "one", "--tag", "red")
	s.enqueue("noop", "--queue", "two", "--tag", "red")
	s.enqueue("report", "--queue", "two", "--at", "1h")
	for want, args := range map[string][]string{
		"3": nil, "2": {"--kind", "noop"}, "2 ": {"--queue", "two"}, "2  ": {"--tag", "red"}, "1": {"--state", "scheduled"},
		"1 ": {"--queue", "two", "--tag", "red"}, "0": {"--since", "2100-01-01T00:00:00Z"},
	} {
		if n := len(s.lines(append([]string{"job", "list"}, args...)...)); n != len(strings.TrimSpace(want))*int(want[0]-'0') {
			t.Errorf("job list %v lists %d, want %s", args, n, want)
		}
	}
	r := s.try("", "job", "list", "--limit", "2", "--json")
	cursor := fmt.Sprint(parseLines(t, r.err)[0]["after"])
	rest := s.lines("job", "list", "--after", cursor)
	if len(rest) != 1 || rest[0]["kind"] != "report" {
		t.Errorf("second page: %v", rest)
	}
	s.fails(exitUsage, "--after", "job", "list", "--after", "x")
	if newest := s.lines("job", "list", "--newest"); newest[0]["kind"] != "report" {
		t.Errorf("newest first: %v", newest[0])
	}
}

func TestCancelRetryDelete(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id, other := s.enqueue("noop"), s.enqueue("noop", "--at", "1h")
	docs := s.lines("job", "cancel", id, other)
	if len(docs) != 2 || docs[0]["state"] != "cancelled" || docs[1]["state"] != "cancelled" {
		t.Errorf("cancel: %v", docs)
	}
	if out := s.ok("job", "retry", id); !strings.Contains(out, "is available") {
		t.Errorf("retry: %q", out)
	}
	r := s.try("", "job", "delete", "5", other)
	if r.code != exitNotFound || !strings.Contains(r.out, "job "+other+" is deleted") || !strings.Contains(r.err, "job 5: not found") {
		t.Errorf("delete of one that is there and one that is not: %+v", r)
	}
	s.fails(exitNotFound, "not found", "job", "show", other)
	entries := s.lines("audit", "list")
	if len(entries) != 4 {
		t.Fatalf("audit has %d entries, want 4: %v", len(entries), entries)
	}
	fields(t, entries[0], "id", "at", "actor", "role", "action", "target", "before", "after")
	if entries[0]["action"] != "job.delete" || !strings.HasPrefix(fmt.Sprint(entries[0]["actor"]), "os:") || entries[0]["target"] != other {
		t.Errorf("audit entry: %v", entries[0])
	}
	if only := s.lines("audit", "list", "--action", "job.retry"); len(only) != 1 {
		t.Errorf("audit of job.retry: %v", only)
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.enqueue("noop", "--queue", "etl")
	s.ok("queue", "pause", "etl")
	docs := s.lines("queue", "list")
	if len(docs) != 1 {
		t.Fatalf("queues: %v", docs)
	}
	fields(t, docs[0], "name", "paused_at", "available", "running", "scheduled", "retryable", "pending", "metadata")
	if docs[0]["paused_at"] == nil || docs[0]["available"] != json.Number("1") {
		t.Errorf("queue: %v", docs[0])
	}
	if doc := s.object("queue", "resume", "etl"); doc["paused"] != false {
		t.Errorf("resume: %v", doc)
	}
	s.ok("queue", "pause", "*")
	s.ok("queue", "resume", "*")
	if out := s.ok("queue", "list"); !strings.Contains(out, "QUEUE") || !strings.Contains(out, "etl") {
		t.Errorf("queues for people: %q", out)
	}
	s.fails(exitUsage, "queue name", "queue", "pause", "No Good")
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	report := s.object("partitions", "maintain")
	fields(t, report, "busy", "created", "closed", "dropped", "kept", "survivors", "deleted", "postponed", "orphans", "ahead")
	if len(as[[]any](t, report["created"])) == 0 {
		t.Errorf("nothing was made ahead: %v", report)
	}
	docs := s.lines("partitions", "list")
	fields(t, docs[0], "name", "table", "state", "start", "end", "rows", "bytes")
	if out := s.ok("partitions", "maintain"); !strings.Contains(out, "job_log: 30 partitions ahead") {
		t.Errorf("report for people: %q", out)
	}
}
