package jobs_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// duty reads one of them.
func duty(t *testing.T, client *jobs.Client, name string) jobs.Duty {
	t.Helper()
	all, err := client.Duties(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("there is no duty %q", name)
	return jobs.Duty{}
}

func exec1(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if tag, err := pool.Exec(t.Context(), sql); err != nil || tag.Update() && tag.RowsAffected() == 0 {
		t.Fatalf("%s: %v, %v", sql, tag, err)
	}
}

// A scheduler notes each of its duties, those that fail with the reason, and that they are done again.
func TestDutiesAreNoted(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	steps := &dutySteps{}
	c := &jobs.Config{ID: "one", Logger: slog.New(slog.DiscardHandler), Observer: steps}
	c.SetDutyTimes(20*time.Millisecond, 0)
	c.SetMoveLook(20 * time.Millisecond)
	client := start(t, pool, c)
	pgtest.Eventually(t, patience, func() bool {
		all, err := client.Duties(t.Context())
		for _, d := range all {
			if d.State != jobs.DutyOK || d.DoneBy == nil || *d.DoneBy != "one" || d.Error != nil {
				return false
			}
		}
		return err == nil && len(all) == 6
	}, "all six duties to be noted")

	exec1(t, pool, `ALTER TABLE pelton.job_scheduled RENAME TO away`)
	pgtest.Eventually(t, patience, func() bool { return duty(t, client, "mover").FailingSince != nil }, "the mover to fail")
	if d := duty(t, client, "mover"); d.State != jobs.DutyOK || *d.FailedBy != "one" || !strings.Contains(*d.Error, "job_scheduled") {
		t.Errorf("just now it has failed at %+v", d)
	}
	exec1(t, pool, `UPDATE pelton.duty SET failing_since = failing_since - interval '1 min', done_at = done_at - interval '2 min', due_at = now() - interval '2 min'
		WHERE duty = 'mover'`)
	if d := duty(t, client, "mover"); d.State != jobs.DutyFailing {
		t.Errorf("after a minute: %+v", d)
	}
	if !steps.fails("mover") {
		t.Error("the observer is not told")
	}
	exec1(t, pool, `ALTER TABLE pelton.away RENAME TO job_scheduled`)
	pgtest.Eventually(t, patience, func() bool {
		d := duty(t, client, "mover")
		return d.State == jobs.DutyOK && d.FailingSince == nil && d.Error == nil
	}, "the mover to work again")
	if steps.fails("mover") {
		t.Error("the observer is not told that it works again")
	}
}

// A duty that one scheduler does in time is ok all the while that another fails at it, whose failure is told too, until it does it again or is gone.
func TestADutyThatOneDoesAndAnotherFailsAt(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client, err := jobs.NewClient(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	note := func(process string, done bool, failing time.Duration) {
		t.Helper()
		if err := client.NoteDuty(t.Context(), process, "mover", done, failing); err != nil {
			t.Fatal(err)
		}
	}
	is := func(state string, by string) {
		t.Helper()
		d := duty(t, client, "mover")
		if d.State != state || (d.FailedBy != nil) != (by != "") || by != "" && (*d.FailedBy != by || *d.Error != "it does not work" || d.FailingSince == nil) {
			t.Errorf("%+v, want %s, failed by %q", d, state, by)
		}
	}
	for _, failed := range []string{"", "bad", "bad"} {
		note("good", true, 0)
		is(jobs.DutyOK, failed)
		note("bad", false, 5*time.Minute)
		is(jobs.DutyOK, "bad")
	}
	// Another begins to fail, and the first works again.
	note("worse", false, time.Second)
	is(jobs.DutyOK, "worse")
	note("bad", true, 0)
	is(jobs.DutyOK, "worse")
	note("worse", true, 0)
	is(jobs.DutyOK, "")
	// Nobody does it for two minutes, and one fails at it.
	note("bad", false, 5*time.Minute)
	exec1(t, pool, `UPDATE pelton.duty SET done_at = done_at - interval '6 min', due_at = now() - interval '2 min' WHERE duty = 'mover'`)
	is(jobs.DutyFailing, "bad")
	note("good", true, 0)
	is(jobs.DutyOK, "bad")
	// Who failed is gone.
	exec1(t, pool, `UPDATE pelton.duty SET failed_at = failed_at - interval '4 min' WHERE duty = 'mover'`)
	is(jobs.DutyOK, "")
}

// dutySteps remembers which duties fail.
type dutySteps struct {
	jobs.NoObserver

	mu     sync.Mutex
	failed map[string]bool
}

func (s *dutySteps) DutyStepped(duty string, _ time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = map[string]bool{}
	}
	s.failed[duty] = err != nil
}

func (s *dutySteps) fails(duty string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed[duty]
}

// lookCounter counts looks at the duties.
type lookCounter struct{ count atomic.Int64 }

func (l *lookCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "duty_report") {
		l.count.Add(1)
	}
	return ctx
}

