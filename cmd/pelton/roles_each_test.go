package main

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

// What a worker and a scheduler have no need of, they lack.
func TestRolesLackWhatTheyDoNotNeed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for role, list := range map[string][]string{
		"worker": {
			`INSERT INTO pelton.access_user (name) VALUES ('x')`, `SELECT name FROM pelton.access_user`, `UPDATE pelton.job SET args = '{}'`,
			`DELETE FROM pelton.job`, `SELECT pelton.enqueue('do')`, `SELECT pelton.pause_queue('default')`, `DELETE FROM pelton.flow_run`,
			`DELETE FROM pelton.audit`, `INSERT INTO pelton.audit (action, target) VALUES ('a', 'b')`, `SELECT spec FROM pelton.schedule`,
			`UPDATE pelton.job_attempt SET outcome = 'completed'`, `DELETE FROM pelton.job_dead`, `SELECT args FROM pelton.job_report`,
		},
		"scheduler": {
			`SELECT hash FROM pelton.access_token`, `UPDATE pelton.job SET args = '{}'`, `DELETE FROM pelton.job`, `DELETE FROM pelton.audit`,
			`SELECT data FROM pelton.job_log`, `INSERT INTO pelton.flow (version_id) VALUES (1)`, `UPDATE pelton.schedule SET spec = '{}'`,
			`SELECT pelton.pause_queue('default')`, `UPDATE pelton.job_dead SET error = NULL`, `INSERT INTO pelton.job_lease VALUES (1, 1)`,
		},
		"admin": {
			`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) SELECT id, 1, 1, 'completed' FROM pelton.job; DELETE FROM pelton.audit`,
			`DELETE FROM pelton.audit`, `UPDATE pelton.audit SET actor = 'x'`, `INSERT INTO pelton.job_lease VALUES (1, 1)`, `DROP TABLE pelton.job_dead`, `CREATE TABLE pelton.x ()`, `TRUNCATE pelton.job_log`,
		},
	} {
		mine := s.granted(role)
		for _, sql := range list {
			mine.deniedSQL(sql)
		}
	}
}

// Who audits reads everything but hashes, by SQL and by the commands, and changes nothing.
func TestRoleThatAudits(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	mine := s.granted("auditor")
	s.addUser("alice", "--role", "admin")
	s.ok("token", "create", "alice", "--name", "t")
	s.ok("flow", "push", project(t, "nodes:\n  - {name: a, type: noop}\n"), "--project", "p")
	s.ok("flow", "run", "p/f")
	s.ok("schedule", "put", "s", "--cron", "@hourly", "--kind", "noop")
	id := s.enqueue("report", "--args", `{"n": 1}`)
	for _, line := range []string{
		"job list", "job show " + id, "job logs " + id, "queue list", "dead list", "executor list", "audit list", "partitions list",
		"flow list", "flow versions p", "flow runs p", "flow show 1", "flow graph p/f --svg -", "schedule list", "schedule show s", "schedule ticks s",
	} {
		mine.ok(strings.Fields(line)...)
	}
	queue, err := jobs.NewClient(mine.pool(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := queue.Audit(t.Context()); err != nil || len(report.Lost) > 0 {
		t.Errorf("audit: %+v, %v", report, err)
	}
	for _, right := range s.each("auditor") {
		what, on, _ := strings.Cut(right, " ON ")
		if !strings.HasPrefix(what, "SELECT") {
			if what != "USAGE" || on != `SCHEMA "pelton"` {
				t.Errorf("an auditor has %s", right)
			}
			continue
		}
		columns := strings.Trim(strings.TrimPrefix(what, "SELECT"), " ()")
		if _, err := mine.pool().Exec(t.Context(), fmt.Sprintf("SELECT %s FROM %s LIMIT 1", cmp.Or(columns, "*"), strings.TrimPrefix(on, "SEQUENCE "))); err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
	for _, sql := range []string{
		`SELECT password FROM pelton.access_user`, `SELECT * FROM pelton.access_user`, `SELECT hash FROM pelton.access_token`, `SELECT * FROM pelton.access_session`,
		`SELECT pelton.enqueue('do')`, `SELECT pelton.cancel(` + id + `)`, `DELETE FROM pelton.audit`, `UPDATE pelton.queue SET name = 'x'`,
	} {
		mine.deniedSQL(sql)
	}
	mine.denied("job", "cancel", id)
	mine.denied("schedule", "pause", "s")
}

// Who starts flows has no right that he can do without, and lacks what he has no need of.
func TestRoleThatStartsFlows(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("flow", "push", project(t, "nodes:\n  - {name: a, type: noop}\n"), "--project", "p")
	mine := s.granted("starter")
	queue, err := jobs.NewClient(mine.pool(), nil)
	if err != nil {
		t.Fatal(err)
	}
	flows, err := flow.NewClient(mine.pool(), queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.needsEach("starter", mine.role, map[string]string{
		"SELECT ON schema_migrations": "for those who ask first whether the schema is theirs, as the manual says",
	}, func(string) error {
		for _, how := range []flow.Concurrent{flow.Allow, flow.Pipeline1, flow.Queue} {
			err := pgx.BeginFunc(t.Context(), mine.pool(), func(tx pgx.Tx) error {
				_, err := flows.RunTx(t.Context(), tx, flow.RunParams{Project: "p", Flow: "f", Options: flow.Options{Concurrent: how}})
				return err
			})
			if err != nil {
				return err
			}
		}
		_, err := flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "f"})
		return err
	})
	for _, sql := range []string{
		`UPDATE pelton.flow_project SET name = 'x'`, `SELECT args FROM pelton.job`, `DELETE FROM pelton.flow_run`, `UPDATE pelton.flow_node SET status = 'SUCCEEDED'`,
		`SELECT pelton.enqueue('do')`, `SELECT data FROM pelton.flow_content`,
	} {
		mine.deniedSQL(sql)
	}
}
