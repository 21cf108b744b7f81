package periodic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
)

// hourly is a schedule with a tick at every full hour.
func hourly(name string) Schedule {
	return Schedule{Name: name, Cron: "0 * * * *", Job: task("report")}
}

// put stores a schedule that must be good.
func (r *rig) put(s Schedule) *PutResult {
	r.t.Helper()
	result, err := r.Put(r.t.Context(), s)
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

// back has a schedule look as if nobody had fired it for a time: ticks since then are due.
func (r *rig) back(name string, ago time.Duration) {
	r.t.Helper()
	exec(r.t, r.pool, `UPDATE pelton.schedule_due d SET decided = clock_timestamp() - $2::float8 * interval '1 second', wake = clock_timestamp()
		FROM pelton.schedule s WHERE s.id = d.schedule_id AND s.name = $1`, name, ago.Seconds())
}

// what counts what became of a schedule's ticks.
func (r *rig) what(name string) map[string]int {
	r.t.Helper()
	result, err := r.Ticks(r.t.Context(), name, TicksParams{Limit: maxLimit})
	if err != nil {
		r.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, t := range result.Ticks {
		counts[strings.TrimSpace(string(t.Outcome)+" "+t.Reason)]++
	}
	return counts
}

func (r *rig) expect(name string, want map[string]int) {
	r.t.Helper()
	if got := r.what(name); fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Errorf("ticks of %s: %v, want %v", name, got, want)
	}
}

// audited are the actions about a schedule, in order.
func (r *rig) audited(name string) []string {
	r.t.Helper()
	return list[string](r.t, r.pool, `SELECT action FROM pelton.audit WHERE target = $1 ORDER BY id`, "schedule "+name)
}

func TestPutCreatesChangesAndLeavesAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := hourly("reports")
	created := r.put(s)
	if created.Change != Created || created.Schedule.NextAt == nil || created.Schedule.Version != 1 {
		t.Errorf("first put: %+v", created)
	}
	if next := *created.Schedule.NextAt; !next.Equal(r.now().Truncate(time.Hour).Add(time.Hour)) {
		t.Errorf("next is %v", next)
	}
	s.Missed, s.TimeZone, s.Grace, s.Overlap, s.AfterPause = MissedLatest, "UTC", Duration(time.Minute), OverlapAllow, MissedSkip // as by default
	if again := r.put(s); again.Change != Unchanged || again.Schedule.Version != 1 {
		t.Errorf("the same again: %+v", again)
	}
	s.Cron, s.Description = "30 * * * *", "at half past"
	changed := r.put(s)
	if changed.Change != Changed || changed.Schedule.Version != 2 || changed.Schedule.NextAt.Minute() != 30 {
		t.Errorf("changed: %+v", changed)
	}
	if got := r.audited("reports"); !slices.Equal(got, []string{"schedule.put", "schedule.put"}) {
		t.Errorf("audited: %v", got)
	}
	before, after := one[string](t, r.pool, `SELECT before->>'cron' FROM pelton.audit ORDER BY id DESC LIMIT 1`),
		one[string](t, r.pool, `SELECT after->>'cron' FROM pelton.audit ORDER BY id DESC LIMIT 1`)
	if before != "0 * * * *" || after != "30 * * * *" {
		t.Errorf("audited: from %q to %q", before, after)
	}
}

// A rate that is put again does not start anew: its phase is that of the first put.
func TestRateKeepsItsPhase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := Schedule{Name: "rate", Every: Duration(time.Hour), Job: task("report")}
	first := *r.put(s).Schedule.NextAt
	s.Description = "changed"
	if second := r.put(s); second.Change != Changed || !second.Schedule.NextAt.Equal(first) {
		t.Errorf("%s, next was %v and is %v", second.Change, first, second.Schedule.NextAt)
	}
}

func TestPutRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	past := r.now().Add(-time.Hour)
	for _, c := range []struct {
		change func(s *Schedule)
		says   string
	}{
		{func(s *Schedule) { s.Cron = "0 0 32 * *" }, "day of month: 32 is above 31"},
		{func(s *Schedule) { s.Cron = "0 0 30 2 *" }, "never comes in February"},
		{func(s *Schedule) { s.Cron = "0 0 0 1 1 ? 2020" }, "year"},
		{func(s *Schedule) { s.TimeZone = "Europe/Nowhere" }, "Europe/Nowhere"},
		{func(s *Schedule) { s.Cron, s.At = "", &past }, "has passed"},
		{func(s *Schedule) { s.EndAt = &past }, "has passed"},
		{func(s *Schedule) { s.Cron, s.Every = "", Duration(time.Millisecond) }, "whole seconds"},
		{func(s *Schedule) { s.Every = Duration(time.Hour) }, "cron and every are given"},
		{func(s *Schedule) { s.Job = nil }, "either a job or a flow"},
		{func(s *Schedule) { s.Job = &JobTarget{Kind: "x", Priority: 9} }, "priority is 9"},
		{func(s *Schedule) { s.Name = " x" }, "space"},
	} {
		s := hourly("wrong")
		c.change(&s)
		_, err := r.Put(t.Context(), s)
		var invalid *InvalidScheduleError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want an InvalidScheduleError with %q", s, err, c.says)
		}
	}
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.schedule`); n != 0 {
		t.Errorf("%d were stored", n)
	}
}

// What is due when a schedule is changed follows the rules that held until then.
func TestEditSettlesWhatIsDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := hourly("reports")
	s.Missed = MissedAll(2, 0)
	r.put(s)
	r.back("reports", 5*time.Hour)
	s.Missed, s.Cron = MissedSkip, "15 * * * *"
	r.put(s)
	r.expect("reports", map[string]int{"fired": 2, "skipped missed": 3})
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.job`); n != 2 {
		t.Errorf("%d jobs, want 2", n)
	}
	if n := r.fireAll(); n != 0 {
		t.Errorf("after the change %d were due", n)
	}
}

