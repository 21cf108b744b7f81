package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

// granted makes a role of the database, whose name takes quoting, with what `pelton grants` gives for these roles, and returns a shell of it.
func (s *shell) granted(roles string) *shell {
	s.t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	name := strings.ReplaceAll(roles, ",", "&") + ` we"ird ` + strings.TrimPrefix(u.Path, "/")
	owner := s.pool()
	if _, err := owner.Exec(s.t.Context(), "CREATE ROLE "+quoted(name)+" LOGIN"); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if _, err := owner.Exec(context.WithoutCancel(s.t.Context()), "DROP OWNED BY "+quoted(name)+"; DROP ROLE "+quoted(name)); err != nil {
			s.t.Error(err)
		}
	})
	for range 2 { // giving twice does no harm
		s.ok("grants", "--as", roles, "--to", name)
	}
	u.User = url.User(name)
	mine := shellOn(s.t, u.String())
	mine.role = name
	return mine
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// one is a single right that a statement gives, as REVOKE and GRANT take it.
var one = regexp.MustCompile(`[A-Z]+(?: \([^)]*\))?`)

// each is every single right that a role was given, as "SELECT ON ...".
func (s *shell) each(roles string) (rights []string) {
	s.t.Helper()
	for line := range strings.Lines(s.ok("grants", "--as", roles, "--to", "x", "--print")) {
		what, on, ok := strings.Cut(strings.TrimPrefix(line, "GRANT "), " ON ")
		on, _, ended := strings.Cut(on, ` TO "x";`)
		if !ok || !ended {
			s.t.Fatalf("no grant: %s", line)
		}
		for _, right := range one.FindAllString(what, -1) {
			verb, columns, some := strings.Cut(right, " (")
			if !some {
				rights = append(rights, right+" ON "+on)
				continue
			}
			for column := range strings.SplitSeq(strings.TrimSuffix(columns, ")"), ", ") {
				rights = append(rights, fmt.Sprintf("%s (%s) ON %s", verb, column, on))
			}
		}
	}
	return rights
}

// isDenied tells whether something failed for want of a right.
func isDenied(err error) bool {
	return err != nil && strings.Contains(err.Error(), "SQLSTATE 42501")
}

// needsEach takes every right of a role away in turn and sees that what the role is for fails then. Those that it can do without here are named,
// with the reason why they are given all the same; one that is named and needed is a fault as well. do is told on what the right is that
// was taken, so that it can begin there.
func (s *shell) needsEach(roles, role string, spared map[string]string, do func(object string) error) {
	t := s.t
	t.Helper()
	if err := do(""); err != nil {
		t.Fatalf("with all rights: %v", err)
	}
	for _, right := range s.each(roles) {
		if _, err := s.pool().Exec(t.Context(), "REVOKE "+right+" FROM "+quoted(role)); err != nil {
			t.Fatal(err)
		}
		object := strings.Trim(right[strings.LastIndex(right, ".")+1:], `"`)
		err := do(object)
		name := strings.NewReplacer(`"pelton".`, "", `"`, "").Replace(right)
		switch _, spare := spared[name]; {
		case err != nil && !isDenied(err):
			t.Fatalf("without %s: %v", name, err)
		case err == nil && !spare:
			t.Errorf("%s is not needed", name)
		case err != nil && spare:
			t.Errorf("%s is needed: %v", name, err)
		}
		if _, err := s.pool().Exec(t.Context(), "GRANT "+right+" TO "+quoted(role)); err != nil {
			t.Fatal(err)
		}
	}
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
	mine := s.granted("enqueuer")
	s.needsEach("enqueuer", mine.role, nil, func(string) error { return enqueueEverything(t, s.pool(), mine.pool(), mine) })
	for _, line := range []string{"job list", "job cancel 1", "job reschedule 1 --at 1h", "queue pause default", "audit list", "flow list", "schedule list", "user list"} {
		mine.denied(strings.Fields(line)...)
	}
	for _, sql := range []string{
		`SELECT args FROM pelton.job`, `SELECT output FROM pelton.job_attempt`, `SELECT * FROM pelton.job_report`, `SELECT data FROM pelton.job_log`,
		`UPDATE pelton.job SET args = '{}'`, `DELETE FROM pelton.job`, `DELETE FROM pelton.job_ready`, `INSERT INTO pelton.job_attempt VALUES (1)`,
		`SELECT args FROM pelton.job_old`,
	} {
		mine.deniedSQL(sql)
	}
}

// denied runs a command line that the role may not do.
func (s *shell) denied(args ...string) {
	s.t.Helper()
	r := s.try("", args...)
	if r.code == exitOK || !strings.Contains(r.err, "permission denied") || !strings.Contains(r.err, "run `pelton grants --as ROLE --to "+strconv.Quote(s.role)+"`") {
		s.t.Errorf("pelton %s by %s: %+v", strings.Join(args, " "), s.role, r)
	}
}

func (s *shell) deniedSQL(sql string) {
	s.t.Helper()
	if _, err := s.pool().Exec(s.t.Context(), sql); !isDenied(err) {
		s.t.Errorf("%s by %s: %v", sql, s.role, err)
	}
}

