package duty_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/internal/duty"
)

const schedule = `INSERT INTO pelton.job_scheduled (job_id, wake, due, run, attempts, retry)
	SELECT id, clock_timestamp() + $2::interval, clock_timestamp(), $3, $4::smallint, $4::smallint > 0 FROM unnest($1::bigint[]) id`

func move(t *testing.T, m *duty.Mover) time.Duration {
	t.Helper()
	wait, err := m.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

func TestMoverMovesWhatIsDue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	m := duty.NewMover(f.store, duty.Config{})
	if wait := move(t, m); wait != 7500*time.Millisecond {
		t.Fatalf("looks again in %v with nothing scheduled, want 7.5 s", wait)
	}
	ids := f.jobs(4)
	f.exec(schedule, ids[:2], "0", 1, 0)
	f.exec(schedule, ids[2:3], "0", 3, 2)
	f.exec(schedule, ids[3:], "2 seconds", 1, 0)
	f.exec(`INSERT INTO pelton.job_change (job_id, queue, priority) VALUES ($1, 'other', 3)`, ids[2])
	if wait := move(t, m); wait != 0 {
		t.Fatalf("looks again in %v after a batch, want at once", wait)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_ready WHERE line = 'default' AND priority = 1 AND job_ids <@ $1 AND runs IS NULL AND attempts IS NULL`, ids[:2]); n != 2 {
		t.Fatalf("%d tickets for the first two, want 2", n)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_ready WHERE line = 'other' AND priority = 3 AND job_ids = $1 AND runs = '{3}' AND attempts = '{2}'`, ids[2:3]); n != 1 {
		t.Fatal("the changed job is not in its new line under its run")
	}
	if wait := move(t, m); wait <= 0 || wait > 2*time.Second {
		t.Fatalf("looks again in %v, want when the last one is due", wait)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_scheduled`); n != 1 {
		t.Fatalf("%d jobs are left, want 1", n)
	}
}

func TestMoverEndsAJobWithoutARow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(schedule, append(f.jobs(1), 42), "0", 2, 1)
	move(t, duty.NewMover(f.store, duty.Config{}))
	if got := f.text(`SELECT outcome || ' ' || run || ': ' || error FROM pelton.job_attempt WHERE job_id = 42`); got != "discarded 2: the job's row is missing: what was asked is not known any more" {
		t.Fatal(got)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_ready`); n != 1 {
		t.Fatalf("%d tickets, want 1: the other job goes on", n)
	}
}

func TestMoverHonoursVoids(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(4)
	cancelled, before, deleted, stale := ids[0], ids[1], ids[2], ids[3]
	f.exec(schedule, ids, "0", 2, 1)
	f.exec(`INSERT INTO pelton.job_void (job_id, run, reason) VALUES ($1, 2, 'cancelled'), ($2, 1, 'cancelled'), ($3, 2, 'deleted'), ($4, 1, 'moved')`,
		cancelled, before, deleted, stale)
	f.exec(`DELETE FROM pelton.job WHERE id = $1`, deleted)
	move(t, duty.NewMover(f.store, duty.Config{}))
	if n := f.int(`SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'cancelled' AND run = 2 AND attempt = 1 AND job_id IN ($1, $2)`, cancelled, before); n != 2 {
		t.Errorf("%d of two jobs are cancelled", n)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_attempt`); n != 2 {
		t.Errorf("%d attempts, want 2: nothing is left of the deleted job", n)
	}
	if n := f.int(`SELECT job_ids[1] FROM pelton.job_ready`); n != stale {
		t.Error("the job that was moved before is not in the line")
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_void WHERE reason <> 'moved'`); n != 0 {
		t.Errorf("%d voids are left", n)
	}
}

func TestMoversShareTheWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const jobs = 5000
	f.exec(schedule, f.jobs(jobs), "0", 1, 0)
	var movers sync.WaitGroup
	for range 4 {
		m := duty.NewMover(f.store, duty.Config{})
		movers.Go(func() {
			pgtest.Eventually(t, time.Minute, func() bool {
				if _, err := m.Step(t.Context()); err != nil {
					t.Error(err)
				}
				return f.int(`SELECT count(*) FROM pelton.job_scheduled`) == 0
			}, "all jobs to be moved")
		})
	}
	movers.Wait()
	if n := f.int(`SELECT count(*) FROM (SELECT unnest(job_ids) AS id FROM pelton.job_ready) r`); n != jobs {
		t.Fatalf("%d runs in the line, want %d", n, jobs)
	}
	if n := f.int(`SELECT count(DISTINCT id) FROM (SELECT unnest(job_ids) AS id FROM pelton.job_ready) r`); n != jobs {
		t.Fatalf("%d different jobs in the line, want %d", n, jobs)
	}
	if n := f.int(`SELECT max(cardinality(job_ids)) FROM pelton.job_ready`); n > 100 {
		t.Fatalf("a ticket of %d jobs, want at most 100", n)
	}
}

func TestMoverTakesUniqueKeysAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(4)
	lost, kept, freed, held := ids[0], ids[1], ids[2], ids[3]
	f.exec(`UPDATE pelton.job SET unique_key = int8send(id), unique_states = pelton.state_bit('available') WHERE id = ANY ($1)`, ids)
	other := f.jobs(1)[0]
	f.exec(`INSERT INTO pelton.job_unique VALUES (int8send($1), $2, 1), (int8send($3), $3, 1)`, lost, other, kept)
	tx := f.begin()
	if _, err := tx.Exec(t.Context(), `INSERT INTO pelton.job_unique VALUES (int8send($1), $2, 1)`, held, other); err != nil {
		t.Fatal(err)
	}
	f.exec(schedule, ids, "0", 2, 1)
	move(t, duty.NewMover(f.store, duty.Config{}))
	if n := f.int(`SELECT count(*) FROM pelton.job_ready WHERE job_ids = ARRAY[$1::bigint] OR job_ids = ARRAY[$2::bigint]`, kept, freed); n != 2 {
		t.Fatalf("%d of the two with a key are in the line", n)
	}
	if n := f.int(`SELECT job_id FROM pelton.job_unique WHERE key = int8send($1)`, freed); n != freed {
		t.Fatal("the freed key was not taken again")
	}
	if got := f.text(`SELECT outcome::text FROM pelton.job_attempt WHERE job_id = $1 AND run = 2`, lost); got != "discarded" || f.letter(lost) != "conflict" {
		t.Fatalf("the job whose key is lost is %s and buried as %q", got, f.letter(lost))
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_scheduled WHERE job_id = $1 AND retry AND run = 2 AND attempts = 1`, held); n != 1 {
		t.Fatal("the job whose key is just being inserted does not wait")
	}
}

func TestMoverRestsOnAFloor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pin := f.begin() // pins xmin
	if _, err := pin.Exec(t.Context(), `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`); err != nil {
		t.Fatal(err)
	}
	if _, err := pin.Exec(t.Context(), `SELECT txid_current()`); err != nil {
		t.Fatal(err)
	}
	config := duty.Config{}
	config.Mark.Pace, config.Mark.Look, config.Mark.Idle, config.Mark.Worth = time.Millisecond, time.Millisecond, time.Millisecond, 1
	config.BelowMark = func(string, int) { t.Error("rows below the floor") }
	set := duty.New(f.store, config)
	set.Start(t.Context())
	defer set.Stop()
	for range 5 {
		f.exec(schedule, f.jobs(500), "0", 1, 0)
		// A run-at in the past, in a transaction that commits late, must not fall below the floor.
		late := f.begin()
		if _, err := late.Exec(t.Context(), `INSERT INTO pelton.job_scheduled (job_id, wake, due)
			SELECT id, greatest(clock_timestamp(), now() - interval '1 hour'), now() - interval '1 hour' FROM unnest($1::bigint[]) id`, f.jobs(1)); err != nil {
			t.Fatal(err)
		}
		set.HintDue()
		pgtest.Eventually(t, time.Minute, func() bool { return f.int(`SELECT count(*) FROM pelton.job_scheduled`) == 0 }, "due jobs to be moved")
		if err := late.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		set.HintDue()
		pgtest.Eventually(t, time.Minute, func() bool { return f.int(`SELECT count(*) FROM pelton.job_scheduled`) == 0 }, "the late job to be moved")
	}
	pgtest.Eventually(t, time.Minute, func() bool {
		return f.int(`SELECT count(*) FROM pelton.floor WHERE relation = 'job_scheduled'`) > 0
	}, "a floor to be published")
}

// A job that cannot be moved is put off and reported; the others of its batch go on, and those after it.
func TestMoverPutsOffWhatCannotBeMoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.jobs(300)
	bad := ids[111]
	f.exec(schedule, ids, "0", 2, 1)
	f.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no such job here'; END $$`)
	f.exec(fmt.Sprintf(`CREATE TRIGGER refuse BEFORE INSERT ON pelton.job_ready FOR EACH ROW WHEN (%d = ANY (NEW.job_ids))
		EXECUTE FUNCTION refuse()`, bad))
	told := &bytes.Buffer{}
	m := duty.NewMover(f.store, duty.Config{Log: slog.New(slog.NewTextHandler(told, nil))})
	move(t, m)
	if n := f.int(`SELECT count(*) FROM (SELECT unnest(job_ids) AS id FROM pelton.job_ready) r`); n != 299 {
		t.Errorf("%d jobs are in the line, want 299", n)
	}
	if n := f.int(`SELECT count(*) FROM pelton.job_scheduled WHERE job_id = $1 AND run = 2 AND attempts = 1 AND retry
		AND due < now() AND wake > now() + interval '30 seconds'`, bad); n != 1 || f.int(`SELECT count(*) FROM pelton.job_scheduled`) != 1 {
		t.Error("the bad job alone must wait for another while")
	}
	if want := fmt.Sprintf("job_id=%d run=2", bad); !strings.Contains(told.String(), want) || !strings.Contains(told.String(), "no such job here") {
		t.Errorf("log is %q, want %s in it, and why", told, want)
	}
}
