package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

var (
	comments = regexp.MustCompile(`(?m)--.*$`)
	sqlFence = regexp.MustCompile("(?s)```sql\n(.*?)```")
)

// recipe is the SQL of a section of docs/operations.md that makes a role, its first parts, done for a role of the test's, and that
// role's address.
func recipe(t *testing.T, s *shell, section string, parts int, role string) (statements []string, address string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n### "+section+"\n")
	if !found {
		t.Fatalf("docs/operations.md has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n##")
	var fences []string
	for _, fence := range sqlFence.FindAllStringSubmatch(rest, -1) {
		fences = append(fences, fence[1])
	}
	if len(fences) < parts {
		t.Fatalf("section %q of docs/operations.md has %d blocks of SQL, want %d", section, len(fences), parts)
	}
	sql := strings.Join(fences[:parts], "")
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	own := role + "_" + strings.TrimPrefix(u.Path, "/")
	sql = strings.ReplaceAll(sql, role, own)
	admin := s.pool()
	t.Cleanup(func() {
		if _, err := admin.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+own+"; DROP ROLE "+own); err != nil {
			t.Error(err)
		}
	})
	for statement := range strings.SplitSeq(comments.ReplaceAllString(sql, ""), ";") {
		if statement = strings.TrimSpace(statement); statement == "" {
			continue
		}
		if _, err := s.pool().Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		statements = append(statements, statement)
	}
	u.User = url.User(own)
	return statements, u.String()
}

// reported is a job of a kind that the program does not know.
func reported(key string) river.InsertManyParams {
	return river.InsertManyParams{Args: jobs.RawArgs{JobKind: "report", JSON: json.RawMessage(`{}`), UniqueKey: key}}
}

