package periodic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
)

// declaring is another client on the rig's database, of a service that declares schedules.
func (r *rig) declaring(owner string, schedules ...*Declared) (*Client, error) {
	r.t.Helper()
	return NewClient(r.pool, r.queue, nil, &Config{
		Logger: slog.New(slog.NewTextHandler(testWriter{r.t}, nil)), Owner: owner, Schedules: schedules, SchedulerOff: true,
	})
}

// started is one that was started, and so is in step.
func (r *rig) started(owner string, schedules ...*Declared) *Client {
	r.t.Helper()
	c, err := r.declaring(owner, schedules...)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := c.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// states are all schedules with owner, version and pause.
func (r *rig) states() string {
	r.t.Helper()
	return strings.Join(list[string](r.t, r.pool, `SELECT name || ' ' || owner || ' v' || version || coalesce(' ' || paused_why, '') FROM pelton.schedule ORDER BY name`), "; ")
}

func declared(s Schedule) *Declared { return &Declared{Schedule: s} }

// S8: two services keep their own schedules in step, and nobody else's.
func TestOwnersKeepTheirOwnInStep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("people's"))
	r.started("a", declared(hourly("a/one")), declared(hourly("a/two")))
	r.started("b", declared(hourly("b/one")))
	if got := r.states(); got != "a/one a v1; a/two a v1; b/one b v1; people's  v1" {
		t.Errorf("at first: %s", got)
	}
	r.back("a/two", 3*time.Hour)
	changed := hourly("a/one")
	changed.Cron = "5 * * * *"
	r.started("a", declared(changed))
	if got := r.states(); got != "a/one a v2; a/two a v1 removed; b/one b v1; people's  v1" {
		t.Errorf("one changed, one removed: %s", got)
	}
	r.expect("a/two", map[string]int{"fired": 1, "skipped missed": 2})
	r.started("a", declared(changed), declared(hourly("a/two")))
	if got := r.states(); got != "a/one a v2; a/two a v1; b/one b v1; people's  v1" {
		t.Errorf("declared again: %s", got)
	}
	if next := one[*time.Time](t, r.pool, `SELECT d.next_at FROM pelton.schedule_due d JOIN pelton.schedule s ON s.id = d.schedule_id WHERE name = 'a/two'`); next == nil {
		t.Error("a schedule that is declared again has no next tick")
	}
	r.started("a")
	if got := r.states(); got != "a/one a v2 removed; a/two a v1 removed; b/one b v1; people's  v1" {
		t.Errorf("nothing declared: %s", got)
	}
}

// A person's pause is not ended by code that no longer declares the schedule, and then does again.
func TestPauseOutlivesTheDeclaration(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.started("a", declared(hourly("a/one")))
	if _, err := r.Pause(t.Context(), "a/one"); err != nil {
		t.Fatal(err)
	}
	r.started("a")
	r.started("a", declared(hourly("a/one")))
	if got := r.states(); got != "a/one a v1 person" {
		t.Errorf("then: %s", got)
	}
}

