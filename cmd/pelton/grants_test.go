package main

import (
	"strings"
	"testing"
)

func TestGrants(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fails(exitUsage, "--to is missing", "grants", "--as", "worker")
	s.fails(exitUsage, "--as is missing: what x is to do", "grants", "--to", "x")
	s.fails(exitUsage, `"root" is no role: want enqueuer, starter, worker, scheduler, auditor or admin`, "grants", "--as", "root", "--to", "x")
	s.fails(exitFailed, `role does not exist: no "one; make it first: CREATE ROLE "no ""one" LOGIN`, "grants", "--as", "worker", "--to", `no "one`)
	mine := s.granted("auditor")
	mine.fails(exitFailed, "does not own the tables", "grants", "--as", "admin", "--to", mine.role)
	sql := s.ok("grants", "--as", "enqueuer", "--to", mine.role, "--print", "--revoke")
	for _, want := range []string{
		`REVOKE SELECT ON TABLE "pelton"."audit" FROM ` + quoted(mine.role) + ";\n",
		`GRANT SELECT ("id"), INSERT ON "pelton"."job" TO ` + quoted(mine.role) + ";\n",
	} {
		if !strings.Contains(sql, want) {
			t.Errorf("no %q in\n%s", want, sql)
		}
	}
	mine.ok("audit", "list") // nothing was changed
	doc := s.object("grants", "--as", "enqueuer", "--to", mine.role, "--revoke")
	fields(t, doc, "to", "schema", "done", "statements")
	mine.denied("audit", "list")
	mine.enqueue("report", "--unique-key", "k")
	if again := s.ok("grants", "--as", "enqueuer", "--to", mine.role, "--print", "--revoke"); strings.Contains(again, "REVOKE") {
		t.Errorf("there is still something to take back:\n%s", again)
	}
	if out := s.ok("grants", "--to", mine.role, "--revoke"); !strings.Contains(out, "has no rights any more") {
		t.Errorf("all is taken: %s", out)
	}
	mine.denied("job", "enqueue", "report")
	mine.fails(exitFailed, "migrate as the owner of schema", "migrate", "up", "--schema", "another")
	if _, err := s.pool().Exec(t.Context(), "REVOKE CONNECT ON DATABASE "+quoted(s.pool().Config().ConnConfig.Database)+" FROM PUBLIC"); err != nil {
		t.Fatal(err)
	}
	mine.fails(exitFailed, "it may with GRANT CONNECT ON DATABASE", "job", "list")
	// Without a database, for somebody who may not connect as the owner, and for a schema of another name.
	offline := shellOn(t, "postgres://127.0.0.1:1/none")
	if out := offline.ok("grants", "--as", "worker,enqueuer", "--to", "x", "--print", "--schema", "mine"); !strings.Contains(out, `GRANT SELECT, INSERT ON "mine"."job" TO "x";`) {
		t.Errorf("printed: %s", out)
	}
	offline.fails(exitUnreachable, "", "grants", "--as", "worker", "--to", "x")
}

// A server that is a member of the tables' owner keeps the partitions.
func TestGrantsToASchedulerThatMayBecomeTheOwner(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	mine := s.granted("scheduler")
	mine.fails(exitFailed, "not the owner of the tables", "partitions", "maintain")
	var owner string
	if err := s.pool().QueryRow(t.Context(), `SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'pelton.job'::regclass`).Scan(&owner); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool().Exec(t.Context(), "ALTER ROLE "+quoted(mine.role)+" NOINHERIT; GRANT "+quoted(owner)+" TO "+quoted(mine.role)); err != nil {
		t.Fatal(err)
	}
	if ahead := as[map[string]any](t, mine.object("partitions", "maintain")["ahead"]); len(ahead) != 4 {
		t.Errorf("partitions ahead: %v", ahead)
	}
	mine.enqueue("noop")
}
