package admin

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/schema"
)

//go:embed sql/*.sql
var files embed.FS

const (
	// countUpTo is how many rows of a table are counted; beyond that it is estimated.
	countUpTo = 100_000
	// sampleRuns is how many taken runs are looked up; of more, the queues are estimated.
	sampleRuns = 10_000
	// rest is how many times as long as a reading took it serves at least.
	rest = 20
)

// gauge is a metric about the database: the name of its rows in gauges.sql, and its label, if it has one.
type gauge struct {
	desc  *prometheus.Desc
	label string
}

func newGauge(name, help string, label ...string) gauge {
	g := gauge{desc: prometheus.NewDesc(name, help, label, nil)}
	if len(label) > 0 {
		g.label = label[0]
	}
	return g
}

var up = prometheus.NewDesc("pelton_up", "1: the database could be read; 0: it did not answer in time, or refused, and what it holds is left out.", nil, nil)

// gauges about the database, by the name of their rows.
var gauges = map[string]gauge{
	"ready":     newGauge("pelton_jobs_ready", "Jobs in the line.", "queue"),
	"oldest":    newGauge("pelton_oldest_ready_age_seconds", "How long the oldest jobs in the line have been there; 0: none.", "queue"),
	"running":   newGauge("pelton_jobs_running", "Runs that go on; of more than 10,000 the queues are estimated.", "queue"),
	"scheduled": newGauge("pelton_jobs_scheduled", "Jobs that wait for a time, retries among them; estimated beyond 100,000."),
	"parked":    newGauge("pelton_jobs_parked", "Jobs that wait for somebody (pending); estimated beyond 100,000."),
	"dead":      newGauge("pelton_dead_letters", "Dead letters that nobody has redriven or discarded; estimated beyond 100,000."),
	"alive":     newGauge("pelton_executors_alive", "Processes that work jobs and gave a sign of life within 30 seconds."),
	"ahead":     newGauge("pelton_partitions_ahead", "Partitions made whose time has yet to come.", "table"),
	"lag":       newGauge("pelton_mark_lag", "Positions drawn from the line's sequence that are not settled yet.", "table"),
	"passed": newGauge("pelton_mark_passed_writers",
		"Open transactions that the low-water mark has passed, because they write and stay open.", "table"),
}

// collector reads the database when it is asked, and keeps the answer for a while.
type collector struct {
	pool    *pgxpool.Pool
	sql     *sqlfile.Set
	keeper  *schema.Keeper // reads partitions; nil if the pool is too small for one
	log     *slog.Logger
	timeout time.Duration
	keep    time.Duration
	queues  *names

	mu    sync.Mutex // held while reading: further scrapes get the same answer
	until time.Time
	read  []prometheus.Metric
}

func newCollector(pool *pgxpool.Pool, config MetricsConfig) *collector {
	c := &collector{
		pool: pool, sql: sqlfile.Load(files, "sql", config.Schema), log: config.Logger, timeout: config.Timeout, keep: config.Keep,
		queues: newNames(maxQueues),
	}
	c.keeper, _ = schema.NewKeeper(pool, config.Schema, schema.KeeperConfig{}) // the name was checked; a small pool goes without
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- up
	for _, g := range gauges {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if began := time.Now(); began.After(c.until) {
		c.read = c.measure()
		c.until = time.Now().Add(max(c.keep, rest*time.Since(began)))
	}
	for _, metric := range c.read {
		out <- metric
	}
}

// measure reads the database, or says that it does not answer.
func (c *collector) measure() []prometheus.Metric {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	values, err := c.values(ctx)
	if err != nil {
		c.log.Warn("metrics: the database could not be read", "error", err)
		return []prometheus.Metric{prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 0)}
	}
	all := []prometheus.Metric{prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 1)}
	for key, value := range values {
		g := gauges[key.name]
		var labels []string
		if g.label != "" {
			labels = []string{key.label}
		}
		all = append(all, prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, labels...))
	}
	return all
}

// readings are values by gauge and label.
type readings map[reading]float64

type reading struct{ name, label string }

// add adds a value, or for an age takes the larger one, since many queues may share the label "other".
func (c *collector) add(to readings, name, label string, value float64) {
	g, ok := gauges[name]
	if !ok {
		panic("no gauge " + name)
	}
	if g.label == "queue" {
		label = c.queues.fold(label)
	}
	key := reading{name, label}
	if name == "oldest" {
		to[key] = max(to[key], value)
		return
	}
	to[key] += value
}

func (c *collector) values(ctx context.Context) (readings, error) {
	found := readings{}
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, c.pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, c.sql.Get("limits"), milliseconds(c.timeout)); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
		if err := c.readGauges(ctx, tx, found); err != nil {
			return fmt.Errorf("read gauges: %w", err)
		}
		if err := c.readRunning(ctx, tx, found); err != nil {
			return fmt.Errorf("read running jobs: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c.keeper == nil {
		return found, nil
	}
	ahead, err := c.keeper.Ahead(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range ahead {
		c.add(found, "ahead", a.Table, float64(a.Partitions))
	}
	return found, nil
}

func (c *collector) readGauges(ctx context.Context, tx pgx.Tx, to readings) error {
	rows, err := tx.Query(ctx, c.sql.Get("gauges"), pgx.QueryExecModeCacheDescribe, int64(countUpTo))
	if err != nil {
		return err
	}
	var name, label string
	var value float64
	_, err = pgx.ForEachRow(rows, []any{&name, &label, &value}, func() error {
		c.add(to, name, label, value)
		return nil
	})
	return err
}

// readRunning looks up the queues of what executors have taken: a lease does not say.
func (c *collector) readRunning(ctx context.Context, tx pgx.Tx, to readings) error {
	rows, err := tx.Query(ctx, c.sql.Get("leased"), pgx.QueryExecModeCacheDescribe, int64(sampleRuns))
	if err != nil {
		return err
	}
	var ids []int64
	var runs []int32
	var id, total int64
	var run int32
	if _, err := pgx.ForEachRow(rows, []any{&id, &run, &total}, func() error {
		ids, runs = append(ids, id), append(runs, run)
		return nil
	}); err != nil || len(ids) == 0 {
		return err
	}
	rows, err = tx.Query(ctx, c.sql.Get("running"), pgx.QueryExecModeCacheDescribe, ids, runs, slices.Min(ids), slices.Max(ids))
	if err != nil {
		return err
	}
	scale := float64(total) / float64(len(ids))
	var queue string
	var value float64
	_, err = pgx.ForEachRow(rows, []any{&queue, &value}, func() error {
		c.add(to, "running", queue, value*scale)
		return nil
	})
	return err
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