func (l *lookCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A client that only works says once that nobody has the duties, and that somebody has them again.
func TestWorkerWithoutAScheduler(t *testing.T) {
	t.Parallel()
	looked := &lookCounter{}
	pool := pgtest.Pool(t, schematest.DSN(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = looked })
	var mu sync.Mutex
	var said []string
	c := config(func(context.Context, *river.Job[taskArgs]) error { return nil })
	c.DutiesOff = true
	c.Logger = slog.New(slog.NewTextHandler(writerFunc(func(line string) {
		if strings.Contains(line, "the scheduler's duties") {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, line)
		}
	}), nil))
	c.SetDutyTimes(0, 10*time.Millisecond)
	start(t, pool, c)
	heard := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return said
	}
	looks := func() { // some that begin from now on, and so others that are over
		t.Helper()
		from := looked.count.Load()
		pgtest.Eventually(t, patience, func() bool { return looked.count.Load() > from+3 }, "further looks")
	}
	looks()
	if lines := heard(); len(lines) > 0 {
		t.Errorf("of new tables it says %q", lines)
	}
	exec1(t, pool, `UPDATE pelton.duty SET done_at = now() - interval '1 h', due_at = now() - interval '10 min'`)
	pgtest.Eventually(t, patience, func() bool { return len(heard()) > 0 }, "a warning")
	looks()
	if lines := heard(); len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "mover (not since ") ||
		!strings.Contains(lines[0], "start a `pelton server`") {
		t.Errorf("it says %q", lines)
	}
	s := &jobs.Config{Logger: slog.New(slog.DiscardHandler)}
	s.SetDutyTimes(10*time.Millisecond, 0)
	start(t, pool, s)
	pgtest.Eventually(t, patience, func() bool { return len(heard()) == 2 }, "word that a scheduler is there")
	if lines := heard(); !strings.Contains(lines[1], "level=INFO") {
		t.Errorf("it says %q", lines)
	}
}

// Of two that note a duty the later success counts, whoever fails.
func TestDutyThatAnotherDoes(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := newClient(t, pool, &jobs.Config{})
	exec1(t, pool, `UPDATE pelton.duty SET done_at = now() - interval '10 min', due_at = now() - interval '2 min',
		failing_since = now() - interval '5 min', failed_at = now(), failed_by = 'a', error = 'no' WHERE duty = 'reaper'`)
	if d := duty(t, client, "reaper"); d.State != jobs.DutyFailing {
		t.Errorf("%+v", d)
	}
	exec1(t, pool, `UPDATE pelton.duty SET failed_at = now() - interval '4 min' WHERE duty = 'reaper'`) // who failed is gone
	if d := duty(t, client, "reaper"); d.State != jobs.DutyOK {
		t.Errorf("of one that is gone: %+v", d)
	}
	exec1(t, pool, `UPDATE pelton.duty SET due_at = now() - interval '4 min' WHERE duty = 'reaper'`)
	if d := duty(t, client, "reaper"); d.State != jobs.DutyLate || d.Late < 59*time.Second {
		t.Errorf("that nobody does: %+v", d)
	}
}
