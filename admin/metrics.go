package admin

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

var _ jobs.Observer = (*Metrics)(nil)

// MetricsConfig says what is measured. The zero value means the defaults.
type MetricsConfig struct {
	// Schema is the Postgres schema. Defaults to "pelton".
	Schema string

	// Logger is told of readings that failed. Defaults to slog's default logger.
	Logger *slog.Logger

	// Timeout is how long a scrape waits for the database. Defaults to 3 s.
	Timeout time.Duration

	// Keep is how long a reading of the database serves further scrapes, at least; one that took long serves longer. Defaults to 5 s; -1: each scrape reads.
	Keep time.Duration

	// LostEvery is the time between two counts of lost jobs, at least; a count that takes long stretches it a hundredfold of
	// that. Defaults to 1 minute; -1: never counted.
	LostEvery time.Duration
}

func (c MetricsConfig) withDefaults() MetricsConfig {
	def := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	if c.Schema == "" {
		c.Schema = schema.DefaultName
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	def(&c.Timeout, 3*time.Second)
	def(&c.Keep, 5*time.Second)
	def(&c.LostEvery, time.Minute)
	return c
}

// Metrics counts what clients of this process do, and reads from the database what there is when it is scraped. Give it to
// clients of jobs, flows and schedules as their Observer. Of labels, the first 200 queues, 200 kinds and 2,000 pairs of them are told apart; further ones
// are "other". Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	database *collector // reads it, for scrapes and the page
	shown    pageGauges
	keep     time.Duration
	labels   *pairs

	enqueued *children[pair, prometheus.Counter]
	runs     *children[runKey, runMetrics]
	claim    prometheus.Histogram
	finish   prometheus.Histogram
	reaped   *prometheus.CounterVec
	below    *prometheus.CounterVec

	logged    [3]prometheus.Counter // bytes stored, trimmed, dropped
	hints     *prometheus.CounterVec
	breaks    prometheus.Counter
	listening prometheus.Gauge

	flows     *flowMetrics
	schedules *scheduleMetrics
	duties    duties
	lost      *lost
	pools     *poolStats
}

// runKey are the labels of an ended run.
type runKey struct{ queue, kind, outcome string }

// runMetrics are what an ended run is counted in.
type runMetrics struct {
	finished  prometheus.Counter
	wait, run prometheus.Observer
}

// Buckets in seconds: of one statement; of a job's run, which may take from a millisecond to hours; and of a flow's, up to a day.
var (
	statementBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	runBuckets       = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}
	flowBuckets      = []float64{.1, .5, 1, 5, 10, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 86400}
)

// NewMetrics makes metrics of the database that the pool leads to, on a registry of their own. The pool stays the caller's. Nothing
// is read yet. It returns an error for a schema name that cannot be.
func NewMetrics(pool *pgxpool.Pool, config MetricsConfig) (*Metrics, error) {
	config = config.withDefaults()
	if err := schema.CheckName(config.Schema); err != nil {
		return nil, err
	}
	m := &Metrics{registry: prometheus.NewRegistry(), labels: newPairs(), keep: config.Keep, lost: newLost(pool, config), duties: duties{steps: map[string]dutyStep{}}, pools: &poolStats{pools: map[string]*pgxpool.Pool{queuePool: pool}}}
	c := newCollector(pool, config)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), c, m.lost, &m.duties, m.pools)
	m.database = c
	m.registerObserved()
	m.registerHeard()
	m.flows, m.schedules = newFlowMetrics(m.registry), newScheduleMetrics(m.registry)
	return m, nil
}

// registerObserved makes the metrics of what this process does.
func (m *Metrics) registerObserved() {
	enqueued := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pelton_jobs_enqueued_total",
		Help: "Jobs inserted by clients of this process; in a transaction of the caller's it may have been rolled back.",
	}, []string{"queue", "kind"})
	finished := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pelton_runs_finished_total",
		Help: "Runs of this process that ended, by outcome; refused: the reaper had ended it before.",
	}, []string{"queue", "kind", "outcome"})
	wait := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "pelton_run_wait_seconds", Buckets: runBuckets,
		Help: "Time from entering the line to the start of the run. Compares the database's clock with this process's.",
	}, []string{"queue", "kind"})
	run := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "pelton_run_duration_seconds", Buckets: runBuckets, Help: "Time from the start to the end of the work.",
	}, []string{"queue", "kind"})
	m.claim = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "pelton_claim_duration_seconds", Buckets: statementBuckets, Help: "Time of a claim, also of one that found nothing.",
	})
	m.finish = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "pelton_finish_duration_seconds", Buckets: statementBuckets, Help: "Time of recording a batch of results.",
	})
	m.reaped = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pelton_runs_reaped_total",
		Help: "Runs of dead processes that this one's reaper ended; lost: the job runs again, discarded: it does not.",
	}, []string{"outcome"})
	m.below = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pelton_rows_below_mark_total",
		Help: "Lines and priorities (of job_scheduled: looks) where a row was found below the low-water mark. Must stay 0.",
	}, []string{"table"})
	m.enqueued = newChildren(func(p pair) prometheus.Counter { return enqueued.WithLabelValues(p.queue, p.kind) })
	m.runs = newChildren(func(k runKey) runMetrics {
		return runMetrics{
			finished.WithLabelValues(k.queue, k.kind, k.outcome),
			wait.WithLabelValues(k.queue, k.kind), run.WithLabelValues(k.queue, k.kind),
		}
	})
	for _, outcome := range []string{"lost", "discarded"} {
		m.reaped.WithLabelValues(outcome)
	}
	for _, table := range markTables {
		m.below.WithLabelValues(table)
	}
	m.registry.MustRegister(enqueued, finished, wait, run, m.claim, m.finish, m.reaped, m.below)
}

