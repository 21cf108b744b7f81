package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
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
	if out := s.ok("job", "show", id); !strings.Contains(out, "scheduled") || !strings.Contains(out, `{"a": 1}`) {
		t.Errorf("job for people: %s", out)
	}
}

// Args are kept as they are written: one job, one that waits for a key, and those of a file.
func TestArgsAreKeptAsWritten(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const args = `{ "command" : "echo <a> && date",  "env":{"N": "\u003c é"} }`
	s.enqueue("command", "--args", args)
	s.enqueue("report", "--args", args, "--unique-key", "k")
	if r := s.try(`{"kind":"command", "args": `+args+`}`+"\n"+`{"kind":"report","args":`+args+`,"unique_key":"l"}`, "job", "enqueue", "--file", "-"); r.code != exitOK {
		t.Fatal(r.err)
	}
	var n int
	err := s.pool().QueryRow(t.Context(), `SELECT count(*) FROM pelton.job WHERE args::text = $1`, args).Scan(&n)
	if err != nil || n != 4 {
		t.Errorf("of 4 jobs %d have their args as they were written: %v", n, err)
	}
}

// Nobody need guess why a job waits, what retrying a running job did, or what a stream is called.
func TestWhatAWorkerChanges(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const hint = "no executor that is alive works jobs of kind"
	if r := s.try("", "job", "enqueue", "noop"); r.code != exitOK || !strings.Contains(r.err, hint) {
		t.Errorf("without an executor: %+v", r)
	}
	s.launch("worker").started()
	if r := s.try("", "job", "enqueue", "noop"); r.code != exitOK || r.err != "" {
		t.Errorf("with one: %+v", r)
	}
	id := s.command("echo out; exec sleep 1000")
	s.waitState(id, "running")
	if out := s.ok("job", "retry", id); !strings.Contains(out, "is running: it was left alone") {
		t.Errorf("retry of a running job: %q", out)
	}
	pgtest.Eventually(t, patience, func() bool { return s.ok("job", "logs", id) == "out\n" }, "the log to be stored")
	logs := as[[]any](t, s.object("job", "show", id)["logs"])
	if len(logs) != 1 || as[map[string]any](t, logs[0])["stream"] != "stdout" {
		t.Errorf("logs of a job: %v", logs)
	}
	if r := s.try("", "job", "enqueue", "report"); r.code != exitOK || !strings.Contains(r.err, hint+` "report"`) {
		t.Errorf("with one that knows other kinds: %+v", r)
	}
}

func TestListsTellOfMore(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, q := range []string{"a", "b", "c"} {
		s.ok("queue", "pause", q)
	}
	r := s.try("", "audit", "list", "--limit", "2", "--json")
	entries, more := parseLines(t, r.out), parseLines(t, r.err)
	if len(entries) != 2 || more[0]["before"] != entries[1]["id"] {
		t.Errorf("two of three entries: %+v", r)
	}
	if r := s.try("", "audit", "list", "--limit", "2", "--before", fmt.Sprint(more[0]["before"])); strings.Contains(r.err, "more") ||
		strings.Count(r.out, "queue.pause") != 1 {
		t.Errorf("the rest: %+v", r)
	}
	if _, err := s.pool().Exec(t.Context(), `INSERT INTO pelton.job_dead (job_id, kind, queue, priority, max_attempts, attempt, reason, args, created_at, died_at, attempts)
		SELECT i, 'k', 'default', 1, 1, 1, 'exhausted', '{}', now(), now() - make_interval(mins => i), '[]' FROM generate_series(1, 3) i`); err != nil {
		t.Fatal(err)
	}
	r = s.try("", "dead", "list", "--limit", "2", "--json")
	until := fmt.Sprint(parseLines(t, r.err)[0]["until"])
	if rest := s.lines("dead", "list", "--until", until); len(rest) != 2 || rest[1]["job_id"] != json.Number("3") {
		t.Errorf("the rest from the last shown: %v", rest)
	}
}