// enqueueEverything does all that a role which only enqueues is to do.
func enqueueEverything(t *testing.T, admin, pool *pgxpool.Pool, mine *shell) error {
	t.Helper()
	// A key whose job is cancelled, and one whose job is gone.
	for _, sql := range []string{
		`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome)
			SELECT job_id, 1, 0, 'cancelled' FROM pelton.job_unique ON CONFLICT DO NOTHING`,
		`UPDATE pelton.job_unique SET job_id = 5 WHERE key = (SELECT u.key FROM pelton.job_unique u ORDER BY u.key LIMIT 1)`,
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		`SELECT pelton.enqueue('report', '{}')`, `SELECT pelton.enqueue('report', '{}', run_at => now() + interval '1 h')`,
		`SELECT pelton.enqueue('report', '{}', pending => true)`,
		`SELECT pelton.enqueue('report', '{"n": 1}', unique_by_args => true)`,
		`SELECT pelton.enqueue('report', '{"n": 1}', unique_by_args => true)`,
		`SELECT pelton.enqueue('report', '{"n": 2}', unique_by_args => true, unique_states => '{available,pending,running,scheduled}')`,
		`SELECT pelton.enqueue('report', '{"n": 2}', unique_by_args => true, unique_states => '{available,pending,running,scheduled}')`,
		`SELECT * FROM pelton.enqueue_many('[{"kind": "report"}, {"kind": "report"}]')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	client, err := jobs.NewClient(pool, nil)
	if err != nil {
		return err
	}
	if _, err := client.InsertManyFast(t.Context(), []river.InsertManyParams{reported(""), reported("a"), reported("b")}); err != nil {
		return err
	}
	if _, err := client.InsertManyFast(t.Context(), []river.InsertManyParams{reported("")}); err != nil {
		return err
	}
	if r := mine.try("", "job", "enqueue", "report"); r.code != exitOK {
		return fmt.Errorf("exit code %d: %s", r.code, r.err)
	}
	return nil
}

// The role that only enqueues can do that, in every way, and lacks what it has no need of: without any of its rights something fails.
func TestRoleThatOnlyEnqueues(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	statements, address := recipe(t, s, "A role that only enqueues", 1, "shop")
	mine := shellOn(t, address)
	pool := pgtest.Pool(t, address)
	if err := enqueueEverything(t, s.pool(), pool, mine); err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		rights, on, granted := strings.Cut(strings.TrimPrefix(statement, "GRANT "), " ON ")
		if !granted {
			continue // CREATE ROLE
		}
		objects, role, _ := strings.Cut(on, " TO ")
		kind := ""
		for _, prefix := range []string{"SCHEMA ", "SEQUENCE "} {
			if rest, is := strings.CutPrefix(objects, prefix); is {
				kind, objects = prefix, rest
			}
		}
		list := []string{rights}
		if !strings.Contains(rights, "(") { // else of columns
			list = strings.Split(rights, ", ")
		}
		for _, right := range list {
			for object := range strings.SplitSeq(objects, ",") {
				one := right + " ON " + kind + strings.TrimSpace(object)
				if _, err := s.pool().Exec(t.Context(), "REVOKE "+one+" FROM "+role); err != nil {
					t.Fatal(err)
				}
				if err := enqueueEverything(t, s.pool(), pool, mine); err == nil {
					t.Errorf("%s is not needed", one)
				}
				if _, err := s.pool().Exec(t.Context(), "GRANT "+one+" TO "+role); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, line := range []string{"job list", "job cancel 1", "queue pause default", "audit list"} {
		if r := mine.try("", strings.Fields(line)...); r.code == exitOK || !strings.Contains(r.err, "permission denied") {
			t.Errorf("%s by a role that only enqueues: %+v", line, r)
		}
	}
}

func TestRoleWhoseClientEnqueuesUniqueJobs(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	_, address := recipe(t, s, "A role that only enqueues", 2, "shop")
	mine := shellOn(t, address)
	first := mine.enqueue("report", "--unique-key", "k")
	if again := mine.object("job", "enqueue", "report", "--unique-key", "k"); fmt.Sprint(again["id"]) != first {
		t.Errorf("second job of the key: %v", again)
	}
}

// runFlows pushes, runs, operates on and sweeps away flows as a role.
func runFlows(t *testing.T, mine *shell) {
	t.Helper()
	text := func(say string) string {
		return project(t, `
nodes:
  - {name: a, type: command, config: {command: echo `+say+`}}
  - {name: each, type: command, dependsOn: [a], for_each: [x], config: {command: echo item}}
  - name: inner
    type: flow
    dependsOn: [each]
    retry: {max: 1, backoff: 10ms}
    nodes:
      - {name: b, type: command, config: {command: "test -n \"${go}\""}}
`)
	}
	mine.ok("flow", "push", text("one"), "--project", "p")
	mine.fails(exitFailed, "FAILED", "flow", "run", "p/f", "--wait", "--sla", "a:1h:alert", "--sla", "1h:kill", "--notify-failure", "http://127.0.0.1:1/")
	mine.ok("flow", "succeed", "1", "inner:b", "--wait")
	mine.ok("flow", "rerun", "1", "a")
	mine.try("", "flow", "kill", "1") // it may have ended
	mine.ok("flow", "run", "p/f", "--param", "go=1", "--concurrent", "queue", "--wait")
	mine.ok("flow", "run", "p/f", "--param", "go=1", "--concurrent", "pipeline-2", "--wait")
	for _, line := range []string{"list", "versions p", "runs p", "show 1", "why 1 a", "logs 1 a", "graph p/f --svg -"} {
		mine.ok(append([]string{"flow"}, strings.Fields(line)...)...)
	}
	mine.ok("flow", "push", text("two"), "--project", "p")
	queue, err := jobs.NewClient(mine.pool(), nil)
	if err != nil {
		t.Fatal(err)
	}
	flows, err := flow.NewClient(mine.pool(), queue, &flow.Config{Retention: 1, KeepVersions: 1}) // what has ended is old
	if err != nil {
		t.Fatal(err)
	}
	flows.Start(t.Context())
	defer flows.Stop()
	pgtest.Eventually(t, patience, func() bool {
		var left int
		err := mine.pool().QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pelton.flow_run) + (SELECT count(*) FROM pelton.flow_version)`).Scan(&left)
		return err == nil && left == 1
	}, "old runs and versions to be swept away")
}