// registerHeard makes the metrics of logs and hints of this process.
func (m *Metrics) registerHeard() {
	for i, c := range []prometheus.CounterOpts{
		{Name: "pelton_log_stored_bytes_total", Help: "Bytes of jobs' logs that this process stored."},
		{
			Name: "pelton_log_trimmed_bytes_total",
			Help: "Bytes of logs that were deleted again, since a run printed more than the head and the tail that are kept.",
		},
		{Name: "pelton_log_dropped_bytes_total", Help: "Bytes of logs that were dropped, since the database was away or refused them."},
	} {
		m.logged[i] = prometheus.NewCounter(c)
		m.registry.MustRegister(m.logged[i])
	}
	m.hints = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pelton_hints_received_total", Help: "Notifications that came: of a line with work, or of what else there is to do.",
	}, []string{"hint"})
	for _, hint := range []string{"line", "cancel", "queue", "flow", "schedule", "due"} {
		m.hints.WithLabelValues(hint)
	}
	m.breaks = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pelton_hints_interrupted_total",
		Help: "Times that the connection was lost that notifications come by: some may be lost, and polling stands in for them.",
	})
	m.listening = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pelton_hints_listening", Help: "1: the connection that notifications come by is there; 0: it is not, or this process only polls.",
	})
	m.registry.MustRegister(m.hints, m.breaks, m.listening)
}

// Registry is where further metrics of the process may be added, and what a scrape gathers.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Start begins to count lost jobs in the background. Starting twice does no harm. [Server.Start] does it.
func (m *Metrics) Start(ctx context.Context) { m.lost.start(ctx) }

// Stop ends what Start began, and waits for it.
func (m *Metrics) Stop() {
	m.lost.stop()
	m.shown.running.Wait()
}

// Enqueued is called by a client.
func (m *Metrics) Enqueued(queue, kind string, n int) {
	counter, ok := m.enqueued.get(pair{queue, kind})
	if !ok {
		counter = m.enqueued.add(m.labels.fold(queue, kind))
	}
	counter.Add(float64(n))
}

// Claimed is called by a client.
func (m *Metrics) Claimed(_ string, _ int, took time.Duration) { m.claim.Observe(took.Seconds()) }

// Finished is called by a client.
func (m *Metrics) Finished(runs []jobs.RunStats, took time.Duration) {
	m.finish.Observe(took.Seconds())
	var of runMetrics
	from := 0 // runs from here on have the same labels
	for i := range runs {
		r := &runs[i]
		if i == 0 || r.Queue != runs[from].Queue || r.Kind != runs[from].Kind || r.Outcome != runs[from].Outcome {
			if i > 0 {
				of.finished.Add(float64(i - from))
			}
			from, of = i, m.runMetrics(r)
		}
		if r.Wait == 0 && r.Run == 0 {
			continue // it never started
		}
		of.wait.Observe(max(r.Wait, 0).Seconds()) // clocks differ
		of.run.Observe(r.Run.Seconds())
		m.started(r)
	}
	if len(runs) > 0 {
		of.finished.Add(float64(len(runs) - from))
	}
}

func (m *Metrics) runMetrics(r *jobs.RunStats) runMetrics {
	if known, ok := m.runs.get(runKey{r.Queue, r.Kind, r.Outcome}); ok {
		return known
	}
	labels := m.labels.fold(r.Queue, r.Kind)
	return m.runs.add(runKey{labels.queue, labels.kind, r.Outcome})
}

// Reaped is called by a client.
func (m *Metrics) Reaped(lost, discarded int) {
	m.reaped.WithLabelValues("lost").Add(float64(lost))
	m.reaped.WithLabelValues("discarded").Add(float64(discarded))
}

// BelowMark is called by a client.
func (m *Metrics) BelowMark(relation string, n int) {
	m.below.WithLabelValues(relation).Add(float64(n))
}

// Logged is called by a client.
func (m *Metrics) Logged(stored, trimmed, dropped int64) {
	for i, n := range []int64{stored, trimmed, dropped} {
		m.logged[i].Add(float64(n))
	}
}

// Hinted is called by a client.
func (m *Metrics) Hinted(what string) { m.hints.WithLabelValues(what).Inc() }

// Listening is called by a client.
func (m *Metrics) Listening(on bool) {
	if on {
		m.listening.Set(1)
		return
	}
	m.listening.Set(0)
	m.breaks.Inc()
}

// markTables are the tables with a low-water mark.
var markTables = []string{"job_ready", "job_scheduled"}
