package admin

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/schema"
)

//go:embed sql/*.sql
var files embed.FS

const (
	// countUpTo is how many rows of a table are counted; beyond that it is estimated.
	countUpTo = 100_000
	// countDead is how many dead letters of a queue are counted.
	countDead = 10_000
	// sampleRuns is how many taken runs are looked up; of more, the queues are estimated.
	sampleRuns = 10_000
	// rest is how many times as long as a reading took it serves at least, and restLong that of one which took longer than longReading, as of a line of a hundred thousand
	// tickets: together they take at most a thirtieth of one connection.
	rest, restLong = 50, 200
	longReading    = 50 * time.Millisecond
	// seldom is how many times as long as other readings those of what changes slowly are kept: a minute by default.
	seldom = 12
)

// collector reads the database when it is asked, and keeps the answers for a while.
type collector struct {
	pool     *pgxpool.Pool
	sql      *sqlfile.Set
	schema   string
	log      *slog.Logger
	timeout  time.Duration
	queues   *names
	statuses *names
	owners   *names

	reports, dues *floor.Tracker // where flow_report and schedule_due are read from

	mu    sync.Mutex // held while reading: further scrapes get the same answer
	parts []*part    // the first one says whether the database answers
}

// part is what is read together, in a transaction of its own.
type part struct {
	what string
	keep time.Duration // how long it serves at least

	failures int // in a row
	read     func(ctx context.Context, to readings) error

	until  time.Time
	values readings // nil: it could not be read
}

func newCollector(pool *pgxpool.Pool, config MetricsConfig) *collector {
	c := &collector{
		pool: pool, sql: sqlfile.Load(files, "sql", config.Schema), log: config.Logger, timeout: config.Timeout, schema: config.Schema,
		queues: newNames(maxQueues), statuses: newNames(maxStatuses), owners: newNames(maxOwners),
		reports: floor.NewTracker(config.Schema, floor.Reports, nil), dues: floor.NewTracker(config.Schema, floor.Schedules, nil),
	}
	c.parts = []*part{
		{what: "the queue", keep: config.Keep, read: c.readQueue},
		{what: "flows and schedules", keep: config.Keep, read: c.readHeads},
		{what: "nodes of flows", keep: seldom * config.Keep, read: c.readNodes},
		{what: "sizes", keep: seldom * config.Keep, read: c.readSizes},
	}
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
	for i, p := range c.parts {
		c.renew(p)
		if p.values == nil && i == 0 {
			out <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 0)
			return
		}
		for key, value := range c.folded(p.values) {
			g := gauges[key.name]
			var labels []string
			if g.label != "" {
				labels = []string{key.label}
			}
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, labels...)
		}
	}
	out <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 1)
}

// renew reads a part anew if it is due, and says in the log when it begins to fail, and when it does no more.
func (c *collector) renew(p *part) {
	began := time.Now()
	if !began.After(p.until) && c.parts[0].keep >= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	values := readings{}
	err := p.read(ctx, values)
	switch {
	case err != nil && p.failures > 0:
	case schema.Denied(err) && p != c.parts[0]: // a worker's role may not read flows, and need not
		c.log.Info("metrics: the database role may not read this part: it is left out", "part", p.what)
	case err != nil:
		c.log.Warn("metrics: a part of the database could not be read; trying again", "part", p.what, "error", err)
	case p.failures > 0:
		c.log.Info("metrics: the part can be read again", "part", p.what)
	}
	took := time.Since(began)
	if err != nil { // it may be a hiccup of the database: it is tried again soon, and then more seldom
		p.failures++
		p.values, p.until = nil, time.Now().Add(time.Duration(min(rest, 1<<min(p.failures, 10)))*took+c.parts[0].keep)
		return
	}
	p.failures = 0
	if p.until.IsZero() {
		took = 0 // the first one found caches and connections cold, which says little of the next ones
	}
	resting := rest * took
	if took > longReading {
		resting = restLong * took
	}
	p.values, p.until = values, time.Now().Add(max(p.keep, resting))
}