// Processes of one owner that start at once are in step one after the other.
func TestOwnersStartAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var schedules []*Declared
	for i := range 20 {
		schedules = append(schedules, declared(hourly(fmt.Sprint("a/", i))))
	}
	started := make(chan error)
	for range 6 {
		c, err := r.declaring("a", schedules...)
		if err != nil {
			t.Fatal(err)
		}
		go func() { started <- c.Start(t.Context()) }()
	}
	for range 6 {
		if err := <-started; err != nil {
			t.Error(err)
		}
	}
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.schedule WHERE owner = 'a' AND version = 1`); n != 20 {
		t.Errorf("%d schedules", n)
	}
}

// What a person does to a service's schedule survives its restart; the rest is refused.
func TestPeopleAndOwnedSchedules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.started("a", declared(hourly("x")))
	s := hourly("x")
	s.Cron = "1 * * * *"
	if _, err := r.Put(t.Context(), s); !errors.Is(err, ErrOwned) || !strings.Contains(err.Error(), `service "a"`) {
		t.Errorf("put: %v", err)
	}
	if _, err := r.Delete(t.Context(), "x"); !errors.Is(err, ErrOwned) {
		t.Errorf("delete: %v", err)
	}
	if _, err := r.Pause(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	r.started("a", declared(hourly("x")))
	if got := r.states(); got != "x a v1 person" {
		t.Errorf("after a restart: %s", got)
	}
	r.started("a")
	r.started("a", declared(hourly("x")))
	if got := r.states(); got != "x a v1 person" {
		t.Errorf("removed and declared again: %s", got)
	}
	if _, err := r.Trigger(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	if e, err := r.Resume(t.Context(), "x"); err != nil || e.PausedAt != nil {
		t.Errorf("resumed: %+v, %v", e, err)
	}
	r.started("a")
	if gone, err := r.Delete(t.Context(), "x"); err != nil || gone.PausedWhy != PausedRemoved {
		t.Errorf("one that its owner has given up: %+v, %v", gone, err)
	}
}

func TestNamesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(hourly("x"))
	r.started("a", declared(hourly("y")))
	c, err := r.declaring("b", declared(hourly("z")), declared(hourly("x")))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); !errors.Is(err, ErrOwned) || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), "people") {
		t.Errorf("start: %v", err)
	}
	if got := r.states(); got != "x  v1; y a v1" {
		t.Errorf("half in step: %s", got)
	}
}

func TestFaultsOfDeclarations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.declaring("a", nil, declared(hourly("x")), declared(hourly("x")), declared(Schedule{Name: "bad", Cron: "x", Job: task("x")}),
		NewPeriodicJob(river.PeriodicInterval(time.Hour), func() (river.JobArgs, *river.InsertOpts) { return nil, nil }, nil),
		NewPeriodicJob(nil, nil, nil))
	for _, says := range []string{"declared schedule 0 is nil", `"x" is declared twice`, `schedule "bad"`, "has no ID", "the schedule is nil"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q in it", err, says)
		}
	}
	if _, err := r.declaring("", declared(hourly("x"))); err == nil || !strings.Contains(err.Error(), "Config.Owner") {
		t.Errorf("without an owner: %v", err)
	}
}

// everySecond is a schedule of somebody else's making.
type everySecond struct{}

func (everySecond) Next(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

// Functions say when and what: only their owner's processes fire them, and give no job when they give no args.
func TestPeriodicJobs(t *testing.T) {
	t.Parallel()
	var made, worked atomic.Int64
	odd := NewPeriodicJob(everySecond{}, func() (river.JobArgs, *river.InsertOpts) {
		if made.Add(1)%2 == 0 {
			return nil, nil
		}
		return reportArgs{}, &river.InsertOpts{Priority: 2}
	}, nil)
	if odd.Schedule.Name != "report" {
		t.Errorf("named %q", odd.Schedule.Name)
	}
	onStart := NewPeriodicJob(river.PeriodicInterval(24*time.Hour), func() (river.JobArgs, *river.InsertOpts) { return reportArgs{}, nil },
		&river.PeriodicJobOpts{ID: "on start", RunOnStart: true})
	never := NewPeriodicJob(river.NeverSchedule(), func() (river.JobArgs, *river.InsertOpts) { return reportArgs{}, nil }, &river.PeriodicJobOpts{ID: "never"})
	r := newWorking(t, &Config{Owner: "a", Schedules: []*Declared{odd, onStart, never}}, "report", func(_ context.Context, job *river.Job[reportArgs]) error {
		worked.Add(1)
		if name, _, ok := TickOf(job.JobRow); !ok || name == "" {
			t.Errorf("job %d has no tick", job.ID)
		}
		return nil
	})
	pgtest.Eventually(t, patience, func() bool {
		counts := r.what("report")
		return counts["fired"] >= 2 && counts["skipped none"] >= 2 && worked.Load() >= 3
	}, "ticks with and without a job")
	if got := r.what("on start"); fmt.Sprint(got) != "map[fired:1]" {
		t.Errorf("on start: %v", got)
	}
	if got := r.what("never"); len(got) != 0 {
		t.Errorf("never: %v", got)
	}
	if asleep := one[bool](t, r.pool, `SELECT wake IS NULL AND next_at IS NULL FROM pelton.schedule_due WHERE code = 'a/never'`); !asleep {
		t.Error("a schedule that never comes is looked at")
	}
	if codes := list[string](t, r.pool, `SELECT code FROM pelton.schedule_due ORDER BY code`); !slices.Equal(codes, []string{"a/never", "a/on start", "a/report"}) {
		t.Errorf("codes: %v", codes)
	}
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.job WHERE priority = 2`); n == 0 {
		t.Error("the constructor's options were not used")
	}
}

