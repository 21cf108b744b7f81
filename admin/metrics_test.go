package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// series are those that every server shows once it has done a bit of everything, with their labels.
var series = map[string]string{
	"pelton_up":                             "",
	"pelton_jobs_ready":                     "queue",
	"pelton_jobs_running":                   "queue",
	"pelton_oldest_ready_age_seconds":       "queue",
	"pelton_jobs_scheduled":                 "",
	"pelton_jobs_parked":                    "",
	"pelton_dead_letters":                   "queue",
	"pelton_jobs_lost":                      "",
	"pelton_executors_alive":                "",
	"pelton_executors_silent":               "",
	"pelton_executors_died":                 "",
	"pelton_executor_slots":                 "",
	"pelton_notification_queue_ratio":       "",
	"pelton_partitions_ahead":               "table",
	"pelton_partitions_left_seconds":        "table",
	"pelton_duty_late_seconds":              "duty",
	"pelton_mark_lag":                       "table",
	"pelton_mark_passed_writers":            "table",
	"pelton_flow_runs":                      "status",
	"pelton_flow_nodes":                     "status",
	"pelton_flow_reports_waiting":           "",
	"pelton_flow_oldest_report_age_seconds": "",
	"pelton_schedule_lag_seconds":           "owner",
	"pelton_schedules":                      "",
	"pelton_backfills_live":                 "",
	"pelton_database_size_bytes":            "",
	"pelton_table_size_bytes":               "family",

	"pelton_duty_failing":                   "duty",
	"pelton_runs_reaped_total":              "outcome",
	"pelton_rows_below_mark_total":          "table",
	"pelton_jobs_enqueued_total":            "queue,kind",
	"pelton_runs_finished_total":            "queue,kind,outcome",
	"pelton_run_wait_seconds":               "queue,kind",
	"pelton_run_duration_seconds":           "queue,kind",
	"pelton_claim_duration_seconds":         "",
	"pelton_finish_duration_seconds":        "",
	"pelton_log_stored_bytes_total":         "",
	"pelton_log_trimmed_bytes_total":        "",
	"pelton_log_dropped_bytes_total":        "",
	"pelton_hints_received_total":           "hint",
	"pelton_hints_interrupted_total":        "",
	"pelton_hints_listening":                "",
	"pelton_flow_runs_ended_total":          "project,status",
	"pelton_flow_run_duration_seconds":      "",
	"pelton_flow_nodes_ended_total":         "status",
	"pelton_flow_sla_missed_total":          "project",
	"pelton_flow_step_duration_seconds":     "",
	"pelton_schedule_ticks_total":           "outcome,reason",
	"pelton_schedule_fire_duration_seconds": "",
	"pelton_schedule_tick_delay_seconds":    "",
	"pelton_schedule_tick_to_start_seconds": "",
	"pelton_pool_connections":               "pool,state",
	"pelton_pool_connections_max":           "pool",
	"pelton_pool_acquires_total":            "pool",
	"pelton_pool_acquires_waited_total":     "pool",
	"pelton_pool_acquires_cancelled_total":  "pool",
	"pelton_pool_wait_seconds_total":        "pool",
}

// families are the metrics of one scrape by name.
type families map[string]*dto.MetricFamily

func gather(t *testing.T, m *admin.Metrics) families {
	t.Helper()
	list, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := families{}
	for _, f := range list {
		all[f.GetName()] = f
	}
	return all
}

