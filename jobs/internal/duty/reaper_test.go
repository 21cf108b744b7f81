package duty_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/internal/duty"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// end records a run as a finisher does.
const end = `INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, $2, 1, 'completed')`

func reap(t *testing.T, r *duty.Reaper, executor int64) {
	t.Helper()
	if err := r.Reap(t.Context(), executor); err != nil {
		t.Fatal(err)
	}
}

func TestReaperPutsBackWhatDidNotEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(250)
	executor := f.executor(ids)
	f.exec(end, ids[7], 1)
	var lost int
	r := duty.NewReaper(f.store, duty.Config{Reaped: func(n, _ int) { lost += n }})
	reap(t, r, executor)
	if lost != 249 {
		t.Errorf("%d lost, want 249", lost)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_ready WHERE cardinality(job_ids) = 1 AND runs = '{2}' AND attempts = '{1}' AND line = 'default'`); n != 249 {
		t.Errorf("%d tickets of one, want 249", n)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_ready WHERE job_ids @> ARRAY[$1::bigint]`, ids[7]); n != 0 {
		t.Error("the finished job is back in the line")
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'lost' AND executor = $1 AND started_at IS NOT NULL AND attempt = 1`, executor); n != 249 {
		t.Errorf("%d runs are recorded as lost, want 249", n)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_lease`); n != 0 {
		t.Errorf("%d leases are left", n)
	}
	reap(t, r, executor)
	if n := f.int(`SELECT count(*) FROM pelton.job_ready`); n != 249 {
		t.Errorf("%d tickets after reaping twice, want 249", n)
	}
}

// The reaper has read that the run has not ended, and waits for the finisher's row: what it goes on to do must not rest on what
// it read.
func TestFinishWinsWhileTheReaperWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(1)
	executor := f.executor(ids)
	finish := f.begin()
	if _, err := finish.Exec(t.Context(), end, ids[0], 1); err != nil {
		t.Fatal(err)
	}
	r := duty.NewReaper(f.store, duty.Config{})
	done := make(chan error, 1)
	go func() { done <- r.Reap(t.Context(), executor) }()
	pgtest.Eventually(t, time.Minute, func() bool {
		return f.int(`SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`) > 0 || len(done) > 0
	}, "the reaper to wait for the finisher")
	if err := finish.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	reap(t, r, executor)
	if n := f.int(`SELECT count(*) FROM pelton.job_ready`); n != 0 {
		t.Fatal("a finished job went back into the line")
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_attempt`); n != 1 {
		t.Fatalf("%d attempts, want 1", n)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_lease`); n != 0 {
		t.Fatal("the lease is left")
	}
}

func TestRunHeldByAnOpenTransactionDelaysItselfOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(120)
	executor := f.executor(ids)
	complete := f.begin()
	if _, err := complete.Exec(t.Context(), end, ids[50], 1); err != nil {
		t.Fatal(err)
	}
	r := duty.NewReaper(f.store, duty.Config{})
	reap(t, r, executor)
	if n := f.int(`SELECT count(*) FROM pelton.job_ready`); n != 119 {
		t.Fatalf("%d jobs are back, want 119", n)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_lease`); n != 1 {
		t.Fatalf("%d leases, want the held job's", n)
	}
	if err := complete.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	reap(t, r, executor)
	if n := f.int(`SELECT count(*) FROM pelton.job_ready`); n != 120 {
		t.Fatalf("%d jobs are back after the rollback, want 120", n)
	}
}

// A run that cannot be recorded stays leased and is reported; the others go back.
func TestReaperLeavesWhatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(700)
	executor, bad := f.executor(ids), ids[150]
	f.exec(fmt.Sprintf(`ALTER TABLE pelton.job_attempt ADD CONSTRAINT odd CHECK (job_id <> %d)`, bad))
	told := &bytes.Buffer{}
	lost := 0
	r := duty.NewReaper(f.store, duty.Config{Log: slog.New(slog.NewTextHandler(told, nil)), Reaped: func(n, _ int) { lost += n }})
	reap(t, r, executor)
	if n := f.int(`SELECT count(*) FROM pelton.job_ready`); n != 699 || lost != 699 {
		t.Errorf("%d jobs are back, %d told of, want 699", n, lost)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_lease WHERE $1 = ANY (job_ids)`, bad); n != 1 || f.int(`SELECT count(*) FROM pelton.job_lease`) != 1 {
		t.Error("the lease of the bad run, and no other, must stay")
	}
	if want := fmt.Sprintf("job_id=%d run=1", bad); !strings.Contains(told.String(), want) || !strings.Contains(told.String(), "odd") {
		t.Errorf("log is %q, want %s in it, and the constraint", told, want)
	}
	f.exec(`ALTER TABLE pelton.job_attempt DROP CONSTRAINT odd`)
	reap(t, r, executor)
	if n := f.int(`SELECT count(*) FROM pelton.job_ready`); n != 700 || f.int(`SELECT count(*) FROM pelton.job_lease`) != 0 {
		t.Errorf("%d jobs are back once the fault is gone, want 700, and no lease", n)
	}
}