// S2 by the way of verbs: three hours down.
func TestThreeHoursDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct {
		missed Missed
		fired  int
	}{"skip": {MissedSkip, 0}, "latest": {MissedLatest, 1}, "all": {MissedAll(5, 0), 5}, "young": {MissedAll(100, time.Hour), 6}} {
		s := Schedule{Name: name, Every: Duration(10 * time.Minute), Missed: c.missed, Job: task(name)}
		phase := r.now().Add(-5 * time.Minute)
		s.Phase = &phase
		r.put(s)
		r.back(name, 3*time.Hour)
		r.fireAll()
		want := map[string]int{"fired": c.fired, "skipped missed": 18 - c.fired}
		if c.fired == 0 {
			want = map[string]int{"skipped missed": 18}
		}
		r.expect(name, want)
		if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.job WHERE kind = $1`, name); n != c.fired {
			t.Errorf("%s: %d jobs, want %d", name, n, c.fired)
		}
	}
}

// S7: a pause for hours.
func TestPauseForHours(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct {
		after Missed
		fired int
	}{"skip": {Missed{}, 0}, "latest": {MissedLatest, 1}, "all": {MissedAll(3, 0), 3}} {
		phase := r.now().Add(-5 * time.Minute)
		r.put(Schedule{Name: name, Every: Duration(10 * time.Minute), Phase: &phase, AfterPause: c.after, Missed: MissedAll(100, 0), Job: task(name)})
		paused, err := r.Pause(t.Context(), name)
		if err != nil || paused.PausedAt == nil || paused.PausedWhy != PausedByPerson || paused.NextAt != nil {
			t.Fatalf("paused: %+v, %v", paused, err)
		}
		exec(t, r.pool, `UPDATE pelton.schedule_due d SET decided = clock_timestamp() - interval '3 hours' FROM pelton.schedule s WHERE s.id = d.schedule_id AND name = $1`, name)
		if n := r.fireAll(); n != 0 {
			t.Errorf("%s: %d were fired in the pause", name, n)
		}
		resumed, err := r.Resume(t.Context(), name)
		if err != nil || resumed.PausedAt != nil || resumed.NextAt == nil {
			t.Fatalf("resumed: %+v, %v", resumed, err)
		}
		r.fireAll()
		first := one[time.Time](t, r.pool, `SELECT coalesce(min(t.at), min(d.next_at)) FROM pelton.schedule s JOIN pelton.schedule_due d ON d.schedule_id = s.id
			LEFT JOIN pelton.schedule_tick t ON t.schedule_id = s.id AND t.outcome = 'fired' WHERE s.name = $1`, name)
		if !resumed.NextAt.Equal(first) {
			t.Errorf("%s: the next was to be %v, and the first that runs is %v", name, resumed.NextAt, first)
		}
		if _, err := r.Resume(t.Context(), name); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: resumed again: %v", name, err)
		}
		want := map[string]int{"fired": c.fired, "skipped paused": 18 - c.fired}
		if c.fired == 0 {
			want = map[string]int{"skipped paused": 18}
		}
		r.expect(name, want)
		if got := r.audited(name); !slices.Equal(got, []string{"schedule.put", "schedule.pause", "schedule.resume"}) {
			t.Errorf("audited: %v", got)
		}
	}
}

// A pause settles what was due before it; an edit in the pause writes down what did not run.
func TestPauseAndEditLeaveNoTickWithoutARow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	phase := r.now().Add(-5 * time.Minute)
	s := Schedule{Name: "x", Every: Duration(10 * time.Minute), Phase: &phase, Missed: MissedAll(2, 0), Job: task("x")}
	r.put(s)
	r.back("x", time.Hour)
	if _, err := r.Pause(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	r.expect("x", map[string]int{"fired": 2, "skipped missed": 4})
	exec(t, r.pool, `DELETE FROM pelton.schedule_tick`)
	exec(t, r.pool, `UPDATE pelton.schedule_due SET decided = clock_timestamp() - interval '2 hours'`)
	s.Every = Duration(time.Hour)
	if result := r.put(s); result.Change != Changed || result.Schedule.PausedAt == nil || result.Schedule.NextAt != nil {
		t.Errorf("changed in the pause: %+v", result)
	}
	r.expect("x", map[string]int{"skipped paused": 12})
	if wake := one[*time.Time](t, r.pool, `SELECT wake FROM pelton.schedule_due`); wake != nil {
		t.Errorf("a paused schedule wakes at %v", wake)
	}
}

func TestTriggerStartsARunBesideTheTicks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := jobs.WithActor(t.Context(), "ann")
	s := hourly("reports")
	s.Overlap = OverlapSkip
	r.put(s)
	next := one[time.Time](t, r.pool, `SELECT wake FROM pelton.schedule_due`)
	first, err := r.Trigger(ctx, "reports")
	if err != nil || first.Tick == nil || first.Tick.JobID == nil || first.Tick.Source != SourceTrigger || first.Tick.N != 1 || first.Tick.Actor != "ann" {
		t.Fatalf("trigger: %+v, %v", first, err)
	}
	if second, err := r.Trigger(ctx, "reports"); err != nil || second.Tick == nil || second.Tick.Reason != "overlap" {
		t.Errorf("a trigger while the run goes on: %+v, %v", second, err)
	}
	if after := one[time.Time](t, r.pool, `SELECT wake FROM pelton.schedule_due`); !after.Equal(next) {
		t.Errorf("the next tick was due at %v and is at %v", next, after)
	}
	if _, err := r.Pause(ctx, "reports"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.queue.JobCancel(ctx, *first.Tick.JobID); err != nil {
		t.Fatal(err)
	}
	if third, err := r.Trigger(ctx, "reports"); err != nil || third.Tick == nil || third.Tick.JobID == nil {
		t.Errorf("a trigger in a pause: %+v, %v", third, err)
	}
	if wake := one[*time.Time](t, r.pool, `SELECT wake FROM pelton.schedule_due`); wake != nil {
		t.Errorf("a paused schedule wakes at %v", wake)
	}
}

// A queued run by hand starts when the run before has ended.
func TestTriggerWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := hourly("reports")
	s.Overlap = OverlapQueue
	r.put(s)
	first, err := r.Trigger(t.Context(), "reports")
	if err != nil || first.Tick == nil {
		t.Fatalf("trigger: %+v, %v", first, err)
	}
	second, err := r.Trigger(t.Context(), "reports")
	if err != nil || !second.Waits {
		t.Fatalf("a trigger while the run goes on: %+v, %v", second, err)
	}
	if _, err := r.queue.JobCancel(t.Context(), *first.Tick.JobID); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, patience, func() bool { r.fireAll(); return r.what("reports")["fired"] == 2 }, "the run that waited")
	if got := one[string](t, r.pool, `SELECT string_agg(source, ' ' ORDER BY at) FROM pelton.schedule_tick`); got != "trigger trigger" {
		t.Errorf("sources: %s", got)
	}
}

// Of many who put a new name at once one creates it, and the others find it as they want it.
func TestPutsOfOneNameAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	changes := make(chan Change)
	for range 8 {
		go func() {
			result, err := r.Put(t.Context(), hourly("reports"))
			if err != nil {
				t.Error(err)
				result = &PutResult{}
			}
			changes <- result.Change
		}()
	}
	created := 0
	for range 8 {
		if <-changes == Created {
			created++
		}
	}
	if created != 1 {
		t.Errorf("it was created %d times", created)
	}
}

// A tick that waits when its schedule is deleted has its row, too.
func TestDeleteOfWhatWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := hourly("reports")
	s.Overlap = OverlapQueue
	r.put(s)
	for _, waits := range []bool{false, true} {
		if tr, err := r.Trigger(t.Context(), "reports"); err != nil || tr.Waits != waits {
			t.Fatalf("triggered: %+v, %v", tr, err)
		}
	}
	if _, err := r.Delete(t.Context(), "reports"); err != nil {
		t.Fatal(err)
	}
	got := list[string](t, r.pool, `SELECT concat_ws(' ', outcome, reason) FROM pelton.schedule_tick ORDER BY at`)
	if !slices.Equal(got, []string{"fired", "skipped deleted"}) {
		t.Errorf("ticks: %q", got)
	}
}

// A change of a schedule that was paused for long has its ticks skipped in transactions of a bounded size.
func TestEditAfterALongPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	phase := time.Unix(0, 0)
	s := Schedule{Name: "x", Every: Duration(time.Second), Phase: &phase, Job: task("x")}
	r.put(s)
	if _, err := r.Pause(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	exec(t, r.pool, `UPDATE pelton.schedule_due SET decided = clock_timestamp() - interval '1 hour', next_at = clock_timestamp() - interval '1 hour'`)
	s.Every = Duration(2 * time.Second)
	r.put(s)
	got := one[string](t, r.pool, `SELECT concat_ws(' ', count(*) BETWEEN 3595 AND 3660, count(DISTINCT xmin::text) >= 4, count(*) FILTER (WHERE reason IS DISTINCT FROM 'paused'))
		FROM pelton.schedule_tick`)
	if got != "t t 0" {
		t.Errorf("all ticks, several transactions, other reasons: %s", got)
	}
}

func TestDeleteTellsOfBackfills(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("reports"))
	r.backfilled("reports", BackfillParams{From: r.yesterday(0), To: r.yesterday(3)})
	b := r.backfilled("reports", BackfillParams{From: r.yesterday(0), To: r.yesterday(3)})
	if _, err := r.BackfillCancel(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if gone, err := r.Delete(t.Context(), "reports"); err != nil || gone.Backfills != 1 { // the one that was running
		t.Errorf("deleted: %+v, %v", gone, err)
	}
}

func TestDeleteKeepsTheTicks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("reports"))
	r.back("reports", 2*time.Hour)
	r.fireAll()
	gone, err := r.Delete(t.Context(), "reports")
	if err != nil || gone.Name != "reports" {
		t.Fatalf("deleted: %+v, %v", gone, err)
	}
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.schedule_tick`); n != 2 {
		t.Errorf("%d ticks, want 2", n)
	}
	if _, err := r.Get(t.Context(), "reports"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
	if got := r.audited("reports"); !slices.Equal(got, []string{"schedule.put", "schedule.delete"}) {
		t.Errorf("audited: %v", got)
	}
}