// value is that of a metric with these label values, in the order in which series has them; a histogram's is its count.
func (f families) value(name string, labels ...string) (float64, bool) {
	names := strings.Split(series[name], ",")
	for _, m := range f[name].GetMetric() {
		matches := true
		for i, want := range labels {
			at := slices.IndexFunc(m.GetLabel(), func(p *dto.LabelPair) bool { return p.GetName() == names[i] })
			matches = matches && at >= 0 && m.GetLabel()[at].GetValue() == want
		}
		switch {
		case !matches:
		case m.Histogram != nil:
			return float64(m.GetHistogram().GetSampleCount()), true
		case m.Counter != nil:
			return m.GetCounter().GetValue(), true
		default:
			return m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

// waitValue scrapes until a metric has a value.
func waitValue(t *testing.T, m *admin.Metrics, want float64, name string, labels ...string) {
	t.Helper()
	pgtest.Retry(t, patience, func(context.Context) error {
		if got, ok := gather(t, m).value(name, labels...); !ok || got != want {
			return fmt.Errorf("%s%v is %v (%v), want %v", name, labels, got, ok, want)
		}
		return nil
	})
}

type taskArgs struct {
	Do string `json:"do"`
}

func (taskArgs) Kind() string { return "task" }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// newMetrics makes metrics whose readings are fresh.
func newMetrics(t *testing.T, pool *pgxpool.Pool) *admin.Metrics {
	t.Helper()
	m, err := admin.NewMetrics(pool, admin.MetricsConfig{Keep: -1, LostEvery: 50 * time.Millisecond, Timeout: patience, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	m.Start(t.Context())
	t.Cleanup(m.Stop)
	return m
}

// hourly retries after an hour, which no test lasts: what has failed once is counted once.
type hourly struct{}

func (hourly) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(time.Hour) }

// startClient works queue default; jobs that are to wait do so until release is closed.
func startClient(t *testing.T, pool *pgxpool.Pool, m *admin.Metrics, release <-chan struct{}) *jobs.Client {
	t.Helper()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[taskArgs]) error {
		switch job.Args.Do {
		case "fail":
			return errors.New("failed as asked")
		case "wait":
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return nil
	}))
	client, err := jobs.NewClient(pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 3}}, Workers: workers, Observer: m, Logger: quiet(),
		Heartbeat: 50 * time.Millisecond, Lease: 30 * time.Second, PollInterval: 100 * time.Millisecond, RetryPolicy: hourly{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := client.StopAndCancel(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return client
}

func insert(t *testing.T, client *jobs.Client, do string, opts *river.InsertOpts) {
	t.Helper()
	if _, err := client.Insert(t.Context(), taskArgs{do}, opts); err != nil {
		t.Fatal(err)
	}
}

func TestMetricsOfAQueueAtWork(t *testing.T) {
	t.Parallel()
	began := time.Now()
	pool := schematest.Audited(t)
	m := newMetrics(t, pool)
	release := make(chan struct{})
	client := startClient(t, pool, m, release)

	for range 5 {
		insert(t, client, "", nil)
	}
	insert(t, client, "fail", &river.InsertOpts{MaxAttempts: 1})
	insert(t, client, "fail", nil)
	insert(t, client, "", &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)})
	insert(t, client, "", &river.InsertOpts{Pending: true})
	for range 4 {
		insert(t, client, "", &river.InsertOpts{Queue: "elsewhere"})
	}
	waitValue(t, m, 5, "pelton_runs_finished_total", "default", "task", "completed")
	waitValue(t, m, 1, "pelton_runs_finished_total", "default", "task", "discarded")
	waitValue(t, m, 1, "pelton_runs_finished_total", "default", "task", "errored")
	waitValue(t, m, 7, "pelton_run_duration_seconds", "default", "task")
	waitValue(t, m, 7, "pelton_run_wait_seconds", "default", "task")
	waitValue(t, m, 9, "pelton_jobs_enqueued_total", "default", "task")
	waitValue(t, m, 4, "pelton_jobs_enqueued_total", "elsewhere", "task")
	waitValue(t, m, 4, "pelton_jobs_ready", "elsewhere")
	waitValue(t, m, 0, "pelton_jobs_ready", "default")
	waitValue(t, m, 0, "pelton_oldest_ready_age_seconds", "default")
	waitValue(t, m, 2, "pelton_jobs_scheduled") // and the retry
	waitValue(t, m, 1, "pelton_jobs_parked")
	waitValue(t, m, 1, "pelton_dead_letters", "default")
	waitValue(t, m, 3, "pelton_executor_slots")
	waitValue(t, m, 1, "pelton_executors_alive")
	waitValue(t, m, 0, "pelton_jobs_lost")

	for range 5 {
		insert(t, client, "wait", nil)
	}
	waitValue(t, m, 3, "pelton_jobs_running", "default")
	close(release)
	waitValue(t, m, 0, "pelton_jobs_running", "default")
	waitValue(t, m, 10, "pelton_runs_finished_total", "default", "task", "completed")

	waitValue(t, m, 30, "pelton_partitions_ahead", "job_log")
	all := gather(t, m)
	if age, ok := all.value("pelton_oldest_ready_age_seconds", "elsewhere"); !ok || age <= 0 || age > time.Since(began).Seconds() {
		t.Errorf("age of the oldest job is %v", age)
	}
	if left, ok := all.value("pelton_partitions_left_seconds", "job_log"); !ok || left < 29*86400 {
		t.Errorf("partitions are left for %v s", left)
	}
	for _, name := range []string{"pelton_database_size_bytes", "pelton_hints_listening"} {
		if value, _ := all.value(name); value <= 0 {
			t.Errorf("%s is %v", name, value)
		}
	}
	for _, name := range []string{"pelton_pool_connections_max", "pelton_pool_acquires_total"} {
		if value, _ := all.value(name, "queue"); value <= 0 {
			t.Errorf("%s of the queue's pool is %v", name, value)
		}
	}
}

// A job that is in no place is seen.
func TestMetricsSeeALostJob(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO pelton.job (kind, args, created_at) VALUES ('task', '{}', now() - interval '1 minute')`); err != nil {
		t.Fatal(err)
	}
	m := newMetrics(t, pool)
	waitValue(t, m, 1, "pelton_jobs_lost")
}

// What the line's sequence has drawn, nobody settles here: there is no scheduler.
func TestMetricsOfMarks(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	m := newMetrics(t, pool)
	waitValue(t, m, 0, "pelton_mark_lag", "job_ready")
	for range 3 {
		if _, err := pool.Exec(t.Context(), `SELECT pelton.enqueue('task')`); err != nil {
			t.Fatal(err)
		}
	}
	waitValue(t, m, 3, "pelton_mark_lag", "job_ready")
	_, err := pool.Exec(t.Context(), `INSERT INTO pelton.floor (relation, follows, instance, settled, passed)
		VALUES ('job_ready', 0, now(), 2, '[{"writer": "1/1", "look_from": 2}]')`)
	if err != nil {
		t.Fatal(err)
	}
	waitValue(t, m, 1, "pelton_mark_lag", "job_ready")
	waitValue(t, m, 1, "pelton_mark_passed_writers", "job_ready")
	waitValue(t, m, 0, "pelton_mark_passed_writers", "job_scheduled")
	waitValue(t, m, 0, "pelton_runs_reaped_total", "lost")
	m.Reaped(5, 1)
	waitValue(t, m, 5, "pelton_runs_reaped_total", "lost")
	waitValue(t, m, 1, "pelton_runs_reaped_total", "discarded")
	m.BelowMark("job_ready", 2)
	waitValue(t, m, 2, "pelton_rows_below_mark_total", "job_ready")
	waitValue(t, m, 0, "pelton_rows_below_mark_total", "job_scheduled")
}

// Jobs of a kind that some executors do not know stand in a line of their own, and count for their queue.
func TestMetricsAddUpLinesOfKinds(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	m := newMetrics(t, pool)
	_, err := pool.Exec(t.Context(), `INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES
		(1, 'default', '{1,2,3}'), (2, 'default', '{4}'), (1, 'default/kind=a/b', '{5,6}'), (1, 'etl', '{7}')`)
	if err != nil {
		t.Fatal(err)
	}
	waitValue(t, m, 6, "pelton_jobs_ready", "default")
	waitValue(t, m, 1, "pelton_jobs_ready", "etl")
}

func TestReadingsAreKept(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	m, err := admin.NewMetrics(pool, admin.MetricsConfig{Keep: time.Hour, Timeout: patience, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	waitValue(t, m, 0, "pelton_jobs_parked")
	if _, err := pool.Exec(t.Context(), `INSERT INTO pelton.job_parked (job_id) VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	if n, _ := gather(t, m).value("pelton_jobs_parked"); n != 0 {
		t.Errorf("parked: %v; the database was read again", n)
	}
	m = newMetrics(t, pool) // keeps nothing
	for i := 2.0; i <= 5; i++ {
		if _, err := pool.Exec(t.Context(), `INSERT INTO pelton.job_parked (job_id) VALUES ($1)`, int64(i)); err != nil {
			t.Fatal(err)
		}
		if n, _ := gather(t, m).value("pelton_jobs_parked"); n != i {
			t.Errorf("parked: %v, want %v; what was read before is shown", n, i)
		}
	}
}

func TestNamesAreOfTheConventions(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	m := newMetrics(t, pool)
	waitValue(t, m, 0, "pelton_jobs_lost")
	m.Enqueued("default", "task", 1)
	m.Finished([]jobs.RunStats{{Queue: "default", Kind: "task", Outcome: "completed", Run: 1}}, time.Millisecond)
	problems, err := testutil.GatherAndLint(m.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// docs/metrics.md names what there is, with its labels, and nothing else.
func TestNamesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(pelton_[a-z_]+)(?:\\{([a-z,]+)\\})?` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = m[2]
	}
	for name, labels := range series {
		if got, ok := documented[name]; !ok || got != labels {
			t.Errorf("%s{%s} is documented with labels %q (%v)", name, labels, got, ok)
		}
	}
	for name := range documented {
		if _, ok := series[name]; !ok {
			t.Errorf("%s is documented, and is not there", name)
		}
	}
}

// However many kinds and queues there are, the number of series is bounded, and nothing is left uncounted.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, schematest.Pool(t))
	const queues, kinds = 250, 300
	for q := range queues {
		var runs []jobs.RunStats
		for k := range kinds {
			queue, kind := fmt.Sprintf("q%d", q), fmt.Sprintf("k%d", k)
			m.Enqueued(queue, kind, 1)
			runs = append(runs, jobs.RunStats{Queue: queue, Kind: kind, Outcome: "completed", Run: time.Second})
		}
		m.Finished(runs, time.Second)
	}
	all := gather(t, m)
	for _, name := range []string{"pelton_jobs_enqueued_total", "pelton_runs_finished_total"} {
		var sum float64
		seen := map[string]map[string]bool{"queue": {}, "kind": {}}
		for _, one := range all[name].GetMetric() {
			sum += one.GetCounter().GetValue()
			for _, l := range one.GetLabel() {
				if seen[l.GetName()] != nil {
					seen[l.GetName()][l.GetValue()] = true
				}
			}
		}
		if sum != queues*kinds {
			t.Errorf("%s adds up to %v, want %d", name, sum, queues*kinds)
		}
		if n := len(all[name].GetMetric()); n > 2300 || len(seen["queue"]) > 201 || len(seen["kind"]) > 201 {
			t.Errorf("%s has %d series, %d queues, %d kinds", name, n, len(seen["queue"]), len(seen["kind"]))
		}
	}
	m.Enqueued("default", "bad\xff", 1) // by SQL this cannot be, by a program it can
}

// A run that never started has no times.
func TestUnstartedRunsHaveNoTimes(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, schematest.Pool(t))
	m.Finished([]jobs.RunStats{
		{Queue: "q", Kind: "a", Outcome: "returned"},
		{Queue: "q", Kind: "a", Outcome: "completed", Wait: -time.Second, Run: time.Second},
		{Queue: "q", Kind: "a", Outcome: "completed", Wait: time.Second, Run: time.Second},
		{Queue: "q", Kind: "b", Outcome: "completed", Wait: time.Second, Run: time.Second},
	}, time.Second)
	m.Finished(nil, time.Second)
	all := gather(t, m)
	for _, want := range []struct {
		value  float64
		name   string
		labels []string
	}{
		{1, "pelton_runs_finished_total", []string{"q", "a", "returned"}},
		{2, "pelton_runs_finished_total", []string{"q", "a", "completed"}},
		{1, "pelton_runs_finished_total", []string{"q", "b", "completed"}},
		{2, "pelton_run_wait_seconds", []string{"q", "a"}},
		{2, "pelton_run_duration_seconds", []string{"q", "a"}},
		{2, "pelton_finish_duration_seconds", nil},
	} {
		if got, _ := all.value(want.name, want.labels...); got != want.value {
			t.Errorf("%s%v is %v, want %v", want.name, want.labels, got, want.value)
		}
	}
}

// A lease says neither which queue its runs are of nor which of them have ended; a person may have moved one.
func TestRunningIsByQueueAndRun(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `INSERT INTO pelton.job (id, kind, queue, args) SELECT i, 'task', CASE WHEN i <= 4 THEN 'default' ELSE 'etl' END, '{}'
		FROM generate_series(1, 6) i`)
	exec(t, pool, `INSERT INTO pelton.job_lease (executor, no, job_ids, runs) VALUES (1, 1, '{1,2,3}', NULL), (1, 2, '{4,5,6}', '{2,2,1}')`)
	exec(t, pool, `INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) VALUES
		(1, 1, 'completed', 1), (4, 1, 'errored', 1), (5, 1, 'errored', 1), (5, 2, 'completed', 2)`)
	exec(t, pool, `INSERT INTO pelton.job_change (job_id, queue) VALUES (2, 'moved')`)
	m := newMetrics(t, pool)
	waitValue(t, m, 2, "pelton_jobs_running", "default") // 3, and the second run of 4
	waitValue(t, m, 1, "pelton_jobs_running", "etl")     // 6
	waitValue(t, m, 1, "pelton_jobs_running", "moved")   // 2
}

// Much is estimated: a scrape costs the same however much there is.
func TestMuchIsEstimated(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	exec(t, pool, `INSERT INTO pelton.job (id, kind, args) SELECT i, 'task', '{}' FROM generate_series(1, 12000) i`)
	exec(t, pool, `INSERT INTO pelton.job_lease (executor, no, job_ids) SELECT 1, i / 100, array_agg(i) FROM generate_series(1, 12000) i GROUP BY 2`)
	exec(t, pool, `INSERT INTO pelton.job_parked (job_id) SELECT generate_series(1, 120000)`)
	m, err := admin.NewMetrics(pool, admin.MetricsConfig{Keep: -1, Timeout: patience, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := gather(t, m).value("pelton_jobs_parked"); !ok || n < 100_000 {
		t.Errorf("parked: %v", n)
	}
	exec(t, pool, `VACUUM (ANALYZE) pelton.job_parked`)
	m, err = admin.NewMetrics(pool, admin.MetricsConfig{Timeout: patience, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	all := gather(t, m)
	if n, _ := all.value("pelton_jobs_parked"); n != 120_000 {
		t.Errorf("parked: %v, want 120,000", n)
	}
	if n, _ := all.value("pelton_jobs_running", "default"); n != 12_000 {
		t.Errorf("running: %v, want 12,000", n)
	}
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
