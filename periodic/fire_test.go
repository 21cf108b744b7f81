package periodic

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

// Every tick is one job, which knows its tick.
func TestTicksBecomeJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.now().Truncate(time.Second)
	target := &JobTarget{
		Kind: "report", Args: []byte(`{"n": 1.50}`), Queue: "etl", Priority: 3, MaxAttempts: 2, Tags: []string{"daily"},
		Metadata: []byte(`{"team": "data", "big": 12345678901234567890}`),
	}
	id := r.stored(once("a report", at, target), time.Minute)
	r.stored(once("later", at.Add(time.Hour), task("later")), time.Minute)
	if n := r.fireAll(); n != 1 {
		t.Fatalf("%d schedules were fired, want 1", n)
	}
	job, err := r.queue.JobGet(t.Context(), one[int64](t, r.pool, `SELECT job_id FROM pelton.schedule_tick WHERE schedule_id = $1`, id))
	if err != nil {
		t.Fatal(err)
	}
	name, tick, ok := TickOf(job)
	if !ok || name != "a report" || !tick.Equal(at) {
		t.Errorf("the job is of tick %v of %q (%v), want %v", tick, name, ok, at)
	}
	got := fmt.Sprint(job.Kind, string(job.EncodedArgs), job.Queue, job.Priority, job.MaxAttempts, job.Tags)
	if want := `report{"n":1.50}etl3 2 [daily]`; got != want {
		t.Errorf("the job is %s, want %s", got, want)
	}
	if m := string(job.Metadata); !strings.Contains(m, `"team": "data"`) || !strings.Contains(m, "12345678901234567890") {
		t.Errorf("metadata are %s", m)
	}
	if got := r.ticks(id); !slices.Equal(got, []string{"fired"}) {
		t.Errorf("ticks: %v", got)
	}
	if next := one[*time.Time](t, r.pool, `SELECT wake FROM pelton.schedule_due WHERE schedule_id = $1`, id); next != nil {
		t.Errorf("a schedule whose only tick has fired wakes at %v", next)
	}
	if _, _, ok := TickOf(jobWithout(t, r)); ok {
		t.Error("a job that no schedule enqueued has a tick")
	}
}

