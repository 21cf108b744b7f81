package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/internal/postgres"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

// alive is a database where a server and a worker are at it: jobs have ended, run, wait, are scheduled and pending, a flow's run waits for a node
// that runs, and a schedule fires each second. What runs ends when the file is there.
func alive(t *testing.T, s *shell) (file string, ids []string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "go")
	s.launch("server", "--listen", "").started()
	s.launch("worker", "--queues", "default:3,flow:1", "--files-dir", t.TempDir()).started()
	ended := s.command("true", "--unique-key", "ended")
	s.waitState(ended, "completed")
	hold := "test -e " + file + " || sleep 1000"
	for range 6 { // three run, three wait
		ids = append(ids, s.command(hold))
	}
	s.waitState(ids[2], "running")
	ids = append(ids, s.command("true", "--at", "2s"), s.command("false; test -e "+file, "--unique-key", "unique"), ended)
	s.ok("flow", "push", project(t, "nodes:\n  - {name: a, type: command, config: {command: sh -c '"+hold+"', retries: 1, retry.backoff: 10}}\n  - {name: b, type: noop, dependsOn: [a]}\n"), "--project", "p")
	s.ok("flow", "run", "p/f", "--queue", "flow")
	pgtest.Eventually(t, patience, func() bool { return s.object("flow", "show", "1")["status"] == "RUNNING" }, "the flow to run")
	s.ok("schedule", "put", "s", "--every", "1s", "--kind", "noop", "--queue", "flow")
	pgtest.Eventually(t, patience, func() bool { return len(s.lines("schedule", "ticks", "s", "--outcome", "fired")) > 0 }, "a tick")
	return file, ids
}