// Who may not read jobs is told the id of the one that holds a key, and nothing else of it.
func TestRoleWhoseClientEnqueuesUniqueJobs(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	mine := s.granted("enqueuer")
	first := s.enqueue("report", "--unique-key", "k", "--args", `{"secret": 1}`, "--priority", "4")
	again := mine.object("job", "enqueue", "report", "--unique-key", "k")
	if fmt.Sprint(again["id"]) != first || again["duplicate"] != true || strings.Contains(fmt.Sprint(again), "secret") {
		t.Errorf("second job of the key: %v", again)
	}
}

// runSecrets has a role for people set secrets, and a node use one, whose job is erased then.
func runSecrets(t *testing.T, mine *shell, keys string) {
	t.Helper()
	for _, value := range []string{"open sesame", "another value"} {
		if r := mine.try(value, "secret", "set", "PW", "--project", "s", "--secret-key-file", keys); r.code != exitOK {
			t.Errorf("secret set: %+v", r)
		}
	}
	mine.ok("secret", "key", "--add", keys)
	mine.ok("secret", "rekey", "--secret-key-file", keys)
	mine.ok("flow", "push", project(t, `
nodes:
  - {name: a, type: command, config: {command: "sh -c 'test \"${secret.PW}\" = \"another value\"; echo ${secret.PW}'"}}
`), "--project", "s")
	mine.ok("flow", "run", "s/f", "--wait")
	run := fmt.Sprint(mine.lines("flow", "runs", "s")[0]["id"])
	if log := mine.ok("flow", "logs", run, "a"); log != "***\n" {
		t.Errorf("the node printed %q", log)
	}
	nodes := as[[]any](t, mine.object("flow", "show", run)["nodes"])
	mine.ok("job", "erase", fmt.Sprint(as[map[string]any](t, nodes[0])["job_id"]))
	mine.ok("secret", "delete", "PW", "--project", "s")
}

// runFlows pushes, runs and operates on flows as one role, and sweeps them away as another.
func runFlows(t *testing.T, mine, scheduler *shell) {
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
	queue, err := jobs.NewClient(scheduler.pool(), nil)
	if err != nil {
		t.Fatal(err)
	}
	flows, err := flow.NewClient(scheduler.pool(), queue, &flow.Config{Retention: 1, KeepVersions: 1}) // what has ended is old
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

// A scheduler, a worker and an administrator, each as a role with its own rights only, do together all that there is to do.
func TestRolesTogether(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	scheduler, worker, mine := s.granted("scheduler"), s.granted("worker"), s.granted("admin")
	server := scheduler.launch("server", "--listen", "")
	server.started()
	keys := filepath.Join(t.TempDir(), "secret.key")
	mine.ok("secret", "key", keys)
	works := worker.launch("worker", "--listen", "127.0.0.1:0", "--files-dir", t.TempDir(), "--secret-key-file", keys)
	if status := get(t, fmt.Sprint(works.started()["endpoint"])+"/readyz"); status != 200 {
		t.Errorf("readiness of the worker is %d", status)
	}
	if status := get(t, fmt.Sprint(works.started()["endpoint"])+"/metrics"); status != 200 {
		t.Errorf("metrics of the worker: %d", status)
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
		"job retry " + done, "job reschedule --at 2h " + later, "job cancel " + later, "job retry " + later, "job cancel " + running, "job cancel " + unknown, "job retry " + unknown,
		"queue pause other", "queue resume other", "job list", "queue list", "dead list", "executor list", "audit list", "partitions list",
	} {
		mine.ok(strings.Fields(line)...)
	}
	mine.waitState(running, "cancelled")
	mine.waitState(later, "completed")
	mine.ok("job", "erase", later)
	mine.ok("job", "erase", again)
	mine.ok("job", "delete", later)
	runFlows(t, mine, scheduler)
	runSecrets(t, mine, keys)
	runSchedules(t, mine)
	if n := strings.Count(server.err.String(), "partitions are left to their owner"); n != 1 {
		t.Errorf("the scheduler says %d times that it leaves the partitions", n)
	}
	for _, p := range []*process{server, works} {
		for line := range strings.Lines(p.err.String()) {
			if strings.Contains(line, "permission denied") {
				t.Errorf("a process complains: %s", line)
			}
		}
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != exitOK {
			t.Errorf("exit code is %d", code)
		}
	}
	if _, err := s.pool().Exec(t.Context(), `REVOKE INSERT ON pelton.schedule_tick, pelton.job_attempt FROM `+quoted(scheduler.role)+`;
		REVOKE INSERT ON pelton.job_attempt FROM `+quoted(worker.role)+`; REVOKE USAGE ON SEQUENCE pelton.job_log_id_seq FROM `+quoted(worker.role)); err != nil {
		t.Fatal(err)
	}
	scheduler.fails(exitFailed, `lacks rights in schema "pelton": INSERT on job_attempt, INSERT on schedule_tick; give them with `+"`pelton grants --as scheduler`",
		"server", "--listen", "")
	worker.fails(exitFailed, `lacks rights in schema "pelton": INSERT on job_attempt, USAGE on job_log_id_seq; give them with `+"`pelton grants --as worker`", "worker")
}