func jobWithout(t *testing.T, r *rig) *jobRow {
	t.Helper()
	res, err := r.queue.Insert(t.Context(), jobs.RawArgs{JobKind: "other"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Job
}

// One bad schedule, of whatever kind, neither holds up a batch nor stays silent.
func TestBadTargetsHoldUpNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.now().Truncate(time.Second)
	r.coded["svc/panics"] = &coded{target: func(time.Time) (*job, error) { panic("no luck") }}
	r.coded["svc/none"] = &coded{target: func(time.Time) (*job, error) { return nil, nil }}
	r.coded["svc/unique"] = &coded{target: func(time.Time) (*job, error) {
		return &job{args: jobs.RawArgs{JobKind: "unique", UniqueKey: "k"}}, nil
	}}
	r.coded["svc/lost times"] = &coded{next: func(time.Time) time.Time { panic("no times") }}
	r.firer.codes = []string{"svc/panics", "svc/none", "svc/unique", "svc/lost times"}
	if _, err := r.queue.Insert(t.Context(), jobs.RawArgs{JobKind: "unique", UniqueKey: "k"}, nil); err != nil {
		t.Fatal(err)
	}
	exec(t, r.pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'we have no room for %', NEW.kind; END $$`)
	exec(t, r.pool, `CREATE TRIGGER refuse BEFORE INSERT ON pelton.job FOR EACH ROW WHEN (NEW.kind = 'refused') EXECUTE FUNCTION refuse()`)
	var good []int64
	ids := map[string]int64{}
	for i := range 40 {
		good = append(good, r.stored(once(fmt.Sprint("good ", i), at, task("good")), time.Minute))
		switch i {
		case 3:
			ids["invalid"] = r.stored(once("invalid", at, task(strings.Repeat("k", 200))), time.Minute)
			ids["refused"] = r.stored(once("refused", at, task("refused")), time.Minute)
		case 20:
			ids["no flow"] = r.stored(Schedule{Name: "no flow", At: &at, Flow: &FlowTarget{Project: "p", Flow: "f"}}, time.Minute)
			ids["broken"] = r.storedAs(once("broken", at, task("x")), `{"cron": 7}`, "", time.Minute)
		case 30:
			for _, name := range []string{"panics", "none", "unique"} {
				ids[name] = r.storedAs(Schedule{Name: name, At: &at}, fmt.Sprintf(`{"at": %q}`, at.Format(time.RFC3339Nano)), "svc", time.Minute)
			}
			ids["lost times"] = r.storedAs(Schedule{Name: "lost times", Job: task("x")}, `{"job": {"kind": "x"}}`, "svc2", time.Minute)
			exec(t, r.pool, `UPDATE pelton.schedule SET owner = 'svc' WHERE name = 'lost times'`)
			exec(t, r.pool, `UPDATE pelton.schedule_due SET code = 'svc/lost times' WHERE schedule_id = $1`, ids["lost times"])
		}
	}
	r.fireAll()
	for _, id := range good {
		if got := r.ticks(id); !slices.Equal(got, []string{"fired"}) {
			t.Errorf("a good one: %v", got)
		}
	}
	for name, want := range map[string]string{
		"invalid": "failed refused kind is 200 bytes", "refused": "failed refused we have no room for refused",
		"no flow": `failed refused run flow p/f: there is no project "p"`, "panics": "failed refused the function that makes the job panicked: no luck",
		"none": "skipped none", "unique": "skipped duplicate job",
	} {
		if got := r.ticks(ids[name]); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
	for _, name := range []string{"broken", "lost times"} {
		if got := r.ticks(ids[name]); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
		if n := one[int](t, r.pool, `SELECT failures FROM pelton.schedule_due WHERE schedule_id = $1 AND wake > now()`, ids[name]); n != 1 {
			t.Errorf("%s has failed %d times, want once, and be put off", name, n)
		}
	}
}

// A project that somebody's open transaction holds puts off its own schedules, of which nothing is stored, and no others.
func TestHeldProjectPutsOffItsOwnSchedules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.now().Truncate(time.Second)
	for _, project := range []string{"held", "free"} {
		f, err := flow.New("f").Noop("n").Build()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.flows.PushFlows(t.Context(), project, f); err != nil {
			t.Fatal(err)
		}
	}
	flowOf := func(project string, i int) int64 {
		return r.stored(Schedule{Name: fmt.Sprint(project, i), At: &at, TimeZone: "Asia/Tokyo", Flow: &FlowTarget{Project: project, Flow: "f"}}, time.Minute)
	}
	held, free := []int64{flowOf("held", 1), flowOf("held", 2)}, flowOf("free", 1)
	job := r.stored(once("job", at, task("x")), time.Minute)
	tx, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := r.flows.RunTx(t.Context(), tx, flow.RunParams{Project: "held", Flow: "f"}); err != nil {
		t.Fatal(err)
	}
	r.fireAll()
	for _, id := range []int64{free, job} {
		if got := r.ticks(id); !slices.Equal(got, []string{"fired"}) {
			t.Errorf("schedule %d: %v", id, got)
		}
	}
	for _, id := range held {
		if got := r.ticks(id); len(got) > 0 {
			t.Errorf("a held one: %v", got)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, r.pool, `UPDATE pelton.schedule_due SET wake = now() WHERE wake IS NOT NULL`)
	r.fireAll()
	for _, id := range held {
		if got := r.ticks(id); !slices.Equal(got, []string{"fired"}) {
			t.Errorf("a held one, later: %v", got)
		}
		got := one[string](t, r.pool, `SELECT options -> 'params' ->> 'schedule.time' FROM pelton.flow_run
			WHERE id = (SELECT run_id FROM pelton.schedule_tick WHERE schedule_id = $1)`, id)
		if want := at.In(time.FixedZone("", 9*3600)).Format(time.RFC3339); got != want {
			t.Errorf("schedule.time is %s, want %s", got, want)
		}
	}
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.flow_run`); n != 4 {
		t.Errorf("%d runs, want 4", n)
	}
	if n := one[int](t, r.pool, `SELECT max(failures) FROM pelton.schedule_due`); n != 0 {
		t.Errorf("%d failures are still counted", n)
	}
}

// What fails only at the commit is found too.
func TestCommitThatFailsForOneSchedule(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.now().Truncate(time.Second)
	var bad int64
	for i := range 20 {
		if id := r.stored(once(fmt.Sprint(i), at, task("x")), time.Minute); i == 13 {
			bad = id
		}
	}
	exec(t, r.pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$`)
	exec(t, r.pool, fmt.Sprintf(`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON pelton.schedule_tick_rest DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.schedule_id = %d) EXECUTE FUNCTION refuse()`, bad))
	r.fireAll()
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.schedule_tick WHERE outcome = 'fired'`); n != 19 {
		t.Errorf("%d were fired, want 19", n)
	}
	if got := one[int](t, r.pool, `SELECT failures FROM pelton.schedule_due WHERE schedule_id = $1 AND wake > now()`, bad); got != 1 {
		t.Errorf("the bad one has failed %d times", got)
	}
	exec(t, r.pool, `DROP TRIGGER refuse ON pelton.schedule_tick_rest`)
	exec(t, r.pool, `UPDATE pelton.schedule_due SET wake = now() WHERE schedule_id = $1`, bad)
	r.fireAll()
	if got := r.ticks(bad); !slices.Equal(got, []string{"fired"}) {
		t.Errorf("the bad one, later: %v", got)
	}
	if r.firer.batch < 20 {
		t.Errorf("batches are still of %d", r.firer.batch)
	}
}

