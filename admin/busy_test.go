package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema/schematest"
)

// server is what a process of pelton server runs, with metrics that observe all of it.
type server struct {
	metrics   *admin.Metrics
	pool      *pgxpool.Pool
	queue     *jobs.Client
	flows     *flow.Client
	schedules *periodic.Client
	release   chan struct{} // jobs that are to wait do so until it is closed
}

// Jobs of a server: a task prints a line; its flow's nodes have the same kind.
func newServer(t *testing.T, pool *pgxpool.Pool) *server {
	t.Helper()
	s := &server{metrics: newMetrics(t, pool), pool: pool, release: make(chan struct{})}
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[taskArgs]) error {
		jobs.Logger(ctx).InfoContext(ctx, "works")
		switch job.Args.Do {
		case "fail":
			return errors.New("failed as asked")
		case "wait":
			select {
			case <-s.release:
			case <-ctx.Done():
			}
		}
		return nil
	}))
	if err := flow.AddWorkers(workers, pool, flow.WorkerConfig{}); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.queue, err = jobs.NewClient(pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 10}}, Workers: workers, Observer: s.metrics, Logger: quiet(),
		Heartbeat: 50 * time.Millisecond, Lease: 30 * time.Second,
	}); err != nil {
		t.Fatal(err)
	}
	if s.flows, err = flow.NewClient(pool, s.queue, &flow.Config{Logger: quiet(), StepObserver: s.metrics}); err != nil {
		t.Fatal(err)
	}
	if s.schedules, err = periodic.NewClient(pool, s.queue, s.flows, &periodic.Config{Logger: quiet(), Observer: s.metrics}); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := s.queue.Start(ctx); err != nil {
		t.Fatal(err)
	}
	s.flows.Start(ctx)
	if err := s.schedules.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.schedules.Stop()
		s.flows.Stop()
		if err := s.queue.StopAndCancel(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// run starts a flow of nodes, whose work the names say, one after the other.
func (s *server) run(t *testing.T, project string, options flow.Options, nodes ...string) int64 {
	t.Helper()
	b := flow.New(strings.Join(nodes, "_"))
	for i, do := range nodes {
		b = b.Job(do, taskArgs{do}).Retry(flow.Retry{})
		if i > 0 {
			b = b.After(nodes[i-1])
		}
	}
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.flows.PushFlows(t.Context(), project, built); err != nil {
		t.Fatal(err)
	}
	run, err := s.flows.Run(t.Context(), flow.RunParams{Project: project, Flow: built.Name(), Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// put stores a schedule of task jobs.
func (s *server) put(t *testing.T, schedule periodic.Schedule) {
	t.Helper()
	schedule.Job = &periodic.JobTarget{Kind: "task", Args: []byte(`{}`)}
	if _, err := s.schedules.Put(t.Context(), schedule); err != nil {
		t.Fatal(err)
	}
}

func TestMetricsOfFlows(t *testing.T) {
	t.Parallel()
	s := newServer(t, schematest.Audited(t))
	m := s.metrics
	waitValue(t, m, 0, "pelton_flow_runs", "RUNNING")

	s.run(t, "sales", flow.Options{}, "good", "fine")
	waitValue(t, m, 1, "pelton_flow_runs_ended_total", "sales", "SUCCEEDED")
	waitValue(t, m, 0, "pelton_flow_runs_ended_total", "sales", "FAILED")
	waitValue(t, m, 2, "pelton_flow_nodes_ended_total", "SUCCEEDED")
	waitValue(t, m, 1, "pelton_flow_run_duration_seconds")
	waitValue(t, m, 0, "pelton_flow_sla_missed_total", "sales")

	s.run(t, "etl", flow.Options{}, "fail", "after")
	waitValue(t, m, 1, "pelton_flow_runs_ended_total", "etl", "FAILED")
	waitValue(t, m, 1, "pelton_flow_nodes_ended_total", "FAILED")
	waitValue(t, m, 1, "pelton_flow_nodes_ended_total", "CANCELLED")

	s.run(t, "etl", flow.Options{SLAs: []flow.SLA{
		{Within: flow.Duration(time.Millisecond), Alert: true}, {Node: "wait", Within: flow.Duration(time.Millisecond), Alert: true},
	}}, "wait", "later")
	waitValue(t, m, 2, "pelton_flow_sla_missed_total", "etl")
	waitValue(t, m, 1, "pelton_flow_runs", "RUNNING")
	waitValue(t, m, 1, "pelton_flow_nodes", "QUEUED")
	waitValue(t, m, 1, "pelton_flow_nodes", "READY")
	close(s.release)
	waitValue(t, m, 1, "pelton_flow_runs_ended_total", "etl", "SUCCEEDED")
	waitValue(t, m, 0, "pelton_flow_runs", "RUNNING")
	waitValue(t, m, 0, "pelton_flow_nodes", "READY")
	waitValue(t, m, 0, "pelton_flow_reports_waiting")
	if steps, _ := gather(t, m).value("pelton_flow_step_duration_seconds"); steps < 5 {
		t.Errorf("%v steps", steps)
	}
}

// What waits for an engine is seen, and for how long; there is none here.
func TestMetricsOfReportsThatWait(t *testing.T) {
	t.Parallel()
	began := time.Now()
	pool := schematest.Pool(t)
	m := newMetrics(t, pool)
	waitValue(t, m, 0, "pelton_flow_oldest_report_age_seconds")
	exec(t, pool, `INSERT INTO pelton.flow_report (run_id, at, action) SELECT 1, now() - interval '1 hour' * i, 'begin' FROM generate_series(3, 1, -1) i`)
	waitValue(t, m, 3, "pelton_flow_reports_waiting")
	if age, _ := gather(t, m).value("pelton_flow_oldest_report_age_seconds"); age < 3*3600 || age > 3*3600+time.Since(began).Seconds() {
		t.Errorf("the oldest report is %v s old, want 3 hours", age)
	}
}

func TestMetricsOfSchedules(t *testing.T) {
	t.Parallel()
	s := newServer(t, schematest.Audited(t))
	m := s.metrics
	waitValue(t, m, 0, "pelton_schedule_ticks_total", "fired", "")

	hourAgo := time.Now().Add(-time.Hour).Truncate(time.Second)
	s.put(t, periodic.Schedule{Name: "hourly", Every: periodic.Duration(time.Hour), Phase: &hourAgo, StartAt: &hourAgo})
	for range 3 {
		if _, err := s.schedules.Trigger(t.Context(), "hourly"); err != nil {
			t.Fatal(err)
		}
	}
	waitValue(t, m, 3, "pelton_schedule_ticks_total", "fired", "")
	waitValue(t, m, 3, "pelton_schedule_tick_to_start_seconds")
	if n, _ := gather(t, m).value("pelton_schedule_tick_delay_seconds"); n != 0 {
		t.Errorf("%v ticks by hand count as the clock's", n)
	}

	soon := time.Now().Add(5 * time.Second) // a busy machine has it stored by then
	s.put(t, periodic.Schedule{Name: "once", At: &soon})
	waitValue(t, m, 1, "pelton_schedule_tick_delay_seconds")
	waitValue(t, m, 4, "pelton_schedule_tick_to_start_seconds")
	waitValue(t, m, 4, "pelton_schedule_ticks_total", "fired", "")
	waitValue(t, m, 2, "pelton_schedules")
	waitValue(t, m, 0, "pelton_schedule_lag_seconds", "")
	if n, _ := gather(t, m).value("pelton_schedule_fire_duration_seconds"); n < 1 {
		t.Errorf("%v batches", n)
	}

	// What a backfill runs was not late.
	b, err := s.schedules.Backfill(t.Context(), "hourly", periodic.BackfillParams{From: hourAgo.Add(-3 * time.Hour), To: time.Now(), All: true, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.schedules.BackfillEnded(t.Context(), b.ID, nil); err != nil {
		t.Fatal(err)
	}
	waitValue(t, m, float64(4+b.Total), "pelton_schedule_ticks_total", "fired", "")
	waitValue(t, m, float64(4+b.Total), "pelton_runs_finished_total", "default", "task", "completed")
	waitValue(t, m, 4, "pelton_schedule_tick_to_start_seconds")
	waitValue(t, m, 0, "pelton_backfills_live")
}

// The firer is late: there is none. What only a service's code can fire is told apart.
func TestMetricsOfALateFirer(t *testing.T) {
	t.Parallel()
	began := time.Now()
	pool := schematest.Pool(t)
	exec(t, pool, `INSERT INTO pelton.schedule (name, owner, spec) SELECT 's' || i, CASE WHEN i = 3 THEN 'shop' ELSE '' END, '{}' FROM generate_series(1, 3) i`)
	exec(t, pool, `INSERT INTO pelton.schedule_due (schedule_id, wake, decided, code)
		SELECT s.id, now() + CASE s.name WHEN 's1' THEN '-10 minutes' WHEN 's2' THEN '1 hour' ELSE '-20 minutes' END::interval, now(),
			CASE WHEN s.owner <> '' THEN 'shop/' || s.name END FROM pelton.schedule s`)
	exec(t, pool, `INSERT INTO pelton.schedule_backfill (schedule_id, wake, from_at, to_at, decided, total, only_missed, created_by)
		SELECT id, now(), now(), now(), now(), 1, false, 'me' FROM pelton.schedule WHERE name = 's1'`)
	m := newMetrics(t, pool)
	waitValue(t, m, 1, "pelton_backfills_live")
	all := gather(t, m)
	for owner, want := range map[string]float64{"": 600, "shop": 1200} {
		if lag, ok := all.value("pelton_schedule_lag_seconds", owner); !ok || lag < want || lag > want+time.Since(began).Seconds() {
			t.Errorf("lag of %q is %v (%v), want %v", owner, lag, ok, want)
		}
	}
	exec(t, pool, `UPDATE pelton.schedule_due SET wake = NULL`)
	waitValue(t, m, 0, "pelton_schedule_lag_seconds", "")
	waitValue(t, m, 0, "pelton_schedule_lag_seconds", "shop")
}

// Processes that are silent, and those that were found dead lately, are told apart from the living.
func TestMetricsOfExecutors(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `INSERT INTO pelton.executor (pid, slots, name, host, beat_at, stopped_at, died_at) VALUES
		(1, 10, 'alive', 'h', now(), NULL, NULL), (2, 5, 'alive too', 'h', now(), NULL, NULL), (3, 7, 'silent', 'h', now() - interval '31 seconds', NULL, NULL),
		(4, 9, 'gone', 'h', now(), now(), NULL), (5, 9, 'dead', 'h', now(), NULL, now() - interval '59 minutes'),
		(6, 9, 'long dead', 'h', now(), NULL, now() - interval '61 minutes')`)
	m := newMetrics(t, pool)
	waitValue(t, m, 2, "pelton_executors_alive")
	waitValue(t, m, 15, "pelton_executor_slots")
	waitValue(t, m, 1, "pelton_executors_silent")
	waitValue(t, m, 1, "pelton_executors_died")
}

// Dead letters are counted by queue; of very many the rest is estimated.
func TestMetricsOfDeadLetters(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `INSERT INTO pelton.job_dead (job_id, created_at, priority, max_attempts, attempt, reason, kind, queue, args, attempts)
		SELECT i, now(), 1, 1, 1, 'exhausted', 'task', CASE WHEN i <= 3 THEN 'a' WHEN i <= 12000 THEN 'b' ELSE 'c' END, '{}', '[]' FROM generate_series(1, 12005) i`)
	exec(t, pool, `VACUUM (ANALYZE) pelton.job_dead`)
	m, err := admin.NewMetrics(pool, admin.MetricsConfig{Timeout: patience, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	for queue, want := range map[string]float64{"a": 3, "b": 11_997, "c": 5} {
		if n, _ := gather(t, m).value("pelton_dead_letters", queue); n != want {
			t.Errorf("queue %s: %v, want %v", queue, n, want)
		}
	}
}

// Sizes are those of the tables with all that belongs to them, whatever partition they lie in.
func TestMetricsOfSizes(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `INSERT INTO pelton.job_log (job_id, pos, run, stream, data) SELECT i, 0, 1, 'o', decode(repeat('ab', 1000), 'hex') FROM generate_series(1, 5000) i`)
	m, err := admin.NewMetrics(pool, admin.MetricsConfig{Timeout: patience, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	all := gather(t, m)
	sum := 0.0
	for _, family := range []string{"job", "job_attempt", "job_log", "job_dead", "moving", "flow", "schedule", "schedule_tick", "other"} {
		size, ok := all.value("pelton_table_size_bytes", family)
		if !ok || size == 0 {
			t.Errorf("family %s is %v bytes large", family, size)
		}
		sum += size
	}
	if n, _ := all.value("pelton_table_size_bytes", "job_log"); n < 5_000_000 {
		t.Errorf("logs of 5 MB are %v bytes large", n)
	}
	if whole, _ := all.value("pelton_database_size_bytes"); whole < sum {
		t.Errorf("the tables are %v bytes large, the database %v", sum, whole)
	}
}

// A database role that may not read flows and schedules still sees the queue.
func TestMetricsOfWhatOneMayRead(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `DO $$ BEGIN IF to_regrole('pelton_metrics_test') IS NULL THEN CREATE ROLE pelton_metrics_test; END IF; END $$`)
	exec(t, pool, `GRANT USAGE ON SCHEMA pelton TO pelton_metrics_test`)
	exec(t, pool, `GRANT SELECT ON ALL TABLES IN SCHEMA pelton TO pelton_metrics_test`)
	exec(t, pool, `GRANT SELECT ON ALL SEQUENCES IN SCHEMA pelton TO pelton_metrics_test`)
	exec(t, pool, `REVOKE SELECT ON pelton.schedule_due, pelton.flow_run FROM pelton_metrics_test`)
	config := pool.Config()
	config.ConnConfig.RuntimeParams["role"] = "pelton_metrics_test"
	limited, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limited.Close)
	m := newMetrics(t, limited)
	waitValue(t, m, 1, "pelton_up")
	waitValue(t, m, 0, "pelton_jobs_parked")
	all := gather(t, m)
	for _, name := range []string{"pelton_schedules", "pelton_flow_runs", "pelton_flow_nodes"} {
		if all[name] != nil {
			t.Errorf("%s was read", name)
		}
	}
	if all["pelton_table_size_bytes"] == nil {
		t.Error("sizes were not read")
	}
}