// Somebody without the code pauses, resumes and triggers what only its owner's processes can fire.
func TestVerbsOnCodeOfOthers(t *testing.T) {
	t.Parallel()
	made := NewPeriodicJob(river.PeriodicInterval(24*time.Hour), func() (river.JobArgs, *river.InsertOpts) { return reportArgs{}, nil },
		&river.PeriodicJobOpts{ID: "x"})
	w := newWorking(t, &Config{Owner: "a", Schedules: []*Declared{made}}, "report", func(context.Context, *river.Job[reportArgs]) error { return nil })
	r := newRigOn(t, w.pool)
	if _, err := r.Put(t.Context(), hourly("x")); !errors.Is(err, ErrOwned) {
		t.Errorf("put: %v", err)
	}
	if _, err := r.Backfill(t.Context(), "x", BackfillParams{From: r.yesterday(1), To: r.yesterday(2)}); !errors.Is(err, ErrRefused) {
		t.Errorf("backfill: %v", err)
	}
	if triggered, err := r.Trigger(t.Context(), "x"); err != nil || !triggered.Waits || triggered.Owner != "a" {
		t.Fatalf("trigger: %+v, %v", triggered, err)
	}
	pgtest.Eventually(t, patience, func() bool { return w.what("x")["fired"] == 1 }, "the owner's process to start the run")
	if source := one[string](t, r.pool, `SELECT source FROM pelton.schedule_tick`); source != "trigger" {
		t.Errorf("its source is %s", source)
	}
	if e, err := r.Pause(t.Context(), "x"); err != nil || e.PausedWhy != PausedByPerson {
		t.Errorf("pause: %+v, %v", e, err)
	}
	if _, err := r.Trigger(t.Context(), "x"); !errors.Is(err, ErrRefused) {
		t.Errorf("trigger in a pause: %v", err)
	}
	exec(t, r.pool, `UPDATE pelton.schedule_due SET decided = decided - interval '50 hours'`)
	if e, err := r.Resume(t.Context(), "x"); err != nil || e.PausedAt != nil {
		t.Errorf("resume: %+v, %v", e, err)
	}
	pgtest.Eventually(t, patience, func() bool { return w.what("x")["skipped paused"] == 2 }, "the ticks of the pause")
	if n := w.what("x")["fired"]; n != 1 {
		t.Errorf("%d were fired, want 1", n)
	}
}

// Code becomes a plain schedule, and the other way round.
func TestCodeComesAndGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	code := func() *Declared {
		return NewPeriodicJob(river.PeriodicInterval(time.Hour), func() (river.JobArgs, *river.InsertOpts) { return reportArgs{}, nil }, &river.PeriodicJobOpts{ID: "x"})
	}
	r.started("a", code())
	r.started("a", declared(hourly("x")))
	if got := one[bool](t, r.pool, `SELECT s.code OR d.code IS NOT NULL FROM pelton.schedule s JOIN pelton.schedule_due d ON d.schedule_id = s.id`); got {
		t.Error("a plain schedule is still code's")
	}
	r.started("a", code())
	if got := one[bool](t, r.pool, `SELECT s.code AND d.code = 'a/x' FROM pelton.schedule s JOIN pelton.schedule_due d ON d.schedule_id = s.id`); !got {
		t.Error("code's schedule is a plain one")
	}
	r.started("a")
	if got := r.states(); got != "x a v3 removed" {
		t.Errorf("in the end: %s", got)
	}
}