// What an ended or unknown thing is shown as.
func TestShownForPeople(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if _, err := s.pool().Exec(t.Context(), `INSERT INTO pelton.executor (name, host, pid, slots, running, died_at)
		VALUES ('gone', 'h', 1, 10, 5, now())`); err != nil {
		t.Fatal(err)
	}
	if docs := s.lines("executor", "list", "--ended"); len(docs) != 1 || docs[0]["running"] != json.Number("0") {
		t.Errorf("a dead executor: %v", docs)
	}
	if out := s.ok("partitions", "list"); strings.Contains(out, " -1 ") {
		t.Errorf("partitions: %s", out)
	}
	id := s.enqueue("noop")
	const waits = "no executor works kind noop"
	if out := s.ok("job", "show", id); !strings.Contains(out, waits) {
		t.Errorf("job show does not say that %s:\n%s", waits, out)
	}
	if got := s.object("job", "show", id)["waits"]; got != waits {
		t.Errorf("job show --json: waits is %v, want %s", got, waits)
	}
	if r := s.try("", "job", "logs", id); r.code != exitOK || !strings.Contains(r.err, "job "+id+" waits: "+waits) {
		t.Errorf("job logs of a job that waits: %+v", r)
	}
	// Of a job that has not begun its log says so, and when it runs; of one that never will, that.
	cancelled := s.enqueue("noop")
	s.ok("job", "cancel", cancelled)
	for job, says := range map[string]string{
		id: "is in the line of queue default since", s.enqueue("noop", "--at", "2099-01-01T00:00:00Z"): "is scheduled for 2099-01-01T00:00:00Z",
		s.enqueue("noop", "--pending"): "is pending: it waits to be released", cancelled: "never began: the job is cancelled",
	} {
		r := s.try("", "job", "logs", job)
		if r.code != exitOK || !strings.Contains(r.err, says) || strings.Contains(r.err, "printed") || job != cancelled && !strings.Contains(r.err, "has not begun yet") {
			t.Errorf("job logs of one that %q: %+v", says, r)
		}
	}
	s.ok("job", "retry", cancelled)
	if r := s.try("", "job", "logs", cancelled, "--run", "1"); r.code != exitOK || !strings.Contains(r.err, "never began: it was cancelled\n") || !strings.Contains(r.err, "is in the line of queue default since") {
		t.Errorf("job logs of a run that was cancelled, of a job that waits again: %+v", r)
	}
	s.fails(exitNotFound, "run 7 of job "+id+": not found; there were 0", "job", "logs", id, "--run", "7")
	for name, says := range map[string]string{
		"job list foo":                          `unexpected argument "foo"`,
		"job bogus":                             "; want one of enqueue,",
		"job list --limit x":                    `--limit is "x", want a whole number`,
		"job list --limit 99999999999999999999": `--limit is "99999999999999999999", want a smaller number`,
		"worker --shutdown-timeout soon":        `--shutdown-timeout is "soon", want a time, as 90s`,
		"job enqueue command --args []":         "a JSON array, want an object",
	} {
		s.fails(exitUsage, says, strings.Fields(name)...)
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
	all := []string{"job", "enqueue", "command", "--priority", "9", "--max-attempts", "99999", "--at", "soon", "--tag", "x", "--metadata", "[]", "--queue", "No Good"}
	for _, one := range []string{"command is missing", "priority is 9", "max attempts are 99999", "time \"soon\"", `tag "x"`, "metadata", "queue name"} {
		s.fails(exitUsage, one, all...)
	}
	s.fails(exitUsage, "--priority is 0, want 1 or more\n--max-attempts is -1", "job", "enqueue", "noop", "--priority", "0", "--max-attempts", "-1")
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
	s.enqueue("report", "--queue", "two", "--at", "3d")
	for want, args := range map[string][]string{
		"3": nil, "2": {"--kind", "noop"}, "2 ": {"--queue", "two"}, "2  ": {"--tag", "red"}, "1": {"--state", "scheduled"},
		"1 ": {"--queue", "two", "--tag", "red"}, "0": {"--since", "2100-01-01T00:00:00Z"},
		"0 ": {"--since", "2100-01-01"}, "3 ": {"--since", "2026-01-01"}, "3  ": {"--since", "3d"}, "0  ": {"--until", "1d"},
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
	s.fails(exitUsage, `time "3 days": want RFC 3339 as 2026-01-02T15:04:05Z, a date, or a duration back from now as 2h or 3d`,
		"job", "list", "--since", "3 days")
	if rows := s.lines("audit", "list", "--since", "1d"); len(rows) != 3 {
		t.Errorf("the audit of the last day has %d rows, want the 3 enqueued jobs", len(rows))
	}
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
	if len(entries) != 6 { // two were enqueued, too
		t.Fatalf("audit has %d entries, want 6: %v", len(entries), entries)
	}
	fields(t, entries[0], "id", "at", "actor", "role", "action", "target", "before", "after")
	if entries[0]["action"] != "job.delete" || !strings.HasPrefix(fmt.Sprint(entries[0]["actor"]), "os:") || entries[0]["target"] != other {
		t.Errorf("audit entry: %v", entries[0])
	}
	if only := s.lines("audit", "list", "--action", "job.retry"); len(only) != 1 {
		t.Errorf("audit of job.retry: %v", only)
	}
}

// A job that waits for its time is given another one; those that wait for none say why not, and keep the others from nothing.
func TestReschedule(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id, other, waits := s.enqueue("noop", "--at", "1h"), s.enqueue("noop", "--at", "2h"), s.enqueue("noop", "--pending")
	const at = "2031-05-06T07:08:09Z"
	docs := s.lines("job", "reschedule", id, other, "--at", at)
	if len(docs) != 2 || docs[0]["scheduled_at"] != at || docs[1]["scheduled_at"] != at || docs[0]["state"] != "scheduled" {
		t.Errorf("reschedule: %v", docs)
	}
	if got := s.object("job", "show", id)["scheduled_at"]; got != at {
		t.Errorf("it is scheduled at %v", got)
	}
	r := s.try("", "job", "reschedule", waits, "5", id, "--at", "2031-05-06T09:08:09+01:00")
	if r.code == exitOK || r.out != "job "+id+" is scheduled for 2031-05-06T08:08:09Z\n" || !strings.Contains(r.err, "job "+waits+" is pending: it waits to be released") ||
		!strings.Contains(r.err, "job 5: not found") {
		t.Errorf("one that is pending, one that is not there, and one that is scheduled: %+v", r)
	}
	s.fails(exitRefused, "is pending", "job", "reschedule", waits, "--at", "1h")
	s.ok("job", "retry", waits)
	s.fails(exitRefused, "is available: its time has come", "job", "reschedule", waits, "--at", "1h")
	s.fails(exitUsage, "say by --at when", "job", "reschedule", id)
	s.fails(exitUsage, "want RFC 3339", "job", "reschedule", id, "--at", "tomorrow")
	s.fails(exitUsage, "requires at least 1", "job", "reschedule", "--at", "1h")
	s.fails(exitUsage, "out of range", "job", "reschedule", id, "--at", "9999-12-31T23:00:00-02:00")
	entries := s.lines("audit", "list", "--action", "job.reschedule")
	if len(entries) != 3 || entries[0]["target"] != id || !strings.Contains(fmt.Sprint(entries[0]["before"]), "2031-05-06T07:08:09") ||
		!strings.Contains(fmt.Sprint(entries[0]["after"]), "2031-05-06T08:08:09") {
		t.Errorf("audit: %v", entries)
	}
	// A scheduler and an executor see to it once it is due.
	s.launch("server", "--listen", "").started()
	s.launch("worker").started()
	s.waitState(id, "scheduled")
	s.ok("job", "reschedule", id, "--at", "0s")
	s.waitState(id, "completed")
	s.fails(exitRefused, "is completed: it has ended", "job", "reschedule", id, "--at", "1h")
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
	if doc := s.object("queue", "resume", "etl"); doc["paused"] != false || doc["known"] != true {
		t.Errorf("resume: %v", doc)
	}
	for _, c := range [][]string{
		{"queue resume etl", "queue etl was not paused"},
		{"queue pause unheard", "queue unheard is paused; nothing was known of it"},
		{"queue pause unheard", "queue unheard is paused\n"},
		{"queue resume unheard", "queue unheard is resumed"},
		{"queue resume *", "queue * was not paused"},
		{"queue pause *", "queue * is paused\n"},
		{"queue pause etl", "queue etl is paused\n"},
		{"queue resume etl", "queue etl stays paused while all queues are"},
		{"queue resume *", "queue * is resumed"},
	} {
		if out := s.ok(strings.Fields(c[0])...); !strings.Contains(out, c[1]) {
			t.Errorf("%s: %q, want %q", c[0], out, c[1])
		}
	}
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

func TestJobErase(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.enqueue("mail", "--args", `{"to":"jane@example.com"}`, "--tag", "jane", "--metadata", `{"a":"jane"}`)
	s.fails(exitRefused, "has not ended: cancel it, or wait for its end, and erase it then", "job", "erase", id)
	s.ok("job", "cancel", id)
	s.waitState(id, "cancelled")
	// The ticket is still in the line: nobody works the kind.
	s.fails(exitRefused, "has not ended", "job", "erase", id)
	scheduled := s.enqueue("mail", "--args", `{"to":"jane@example.com"}`, "--at", "2h")
	s.ok("job", "cancel", scheduled)
	r := s.try("", "job", "erase", scheduled)
	if r.code != exitOK || r.out != "job "+scheduled+" is erased\n" || !strings.Contains(r.err, "not erased: backups, WAL and replicas") {
		t.Errorf("erase: %+v", r)
	}
	if out := s.ok("job", "erase", scheduled); out != "job "+scheduled+" held nothing any more\n" {
		t.Errorf("twice: %q", out)
	}
	doc := s.object("job", "erase", scheduled)
	fields(t, doc, "id", "jobs", "attempts", "log_chunks", "dead_letters", "nodes", "runs", "answers", "changed")
	s.fails(exitRefused, "was erased: there is nothing to run again", "job", "retry", scheduled)
	s.fails(exitNotFound, "not found", "job", "erase", "17")
	if args := fmt.Sprint(s.object("job", "show", scheduled)["args"]); args != "map[]" {
		t.Errorf("args are %s", args)
	}
}