// queue is what the first part says, of each queue there is. nil: it could not be read.
func (c *collector) queue() readings {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renew(c.parts[0])
	return c.parts[0].values
}

// readings are values by gauge and label.
type readings map[reading]float64

type reading struct{ name, label string }

// add adds a value, or for an age takes the larger one, since several may have the same label.
func (to readings) add(name, label string, value float64) {
	g, ok := gauges[name]
	if !ok {
		panic("no gauge " + name)
	}
	key := reading{name, label}
	if g.age {
		to[key] = max(to[key], value)
		return
	}
	to[key] += value
}

// folded has no more labels than metrics may: of queues the first in the alphabet when there were too many for the first time, and "other" for the rest.
func (c *collector) folded(all readings) readings {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b reading) int {
		return cmp.Or(strings.Compare(a.label, b.label), strings.Compare(a.name, b.name))
	})
	folded := make(readings, len(all))
	for _, key := range keys {
		label := key.label
		switch gauges[key.name].label {
		case "queue":
			label = c.queues.fold(label)
		case "status":
			label = c.statuses.fold(label)
		case "owner":
			label = c.owners.fold(label)
		}
		folded.add(key.name, label, all[key])
	}
	return folded
}

// within runs fn in a short transaction that only reads. indexed: without sequential scans.
func (c *collector) within(ctx context.Context, indexed bool, fn func(tx pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, c.pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, c.sql.Get("limits"), milliseconds(c.timeout), indexed); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
		return fn(tx)
	})
}

// readRows takes rows of a name, a label and a value.
func (c *collector) readRows(ctx context.Context, tx pgx.Tx, to readings, statement string, args ...any) error {
	rows, err := tx.Query(ctx, c.sql.Get(statement), append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	if err != nil {
		return fmt.Errorf("read %s: %w", statement, err)
	}
	var name, label string
	var value float64
	if _, err = pgx.ForEachRow(rows, []any{&name, &label, &value}, func() error {
		to.add(name, label, value)
		return nil
	}); err != nil {
		return fmt.Errorf("read %s: %w", statement, err)
	}
	return nil
}

// readQueue reads what waits and who works.
func (c *collector) readQueue(ctx context.Context, to readings) error {
	err := c.within(ctx, false, func(tx pgx.Tx) error {
		if err := c.readRows(ctx, tx, to, "gauges", int64(countUpTo), maxQueues, int64(countDead)); err != nil {
			return err
		}
		return c.readRunning(ctx, tx, to)
	})
	if err != nil {
		return err
	}
	ahead, err := schema.ReadAhead(ctx, c.pool, c.schema)
	if err != nil {
		return err
	}
	for _, a := range ahead {
		to.add("ahead", a.Table, float64(a.Partitions))
		if a.Until != math.MaxInt64 {
			to.add("left", a.Table, a.Until.Seconds())
		}
	}
	return nil
}

// readHeads reads how flows and schedules get on.
func (c *collector) readHeads(ctx context.Context, to readings) error {
	for _, tracker := range []*floor.Tracker{c.reports, c.dues} {
		if err := tracker.Refresh(ctx, c.pool); err != nil {
			return err
		}
	}
	for _, status := range liveStatuses() {
		to.add("runs", status, 0)
	}
	return c.within(ctx, true, func(tx pgx.Tx) error {
		return c.readRows(ctx, tx, to, "heads", int64(countUpTo), c.reports.Floor(), c.dues.Floor())
	})
}

// readNodes counts the nodes of live runs.
func (c *collector) readNodes(ctx context.Context, to readings) error {
	for _, status := range nodeStatuses() {
		to.add("nodes", status, 0)
	}
	return c.within(ctx, true, func(tx pgx.Tx) error { return c.readRows(ctx, tx, to, "nodes", int64(countUpTo)) })
}

// readSizes asks how much lies on disk.
func (c *collector) readSizes(ctx context.Context, to readings) error {
	return c.within(ctx, false, func(tx pgx.Tx) error { return c.readRows(ctx, tx, to, "sizes") })
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
