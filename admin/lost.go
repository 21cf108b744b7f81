package admin

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/internal/sqlfile"
)

const (
	// lostTimeout is how long a piece of a count of lost jobs may take, and lostPiece how long it should take.
	lostTimeout, lostPiece = 30 * time.Second, 200 * time.Millisecond
	// lostLeast and lostMost are how many jobs a piece looks at.
	lostLeast, lostMost = 1000, 50_000
	// lostRest is the share of counting: it takes a hundredth of one connection.
	lostRest = 100
	// lostWhole is the time between two counts that read the whole history; those between read back to the oldest job that has not ended.
	lostWhole = 24 * time.Hour
)

var lostDesc = prometheus.NewDesc("pelton_jobs_lost",
	"Jobs older than 10 seconds that are in no place. Must be 0. Left out while not known: the first count reads the whole history.", nil, nil)

// lost counts lost jobs now and then.
type lost struct {
	pool  *pgxpool.Pool
	sql   *sqlfile.Set
	log   *slog.Logger
	every time.Duration
	loop  *service.Service

	jobs atomic.Int64 // -1: not known

	rows    int           // that a piece looks at
	share   int           // how many times as long as a piece took nothing is counted after it
	rest    time.Duration // after the last piece
	settled int64         // below it all jobs had ended, or waited for a time or for somebody
	whole   time.Time     // when the history was last read as a whole
}

func newLost(pool *pgxpool.Pool, config MetricsConfig) *lost {
	l := &lost{pool: pool, sql: sqlfile.Load(files, "sql", config.Schema), log: config.Logger, every: config.LostEvery, rows: lostMost / 5, share: lostRest}
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
		n, err := l.count(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.log.WarnContext(ctx, "metrics: lost jobs could not be counted", "error", err)
			n = -1
		}
		l.jobs.Store(n)
		if !service.Sleep(ctx, max(l.every, l.rest)) {
			return
		}
	}
}

// count counts lost jobs from the newest on, in pieces. What it finds is known at once. It goes back to the oldest job that has not ended, and over the
// whole history once a day: what ended is taken up again only if somebody retries it.
func (l *lost) count(ctx context.Context) (n int64, err error) {
	began, low := time.Now(), l.settled
	whole := began.Sub(l.whole) >= lostWhole
	if whole {
		low = 0
	}
	settled := int64(math.MaxInt64)
	for high := int64(math.MaxInt64); ; {
		start := time.Now()
		piece, err := l.piece(ctx, low, high)
		took := time.Since(start)
		l.rest = time.Duration(l.share) * took
		if err != nil {
			l.rows = max(l.rows/4, lostLeast)
			return 0, err
		}
		n += piece.lost
		settled = min(settled, piece.settled)
		if piece.lost > 0 {
			l.jobs.Store(max(n, l.jobs.Load()))
		}
		if piece.looked < l.rows {
			break
		}
		high = piece.least
		l.rows = min(max(int(float64(l.rows)*min(2, float64(lostPiece)/float64(took+1))), lostLeast), lostMost)
		if !service.Sleep(ctx, l.rest) {
			return 0, ctx.Err()
		}
	}
	l.settled = settled
	if whole {
		l.whole = began
	}
	return n, nil
}

// lostInPiece is what a piece of a count came to.
type lostInPiece struct {
	lost    int64
	looked  int
	least   int64 // of the jobs looked at
	settled int64 // below it, and in this piece, no job is to be looked at again
}

func (l *lost) piece(ctx context.Context, low, high int64) (p lostInPiece, err error) {
	ctx, cancel := context.WithTimeout(ctx, lostTimeout)
	defer cancel()
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, l.pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, l.sql.Get("limits"), milliseconds(lostTimeout), false); err != nil {
			return err
		}
		var least, live *int64
		if err := tx.QueryRow(ctx, l.sql.Get("lost_piece"), pgx.QueryExecModeCacheDescribe, low, high, l.rows).Scan(&least, &p.looked, &p.settled); err != nil || least == nil {
			return err
		}
		p.least = *least
		err := tx.QueryRow(ctx, l.sql.Get("lost"), pgx.QueryExecModeCacheDescribe, p.least, high).Scan(&p.lost, &live)
		if live != nil {
			p.settled = min(p.settled, *live)
		}
		return err
	})
	return p, err
}
