package admin

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	poolConns = prometheus.NewDesc("pelton_pool_connections", "Connections of this process's pool, by what they do.", []string{"state"}, nil)
	poolMax   = prometheus.NewDesc("pelton_pool_connections_max", "Connections that the pool may have.", nil, nil)
	poolTaken = prometheus.NewDesc("pelton_pool_acquires_total", "Times that a connection was taken from the pool.", nil, nil)
	poolEmpty = prometheus.NewDesc("pelton_pool_acquires_waited_total", "Times that one had to be waited for.", nil, nil)
	poolWait  = prometheus.NewDesc("pelton_pool_wait_seconds_total", "Time for which connections were waited for.", nil, nil)
	poolGone  = prometheus.NewDesc("pelton_pool_acquires_cancelled_total", "Times that somebody gave up waiting.", nil, nil)
)

// poolStats shows what the pool counts anyway.
type poolStats struct{ pool *pgxpool.Pool }

// Describe implements prometheus.Collector.
func (poolStats) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolConns, poolMax, poolTaken, poolEmpty, poolWait, poolGone} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (p poolStats) Collect(out chan<- prometheus.Metric) {
	s := p.pool.Stat()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value)
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
