package main

import (
	"syscall"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

// Everything runs through a PgBouncer in transaction mode, but for the migrations, which have an address of their own.
func TestPeltonBehindAPooler(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := shellOn(t, pgtest.Pooler(t, dsn, "transaction")+"&default_query_exec_mode=exec")
	s.env["PELTON_MIGRATE_DATABASE_URL"] = dsn
	s.ok("migrate", "up")
	server := s.launch("server", "--listen", "", "--poll-only")
	first := s.launch("worker", "--poll-only")
	first.started()

	id := s.command("echo one; echo two >&2")
	s.waitState(id, "completed")
	if out := s.ok("job", "logs", id, "--stream", "stdout"); out != "one\n" {
		t.Errorf("stdout is %q", out)
	}
	cancelled := s.command("exec sleep 1000")
	s.waitState(cancelled, "running")
	s.ok("job", "cancel", cancelled)
	s.waitState(cancelled, "cancelled")

	lost := s.command(`if [ "$PELTON_ATTEMPT" = 1 ]; then exec sleep 1000; fi`)
	s.waitState(lost, "running")
	first.kill()
	second := s.launch("worker", "--poll-only")
	s.waitState(lost, "completed")
	if got := s.outcomes(lost); got != "lost completed" {
		t.Errorf("the job ended %q, want lost completed", got)
	}
	s.ok("queue", "pause", "default")
	waits := s.enqueue("noop")
	s.ok("queue", "resume", "default")
	s.waitState(waits, "completed")
	s.ok("partitions", "maintain")
	for _, p := range []*process{second, server} {
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != exitOK {
			t.Errorf("exit code of %v is %d", p.cmd.Args, code)
		}
	}
}