func TestReaperKnowsPoisonFromItsNeighbours(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(5)
	fresh, twice, poison, exhausted, missing := ids[0], ids[1], ids[2], ids[3], ids[4]
	executor := f.int(`INSERT INTO pelton.executor (pid, name, host) VALUES (1, 'e', 'h') RETURNING id`)
	f.exec(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, 1, 1, 'lost'), ($2, 1, 1, 'lost'), ($2, 2, 2, 'lost')`, twice, poison)
	f.exec(`UPDATE pelton.job SET max_attempts = 1 WHERE id = $1`, exhausted)
	f.exec(`DELETE FROM pelton.job WHERE id = $1`, missing)
	f.exec(`INSERT INTO pelton.job_lease (executor, no, job_ids, runs, attempts) VALUES ($1, 1, $2, '{1,2,3,1,1}', '{0,1,2,0,0}')`, executor, ids)
	r := duty.NewReaper(f.store, duty.Config{LostLimit: 3})
	reap(t, r, executor)
	if n := f.int(`SELECT job_ids[1] FROM pelton.job_ready`); n != fresh {
		t.Errorf("job %d is back at once, want %d", n, fresh)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_scheduled WHERE job_id = $1 AND run = 3 AND attempts = 2 AND retry AND wake > now() + interval '10 seconds' AND wake < now() + interval '20 seconds'`, twice); n != 1 {
		t.Error("the job that was lost twice in a row does not wait 16 s")
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_dead`); n != 2 || f.letter(poison) != "poison" || f.letter(exhausted) != "exhausted" {
		t.Errorf("%d dead letters, %q and %q, want poison and exhausted", n, f.letter(poison), f.letter(exhausted))
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'discarded'`); n != 3 {
		t.Errorf("%d discarded, want 3: poison, exhausted, and the job without a row", n)
	}
	if got := f.text(`SELECT error FROM pelton.job_attempt WHERE job_id = $1`, missing); got != "the job's row is missing: what was asked is not known any more" {
		t.Errorf("the job without a row ended with %q", got)
	}
}

// A node of a flow is run again after a loss also if its program may not be tried again, until it is poison.
func TestLossIsNoLastAttemptOfANode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(2)
	node, poison := ids[0], ids[1]
	executor := f.int(`INSERT INTO pelton.executor (pid, name, host) VALUES (1, 'e', 'h') RETURNING id`)
	f.exec(`UPDATE pelton.job SET max_attempts = 1, metadata = '{"pelton:flow": {"run": 1, "node": 0}}'`)
	f.exec(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, 1, 1, 'lost'), ($1, 2, 2, 'lost')`, poison)
	f.exec(`INSERT INTO pelton.job_lease (executor, no, job_ids, runs, attempts) VALUES ($1, 1, $2, '{1,3}', '{0,2}')`, executor, ids)
	reap(t, duty.NewReaper(f.store, duty.Config{LostLimit: 3}), executor)
	if got := f.text(`SELECT concat_ws(' ', job_ids[1], runs[1], attempts[1]) FROM pelton.job_ready`); got != fmt.Sprintf("%d 2 1", node) {
		t.Errorf("in the line is %q, want the second run of job %d", got, node)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_dead`); n != 1 || f.letter(poison) != "poison" {
		t.Errorf("%d dead letters, %q, want poison", n, f.letter(poison))
	}
}

func TestDeadIsWhoseCounterStandsStill(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(3)
	dead, living, gone := f.executor(ids[:1]), f.executor(ids[1:2]), f.executor(ids[2:])
	f.exec(`DELETE FROM pelton.executor WHERE id = $1`, gone)
	f.exec(`INSERT INTO pelton.job_sleeper (line, executor) VALUES ('default', $1)`, dead)
	r := duty.NewReaper(f.store, duty.Config{Lease: 50 * time.Millisecond})
	pgtest.Eventually(t, time.Minute, func() bool {
		f.exec(`UPDATE pelton.executor SET beat = beat + 1 WHERE id = $1`, living)
		if _, err := r.Step(t.Context()); err != nil {
			t.Error(err)
		}
		return f.int(`SELECT count(*) FROM pelton.executor WHERE id = $1 AND died_at IS NOT NULL`, dead) == 1
	}, "the executor to be declared dead")
	if n := f.int(`SELECT count(*) FROM pelton.job_ready WHERE job_ids[1] IN ($1, $2)`, ids[0], ids[2]); n != 2 {
		t.Errorf("%d of the two jobs without a living executor are back", n)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_lease WHERE executor = $1`, living); n != 1 {
		t.Error("the living executor's lease is gone")
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_sleeper`); n != 0 {
		t.Error("the dead executor still sleeps")
	}
}

func TestHeartbeatUnderTheReapersHandsWins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	executor := f.executor(nil)
	beat := f.begin()
	if _, err := beat.Exec(t.Context(), `UPDATE pelton.executor SET beat = beat + 1 WHERE id = $1`, executor); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool, 1)
	fault := make(chan error, 1)
	go func() {
		marked, err := f.store.MarkDead(t.Context(), store.Beat{Executor: executor, Count: 0, Alive: true})
		fault <- err
		done <- marked
	}()
	pgtest.Eventually(t, time.Minute, func() bool {
		return f.int(`SELECT count(*) FROM pg_locks WHERE NOT granted`) > 0
	}, "the reaper to wait for the heartbeat")
	if err := errors.Join(beat.Commit(t.Context()), <-fault); err != nil {
		t.Fatal(err)
	}
	if <-done {
		t.Fatal("declared dead though the counter had moved")
	}
}

func TestCrossingReapersPutBackOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(3000)
	executor := f.executor(ids)
	done := make(chan error, 4)
	for range 4 {
		r := duty.NewReaper(f.store, duty.Config{})
		go func() { done <- r.Reap(t.Context(), executor) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	reap(t, duty.NewReaper(f.store, duty.Config{}), executor)
	if n := f.int(`SELECT count(*) FROM pelton.job_ready`); n != 3000 {
		t.Errorf("%d tickets, want 3000", n)
	}
	if n := f.int(`SELECT count(DISTINCT job_ids) FROM pelton.job_ready`); n != 3000 {
		t.Errorf("%d different jobs are back, want 3000", n)
	}
}
