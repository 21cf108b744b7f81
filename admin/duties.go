package admin

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stuckAfter is how much longer than it meant to rest a duty may take to end its next step. Every step has a limit of two minutes.
const stuckAfter = 5 * time.Minute

var dutyFailing = prometheus.NewDesc("pelton_duty_failing",
	"1: this process fails at a duty, and tries again; 0: its last step went well. Of duties that this process has.", []string{"duty"}, nil)

// duties is how those of this process get on.
type duties struct {
	mu    sync.Mutex
	steps map[string]dutyStep
}

// dutyStep is the last step of a duty.
type dutyStep struct {
	ended  time.Time
	again  time.Duration // until the next one
	failed bool
}

// DutyStepped is called by clients of jobs, flows and schedules.
func (m *Metrics) DutyStepped(duty string, again time.Duration, err error) {
	d := &m.duties
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps[duty] = dutyStep{time.Now(), again, err != nil}
}

// stuck says which duty of this process has come to no end of a step for much too long; empty: none.
func (d *duties) stuck(now time.Time) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for duty, s := range d.steps {
		if now.After(s.ended.Add(s.again + stuckAfter)) {
			return fmt.Sprintf("duty %q of this process stands still since %s: start the process anew", duty, s.ended.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// Describe implements prometheus.Collector.
func (d *duties) Describe(out chan<- *prometheus.Desc) { out <- dutyFailing }

// Collect implements prometheus.Collector.
func (d *duties) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for duty, s := range d.steps {
		value := 0.0
		if s.failed {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(dutyFailing, prometheus.GaugeValue, value, duty)
	}
}