// A tick that has its row already does not run again, whatever the place of the schedule says.
func TestTickWithARowDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.now().Truncate(time.Second)
	again := r.stored(once("again", at, task("x")), time.Minute)
	r.fireAll()
	exec(t, r.pool, `UPDATE pelton.schedule_due SET wake = now(), decided = now() - interval '1 hour', next_at = $1`, at)
	other := r.stored(once("other", at, task("y")), time.Minute)
	r.fireAll()
	for _, id := range []int64{again, other} {
		if got := r.ticks(id); !slices.Equal(got, []string{"fired"}) {
			t.Errorf("schedule %d: %v", id, got)
		}
	}
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.job`); n != 2 {
		t.Errorf("%d jobs, want 2", n)
	}
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.schedule_due WHERE wake IS NOT NULL OR failures > 0`); n != 0 {
		t.Errorf("%d schedules have not gone on", n)
	}
}

// The answer to a commit is lost: what it did is not done again.
func TestCommitWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	proxy, through, direct := throughProxy(t)
	r := newRigOn(t, through)
	at := r.now().Truncate(time.Second)
	var ids []int64
	for i := range 10 {
		ids = append(ids, r.stored(once(fmt.Sprint(i), at, task("x")), time.Minute))
	}
	cut := proxy.CutAfterSend(commitAfter("schedule_due d SET"))
	if _, err := r.firer.fire(t.Context()); err != nil {
		t.Log(err) // of the lost answer, or of the next look
	}
	select {
	case <-cut:
	default:
		t.Fatal("the answer was not lost")
	}
	r.pool = direct
	pgtest.Eventually(t, patience, func() bool { return len(r.ticks(ids[9])) > 0 }, "the commit")
	r.fireAll()
	for _, id := range ids {
		if got := r.ticks(id); !slices.Equal(got, []string{"fired"}) {
			t.Errorf("schedule %d: %v", id, got)
		}
	}
	if n := one[int](t, direct, `SELECT count(*) FROM pelton.job`); n != 10 {
		t.Errorf("%d jobs, want 10", n)
	}
}

// Catching up is bounded in one transaction, and goes on in the next ones.
// An hour that the clock leaves out is 3,600 ticks of one time for a schedule of every second: they are decided together, but a transaction takes only some of
// the schedules.
func TestGapsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := time.Date(2026, 3, 8, 6, 59, 58, 0, time.UTC)
	for i := range 12 {
		r.stored(Schedule{Name: fmt.Sprint(i), Cron: "* * * * * *", TimeZone: "America/New_York", DSTGap: GapSkip, Job: task("x")}, r.now().Sub(before))
	}
	if _, err := r.firer.fire(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := one[string](t, r.pool, `SELECT concat_ws(' ', count(*) BETWEEN 20000 AND 30000, count(DISTINCT schedule_id) BETWEEN 5 AND 8, count(*) FILTER (WHERE reason = 'gap') % 3600)
		FROM pelton.schedule_tick`)
	if got != "t t 0" {
		t.Errorf("rows, schedules, parts of gaps in one transaction: %s", got)
	}
}

func TestCatchUpIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	phase := time.Unix(0, 0)
	var ids []int64
	for i := range 10 {
		s := Schedule{Name: fmt.Sprint(i), Every: Duration(time.Second), Phase: &phase, Missed: MissedAll(50, 0), Job: task("x")}
		ids = append(ids, r.stored(s, 3*time.Hour))
	}
	if _, err := r.firer.fire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.schedule_tick`); n < 9000 || n > 11_000 {
		t.Errorf("%d ticks in one transaction, want about %d", n, fireTicks)
	}
	pgtest.Eventually(t, patience, func() bool {
		if _, err := r.firer.fire(t.Context()); err != nil {
			t.Fatal(err)
		}
		return one[bool](t, r.pool, `SELECT bool_and(cut IS NULL AND wake > now() - interval '1 s') FROM pelton.schedule_due`)
	}, "all to have caught up")
	for _, id := range ids {
		got := one[string](t, r.pool, `SELECT concat_ws(' ', count(*) FILTER (WHERE reason = 'missed') >= 10749, count(*) FILTER (WHERE outcome = 'fired') >= 50,
			count(*) = extract(epoch FROM max(at) - min(at)) + 1, count(*) FILTER (WHERE outcome = 'failed')) FROM pelton.schedule_tick WHERE schedule_id = $1`, id)
		if got != "t t t 0" {
			t.Errorf("schedule %d: missed, fired, all seconds, failed: %s", id, got)
		}
	}
}

// A schedule in code is fired by those who know it alone.
func TestCodeIsFiredByItsOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := r.now().Truncate(time.Second)
	other := newRigOn(t, r.pool)
	for name, c := range map[string]*rig{"one": r, "two": other} {
		c.coded[codeKey(name, "s")] = &coded{
			next: func(after time.Time) time.Time {
				if after.Before(at) {
					return at
				}
				return after
			},
			target: func(time.Time) (*job, error) {
				return &job{jobs.RawArgs{JobKind: name}, &river.InsertOpts{Queue: "q"}}, nil
			},
		}
		c.firer.codes = []string{codeKey(name, "s")}
		exec(t, r.pool, `ALTER TABLE pelton.schedule DROP CONSTRAINT IF EXISTS schedule_name_key`)
		c.storedAs(Schedule{Name: "s"}, `{}`, name, time.Minute)
	}
	if n, err := r.firer.fire(t.Context()); n != 1 || err != nil {
		t.Errorf("one fired %d: %v", n, err)
	}
	if got := list[string](t, r.pool, `SELECT kind || queue FROM pelton.job`); !slices.Equal(got, []string{"oneq"}) {
		t.Errorf("jobs of %v", got)
	}
	next, err := r.store.NextDue(t.Context(), 0, r.firer.codes)
	if err != nil || next.Any {
		t.Errorf("what only the other can fire keeps one awake: %+v, %v", next, err)
	}
	if n, err := other.firer.fire(t.Context()); n != 1 || err != nil {
		t.Errorf("two fired %d: %v", n, err)
	}
}

// A stop waits for the transaction under way, and what it did stands.
func TestStopWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	exec(t, r.pool, `CREATE TABLE gate ()`)
	exec(t, r.pool, `CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		WHILE NOT EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END $$`)
	exec(t, r.pool, `CREATE TRIGGER dawdle BEFORE INSERT ON pelton.schedule_tick FOR EACH ROW EXECUTE FUNCTION dawdle()`)
	id := r.stored(once("a", r.now().Truncate(time.Second), task("x")), time.Minute)
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, patience, func() bool {
		return one[bool](t, r.pool, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database())`)
	}, "the firer to be at it")
	stopped := make(chan struct{})
	go func() {
		r.Stop()
		close(stopped)
	}()
	select {
	case <-stopped:
		t.Error("the stop has not waited")
	case <-time.After(100 * time.Millisecond): // a stop that does not wait is over by then
	}
	exec(t, r.pool, `INSERT INTO gate DEFAULT VALUES`)
	<-stopped
	if got := r.ticks(id); !slices.Equal(got, []string{"fired"}) {
		t.Errorf("ticks: %v", got)
	}
}