// goesOn starts a server and a worker on a restored database, and sees that all that was under way in the other one comes to its end, once.
func goesOn(t *testing.T, s *shell, file string, ids []string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ticks := len(s.lines("schedule", "ticks", "s", "--outcome", "fired"))
	s.launch("server", "--listen", "").started()
	s.launch("worker", "--queues", "default:10,flow:3", "--files-dir", t.TempDir()).started()
	for _, id := range ids {
		s.waitState(id, "completed")
	}
	pgtest.Eventually(t, patience, func() bool { return s.object("flow", "show", "1")["status"] != "RUNNING" }, "the flow to end")
	if run := s.object("flow", "show", "1"); run["status"] != "SUCCEEDED" {
		t.Errorf("the run of the flow: %v", run)
	}
	pgtest.Eventually(t, patience, func() bool { return len(s.lines("schedule", "ticks", "s", "--outcome", "fired")) > ticks }, "further ticks")
	if again := s.object("job", "enqueue", "command", "--args", `{"command": "true"}`, "--unique-key", "ended"); fmt.Sprint(again["id"]) != ids[len(ids)-1] {
		t.Errorf("the key of a job that has ended is taken by %v", again["id"])
	}
	s.ok("schedule", "pause", "s")
	pgtest.Eventually(t, patience, func() bool {
		var open int
		err := s.pool().QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pelton.job_ready) + (SELECT count(*) FROM pelton.job_lease) +
			(SELECT count(*) FROM pelton.job_scheduled)`).Scan(&open)
		return err == nil && open == 0
	}, "nothing to be under way")
	var twice int
	if err := s.pool().QueryRow(t.Context(), `SELECT count(*) FROM (SELECT job_id FROM pelton.job_attempt WHERE outcome = 'completed'
		GROUP BY job_id HAVING count(*) > 1) t`).Scan(&twice); err != nil || twice != 0 {
		t.Errorf("%d jobs were completed twice, %v", twice, err)
	}
	client, err := jobs.NewClient(s.pool(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := client.Audit(t.Context()); err != nil || len(report.Lost)+len(report.Twice)+len(report.Stale) > 0 {
		t.Errorf("audit: %+v, %v", report, err)
	}
	if out := s.ok("partitions", "maintain"); !strings.Contains(out, "partitions ahead") {
		t.Errorf("maintenance: %s", out)
	}
}

// beside is one of PostgreSQL's beside the server that tests use.
func beside(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("this PostgreSQL came without %s: some packages hold the server alone", name)
	}
	return path
}

// A dump of a database at work, restored into a new one, goes on where it was.
func TestRestoredDumpGoesOn(t *testing.T) {
	t.Parallel()
	if !pgtest.FullSize() {
		t.Skip("it takes half a minute of a quiet machine; `make scenarios` runs it")
	}
	bin := pgtest.Cluster(t).BinDir()
	dump, restore := beside(t, bin, "pg_dump"), beside(t, bin, "pg_restore")
	s := newShell(t)
	file, ids := alive(t, s)
	archive := filepath.Join(t.TempDir(), "dump")
	into := pgtest.Database(t)
	for _, line := range [][]string{{dump, "-Fc", "-f", archive, s.url}, {restore, "--exit-on-error", "-d", into, archive}} {
		if out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line[0], err, out)
		}
	}
	restored := shellOn(t, into)
	if err := schema.Check(t.Context(), restored.pool(), schema.DefaultName); err != nil {
		t.Fatal(err)
	}
	goesOn(t, restored, file, ids)
}

// dirFor makes a directory in a new one that is the server's user's.
func dirFor(t *testing.T, server *postgres.Cluster, name string) string {
	t.Helper()
	dir := filepath.Join(pgtest.Dir(t), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	owned(t, server, dir)
	return dir
}

// owned gives a file to the user that the server runs as, who may be another.
func owned(t *testing.T, server *postgres.Cluster, path string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "chown", "--reference", server.DataDir(), path).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v: %s", err, out)
	}
}

// baseBackup copies the data of a server that goes on.
func baseBackup(t *testing.T, server *postgres.Cluster) (data string) {
	t.Helper()
	u, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	data = dirFor(t, server, "data")
	backup := server.Beside(t.Context(), "pg_basebackup", "-D", data, "-X", "stream", "-c", "fast", "-h", u.Hostname(), "-p", u.Port(), "-U", u.User.Username())
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	return data
}

// A base backup and the WAL that was archived since bring back the moment before a mistake: what was enqueued after the backup is there and runs, what came
// after the mistake is not.
func TestRecoveryToAMoment(t *testing.T) {
	t.Parallel()
	archive := dirFor(t, pgtest.Cluster(t), "archive")
	server := pgtest.NewCluster(t, postgres.Config{NoSync: true, Settings: map[string]string{
		"wal_level": "replica", "max_wal_senders": "4", "archive_mode": "on", "archive_command": "cp %p " + archive + "/%f",
	}})
	beside(t, server.BinDir(), "pg_basebackup")
	if err := schema.Up(t.Context(), server.DSN("postgres"), schema.DefaultName); err != nil {
		t.Fatal(err)
	}
	s := shellOn(t, server.DSN("postgres"))
	do := func(sql string) {
		t.Helper()
		if _, err := s.pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	before := s.command("true")
	data := baseBackup(t, server)
	since := s.command("true")
	do(`SELECT pg_create_restore_point('before the mistake')`)
	do(`DELETE FROM pelton.job_ready`)
	after := s.command("true")
	do(`SELECT pg_switch_wal()`)
	pgtest.Eventually(t, patience, func() bool {
		var archived bool
		err := s.pool().QueryRow(t.Context(), `SELECT last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 16777216) FROM pg_stat_archiver`).Scan(&archived)
		return err == nil && archived
	}, "the WAL to be archived")

	signal := filepath.Join(data, "recovery.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	owned(t, server, signal)
	recovered := pgtest.NewCluster(t, postgres.Config{DataDir: data, NoSync: true, Settings: map[string]string{
		"restore_command": "cp " + archive + "/%f %p", "recovery_target_name": "before the mistake", "recovery_target_action": "promote",
	}})
	r := shellOn(t, recovered.DSN("postgres"))
	pgtest.Eventually(t, patience, func() bool {
		recovering := true
		err := r.pool().QueryRow(t.Context(), `SELECT pg_is_in_recovery()`).Scan(&recovering)
		return err == nil && !recovering
	}, "the recovery to end")
	r.fails(exitNotFound, after, "job", "show", after)
	r.launch("server", "--listen", "").started()
	r.launch("worker", "--queues", "default:3", "--files-dir", t.TempDir()).started()
	for _, id := range []string{before, since} {
		r.waitState(id, "completed")
	}
	client, err := jobs.NewClient(r.pool(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := client.Audit(t.Context()); err != nil || len(report.Lost)+len(report.Twice)+len(report.Stale) > 0 {
		t.Errorf("audit: %+v, %v", report, err)
	}
}

// A base backup of a server at work, with the leases of executors that are not there any more, goes on where it was.
func TestRestoredBaseBackupGoesOn(t *testing.T) {
	t.Parallel()
	if !pgtest.FullSize() {
		t.Skip("it takes half a minute of a quiet machine; `make scenarios` runs it")
	}
	server := pgtest.NewCluster(t, postgres.Config{NoSync: true, Settings: map[string]string{"wal_level": "replica", "max_wal_senders": "4"}})
	beside(t, server.BinDir(), "pg_basebackup")
	if err := schema.Up(t.Context(), server.DSN("postgres"), schema.DefaultName); err != nil {
		t.Fatal(err)
	}
	s := shellOn(t, server.DSN("postgres"))
	file, ids := alive(t, s)
	data := baseBackup(t, server)
	copied := pgtest.NewCluster(t, postgres.Config{DataDir: data, NoSync: true})
	goesOn(t, shellOn(t, copied.DSN("postgres")), file, ids)
}