func TestNotFoundSaysWhatMayBeMeant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("reports"))
	for what, do := range map[string]func(name string) error{
		"get":     func(name string) error { _, err := r.Get(t.Context(), name); return err },
		"pause":   func(name string) error { _, err := r.Pause(t.Context(), name); return err },
		"resume":  func(name string) error { _, err := r.Resume(t.Context(), name); return err },
		"delete":  func(name string) error { _, err := r.Delete(t.Context(), name); return err },
		"trigger": func(name string) error { _, err := r.Trigger(t.Context(), name); return err },
		"ticks":   func(name string) error { _, err := r.Ticks(t.Context(), name, TicksParams{}); return err },
		"backfill": func(name string) error {
			_, err := r.Backfill(t.Context(), name, BackfillParams{From: r.now(), To: r.now()})
			return err
		},
	} {
		if err := do("raports"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), `did you mean "reports"?`) {
			t.Errorf("%s: %v", what, err)
		}
		if err := do(""); !errors.Is(err, ErrNotFound) { // as of a variable that is not set
			t.Errorf("%s of no name: %v", what, err)
		}
	}
	b := r.backfilled("reports", BackfillParams{From: r.yesterday(2), To: r.yesterday(6)})
	if _, err := r.BackfillGet(t.Context(), 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("backfill 0, where there is %d: %v", b.ID, err)
	}
	if _, err := r.BackfillCancel(t.Context(), 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("cancel of backfill 0: %v", err)
	}
}

