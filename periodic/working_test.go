package periodic

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/schema/schematest"
)

// reportArgs are of the jobs that these tests work.
type reportArgs struct{ kind string }

func (a reportArgs) Kind() string {
	if a.kind == "" {
		return "report"
	}
	return a.kind
}

// newWorking is a rig that works jobs of a kind, and fires by itself.
func newWorking(t *testing.T, config *Config, kind string, work func(context.Context, *river.Job[reportArgs]) error) *rig {
	t.Helper()
	awaitHour(t)
	pool := schematest.Audited(t)
	log := slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	workers := jobs.NewWorkers()
	if err := jobs.AddWorkerArgs(workers, reportArgs{kind}, river.WorkFunc(work)); err != nil {
		t.Fatal(err)
	}
	queue, err := jobs.NewClient(pool, &jobs.Config{
		Logger: log, Workers: workers, Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 10}}, PollInterval: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	flows, err := flow.NewClient(pool, queue, &flow.Config{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = log
	c, err := NewClient(pool, queue, flows, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := queue.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Stop()
		if err := queue.StopAndCancel(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &rig{Client: c, t: t, pool: pool, queue: queue}
}

// gauge counts what goes on at once.
type gauge struct{ now, most, all atomic.Int64 }

func (g *gauge) enter() {
	g.all.Add(1)
	n := g.now.Add(1)
	for {
		if most := g.most.Load(); n <= most || g.most.CompareAndSwap(most, n) {
			return
		}
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// The rules for overlaps, with workers: a schedule of every second whose runs go on until they are let go.
func TestOverlapsWithWorkers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule Overlap
		done func(r *rig, g *gauge) bool
		most int64
	}{
		{OverlapAllow, func(_ *rig, g *gauge) bool { return g.now.Load() >= 3 }, 10},
		{OverlapSkip, func(r *rig, _ *gauge) bool { return r.what("x")["skipped overlap"] >= 2 }, 1},
		{OverlapQueue, func(r *rig, _ *gauge) bool {
			return r.what("x")["skipped overlap"] >= 1 && one[bool](r.t, r.pool, `SELECT waiting IS NOT NULL FROM pelton.schedule_due`)
		}, 1},
		{OverlapCancel, func(r *rig, g *gauge) bool {
			return g.all.Load() >= 3 && one[int](r.t, r.pool, `SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'cancelled'`) >= 2
		}, 1},
	} {
		t.Run(string(c.rule), func(t *testing.T) {
			t.Parallel()
			var g gauge
			let := make(chan struct{})
			r := newWorking(t, &Config{}, "report", func(ctx context.Context, _ *river.Job[reportArgs]) error {
				g.enter()
				defer g.leave()
				select {
				case <-let:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			r.put(Schedule{Name: "x", Every: Duration(time.Second), Overlap: c.rule, Job: task("report")})
			pgtest.Eventually(t, patience, func() bool { return c.done(r, &g) }, "the rule to show")
			if most := g.most.Load(); most > c.most {
				t.Errorf("%d runs at once", most)
			}
			before := g.all.Load()
			close(let)
			pgtest.Eventually(t, patience, func() bool { return g.all.Load() > before }, "a run after those that went on")
			if most := g.most.Load(); most > c.most {
				t.Errorf("%d runs at once", most)
			}
		})
	}
}

// A fixed delay counts from the end of a run.
func TestDelayWithWorkers(t *testing.T) {
	t.Parallel()
	var g gauge
	r := newWorking(t, &Config{}, "report", func(context.Context, *river.Job[reportArgs]) error {
		g.enter()
		defer g.leave()
		return nil
	})
	r.put(Schedule{Name: "x", Delay: Duration(300 * time.Millisecond), Job: task("report")})
	pgtest.Eventually(t, patience, func() bool { return g.all.Load() >= 4 }, "four runs")
	if _, err := r.Pause(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	early := one[int](t, r.pool, `WITH runs AS (SELECT t.at, lag(a.ended_at) OVER (ORDER BY t.at) AS before
		FROM pelton.schedule_tick t LEFT JOIN pelton.job_attempt a ON a.job_id = t.job_id)
		SELECT count(*) FROM runs WHERE at < before + interval '299 milliseconds'`)
	if early != 0 {
		t.Errorf("%d runs began before the delay was over", early)
	}
}
