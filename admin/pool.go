package admin

import (
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	poolConns = prometheus.NewDesc("pelton_pool_connections", "Connections of a pool of this process, by what they do.", []string{"pool", "state"}, nil)
	poolMax   = prometheus.NewDesc("pelton_pool_connections_max", "Connections that a pool may have.", []string{"pool"}, nil)
	poolTaken = prometheus.NewDesc("pelton_pool_acquires_total", "Times that a connection was taken from a pool.", []string{"pool"}, nil)
	poolEmpty = prometheus.NewDesc("pelton_pool_acquires_waited_total", "Times that one had to be waited for.", []string{"pool"}, nil)
	poolWait  = prometheus.NewDesc("pelton_pool_wait_seconds_total", "Time for which connections were waited for.", []string{"pool"}, nil)
	poolGone  = prometheus.NewDesc("pelton_pool_acquires_cancelled_total", "Times that somebody gave up waiting.", []string{"pool"}, nil)
)

// Pools of a process, as the label has them.
const (
	queuePool = "queue"
	pagesPool = "pages"
)

// poolStats shows what pools count anyway.
type poolStats struct {
	mu    sync.Mutex
	pools map[string]*pgxpool.Pool // by label
}

// watch shows a pool too; one of the same name is shown no more.
func (p *poolStats) watch(name string, pool *pgxpool.Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pools[name] = pool
}

// Describe implements prometheus.Collector.
func (*poolStats) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolConns, poolMax, poolTaken, poolEmpty, poolWait, poolGone} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (p *poolStats) Collect(out chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, pool := range p.pools {
		s := pool.Stat()
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
		}
		counter := func(d *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, name)
		}
		gauge(poolConns, float64(s.AcquiredConns()), "acquired")
		gauge(poolConns, float64(s.IdleConns()), "idle")
		gauge(poolConns, float64(s.ConstructingConns()), "connecting")
		gauge(poolMax, float64(s.MaxConns()))
		counter(poolTaken, float64(s.AcquireCount()))
		counter(poolEmpty, float64(s.EmptyAcquireCount()))
		counter(poolWait, s.EmptyAcquireWaitTime().Seconds())
		counter(poolGone, float64(s.CanceledAcquireCount()))
	}
}
