package admin

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/internal/sqlfile"
)

const (
	// lostTimeout is how long a count of lost jobs may take.
	lostTimeout = 30 * time.Second
	// lostRest is how many times as long as the count took it is let alone at least.
	lostRest = 100
)

var lostDesc = prometheus.NewDesc("pelton_jobs_lost",
	"Jobs older than 10 seconds that are in no place. Must be 0. Left out while not known: the count reads the whole history.", nil, nil)

// lost counts lost jobs now and then.
type lost struct {
	pool  *pgxpool.Pool
	sql   *sqlfile.Set
	log   *slog.Logger
	every time.Duration
	loop  *service.Service

	jobs atomic.Int64 // -1: not known
}

func newLost(pool *pgxpool.Pool, config MetricsConfig) *lost {
	l := &lost{pool: pool, sql: sqlfile.Load(files, "sql", config.Schema), log: config.Logger, every: config.LostEvery}
	l.jobs.Store(-1)
	l.loop = service.New(l.run)
	return l
}

func (l *lost) start(ctx context.Context) {
	if l.every > 0 {
		l.loop.Start(ctx)
	}
}

func (l *lost) stop() { l.loop.Stop() }

// Lost is how many jobs are in no place, if that is known: it is counted in the background.
func (m *Metrics) Lost() (jobs int, known bool) {
	n := m.lost.jobs.Load()
	return int(max(n, 0)), n >= 0
}

// Describe implements prometheus.Collector.
func (l *lost) Describe(out chan<- *prometheus.Desc) { out <- lostDesc }

// Collect implements prometheus.Collector.
func (l *lost) Collect(out chan<- prometheus.Metric) {
	if n := l.jobs.Load(); n >= 0 {
		out <- prometheus.MustNewConstMetric(lostDesc, prometheus.GaugeValue, float64(n))
	}
}

func (l *lost) run(ctx context.Context) {
	for {
		began := time.Now()
		n, err := l.count(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.log.WarnContext(ctx, "metrics: lost jobs could not be counted", "error", err)
			n = -1
		}
		l.jobs.Store(n)
		if !service.Sleep(ctx, max(l.every, lostRest*time.Since(began))) {
			return
		}
	}
}

func (l *lost) count(ctx context.Context) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, lostTimeout)
	defer cancel()
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, l.pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, l.sql.Get("limits"), milliseconds(lostTimeout), false); err != nil {
			return err
		}
		return tx.QueryRow(ctx, l.sql.Get("lost"), pgx.QueryExecModeCacheDescribe).Scan(&n)
	})
	return n, err
}