// The twins with a transaction do nothing if it is rolled back, and a refusal does not spoil it.
func TestVerbsInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tx, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := r.PutTx(t.Context(), tx, hourly("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.PutTx(t.Context(), tx, Schedule{Name: "bad"}); err == nil {
		t.Error("a bad schedule was taken")
	}
	if _, err := r.TriggerTx(t.Context(), tx, "one"); err != nil {
		t.Error(err)
	}
	if _, err := r.PauseTx(t.Context(), tx, "one"); err != nil {
		t.Error(err)
	}
	if _, err := r.ResumeTx(t.Context(), tx, "one"); err != nil {
		t.Error(err)
	}
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.schedule`); n != 0 {
		t.Errorf("%d are there before the commit", n)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	r.expect("one", map[string]int{"fired": 1})
}

func TestListAndTicksGoOnWhereTheyStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 5 {
		r.put(hourly(fmt.Sprintf("etl/%d", i)))
	}
	r.put(Schedule{Name: "other", Cron: "@daily", Job: task("other")})
	var names []string
	for after := ""; ; {
		page, err := r.List(t.Context(), ListParams{Prefix: "etl/", After: after, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			names = append(names, e.Name)
		}
		if len(page) < 2 {
			break
		}
		after = page[1].Name
	}
	if !slices.Equal(names, []string{"etl/0", "etl/1", "etl/2", "etl/3", "etl/4"}) {
		t.Errorf("names: %v", names)
	}
	if page, err := r.List(t.Context(), ListParams{Kind: "other"}); err != nil || len(page) != 1 || page[0].Name != "other" {
		t.Errorf("of kind other: %v, %v", page, err)
	}
	r.back("other", 10*24*time.Hour)
	r.fireAll()
	var times []time.Time
	for after := ""; ; {
		page, err := r.Ticks(t.Context(), "other", TicksParams{After: after, Limit: 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, tick := range page.Ticks {
			times = append(times, tick.At)
		}
		if after = page.Cursor; after == "" {
			break
		}
	}
	if len(times) != 10 || !slices.IsSortedFunc(times, func(a, b time.Time) int { return b.Compare(a) }) {
		t.Errorf("%d ticks: %v", len(times), times)
	}
	fired, err := r.Ticks(t.Context(), "other", TicksParams{Outcome: TickFired})
	if err != nil || len(fired.Ticks) != 1 || fired.Ticks[0].JobID == nil {
		t.Errorf("fired: %+v, %v", fired, err)
	}
	if e, err := r.Get(t.Context(), "other"); err != nil || e.LastTick == nil || !e.LastTick.At.Equal(times[0]) {
		t.Errorf("the last tick: %+v, %v", e, err)
	}
}

// Who puts what they have looked at changes nothing that another has changed since: neither the schedule nor the ticks of its pause.
func TestPutIfOfAnEdition(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	s := hourly("shared")
	refused := func(what string, s Schedule, wanted, found Edition, says string) {
		t.Helper()
		_, err := r.PutIf(ctx, s, wanted)
		var edition *EditionError
		if !errors.As(err, &edition) || edition.Wanted != wanted || edition.Found != found || !strings.Contains(edition.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	none := Edition{}
	refused("one that is not there", s, Edition{1, 1}, none, "it was deleted")
	result, err := r.PutIf(ctx, s, none)
	if err != nil || result.Change != Created {
		t.Fatalf("%+v, %v", result, err)
	}
	first := result.Schedule.Edition()
	refused("a new one, whose name is taken", s, none, first, "the name is taken")
	s.Cron = "10 * * * *"
	if result, err := r.PutIf(ctx, s, first); err != nil || result.Schedule.Version != 2 {
		t.Fatalf("%+v, %v", result, err)
	}
	if _, err := r.Pause(ctx, "shared"); err != nil {
		t.Fatal(err)
	}
	r.back("shared", 3*time.Hour)
	s.Cron = "20 * * * *"
	second := Edition{first.ID, 2}
	refused("one of another version", s, first, second, "its version is 2, not 1")
	if e, err := r.Get(ctx, "shared"); err != nil || e.Cron != "10 * * * *" || len(r.what("shared")) > 0 {
		t.Errorf("a put that was refused left %+v, ticks %v, %v", e, r.what("shared"), err)
	}
	if result, err := r.PutIf(ctx, s, second); err != nil || result.Schedule.Version != 3 || len(r.what("shared")) == 0 { // a pause is no change of what was seen
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := r.Delete(ctx, "shared"); err != nil {
		t.Fatal(err)
	}
	again := r.put(hourly("shared")).Schedule.Edition()
	refused("one that was deleted and made again", s, first, again, "another one made under its name")
	if e, err := r.Get(ctx, "shared"); err != nil || e.Edition() != again || e.Cron != hourly("shared").Cron {
		t.Errorf("%+v, %v", e, err)
	}
}