// runSchedules stores, fires and changes schedules as a role.
func runSchedules(t *testing.T, mine *shell) {
	t.Helper()
	mine.ok("schedule", "put", "s", "--every", "1s", "--kind", "noop")
	pgtest.Eventually(t, patience, func() bool { return len(mine.lines("schedule", "ticks", "s", "--outcome", "fired")) > 0 }, "a tick to be fired")
	mine.ok("schedule", "put", "s", "--cron", "@hourly", "--kind", "noop")
	mine.ok("schedule", "trigger", "s")
	mine.ok("schedule", "backfill", "s", "--from", "2026-01-01", "--to", "2026-01-01T03:00")
	for _, line := range []string{"pause s", "resume s", "list", "show s", "backfill list", "delete s"} {
		mine.ok(append([]string{"schedule"}, strings.Fields(line)...)...)
	}
}

// The role that works and operates can do both, and without the rights that it is asked for nothing starts.
func TestRoleThatWorksAndOperates(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	_, address := recipe(t, s, "A role that works and operates", 2, "worker")
	mine := shellOn(t, address)
	server := mine.launch("server", "--worker", "--listen", "127.0.0.1:0", "--files-dir", t.TempDir())
	if status := get(t, fmt.Sprint(server.started()["endpoint"])+"/readyz"); status != 200 {
		t.Errorf("readiness of its server is %d", status)
	}
	done := mine.command("echo hello")
	mine.waitState(done, "completed")
	pgtest.Eventually(t, patience, func() bool { return mine.ok("job", "logs", done) == "hello\n" }, "the log to be stored")
	failed := mine.command("false", "--max-attempts", "1")
	mine.waitState(failed, "discarded")
	mine.ok("dead", "redrive", failed)
	again := mine.command("false", "--max-attempts", "1", "--unique-key", "k")
	mine.waitState(again, "discarded")
	mine.ok("dead", "discard", again)
	soon := mine.enqueue("noop", "--at", "1s", "--unique-key", "once")
	mine.waitState(soon, "completed")
	later := mine.enqueue("noop", "--at", "1h", "--unique-key", "later")
	unknown := mine.enqueue("report")
	running := mine.command("exec sleep 1000")
	mine.waitState(running, "running")
	for _, line := range []string{
		"job retry " + done, "job cancel " + later, "job retry " + later, "job cancel " + running, "job cancel " + unknown, "job retry " + unknown,
		"queue pause other", "queue resume other", "job list", "queue list", "dead list", "executor list", "audit list", "partitions list",
	} {
		mine.ok(strings.Fields(line)...)
	}
	mine.waitState(running, "cancelled")
	mine.waitState(later, "completed")
	mine.ok("job", "delete", later)
	runFlows(t, mine)
	runSchedules(t, mine)
	for line := range strings.Lines(server.err.String()) {
		if strings.Contains(line, "permission denied") && !strings.Contains(line, `"duty":"keeper"`) { // partitions are the owner's
			t.Errorf("the server complains: %s", line)
		}
	}
	server.signal(syscall.SIGTERM)
	if code := server.exit(); code != exitOK {
		t.Errorf("exit code is %d", code)
	}
	role, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool().Exec(t.Context(), `REVOKE INSERT ON pelton.schedule_tick FROM `+role.User.Username()); err != nil {
		t.Fatal(err)
	}
	mine.fails(exitFailed, `lacks rights in schema "pelton": INSERT on schedule_tick; grant them`, "server", "--listen", "127.0.0.1:0")
	if _, err := s.pool().Exec(t.Context(), `REVOKE INSERT ON pelton.job_attempt FROM `+role.User.Username()+`;
		REVOKE USAGE ON SEQUENCE pelton.job_log_id_seq FROM `+role.User.Username()); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"worker", "server --listen 127.0.0.1:0"} {
		mine.fails(exitFailed, `lacks rights in schema "pelton": INSERT on job_attempt, USAGE on job_log_id_seq; grant them`, strings.Fields(line)...)
	}
}
