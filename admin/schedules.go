package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/periodic"
)

var _ periodic.Observer = (*Metrics)(nil)

// mostMetadata is how large a job's metadata may be for a look at which tick it is of, so that no run costs much.
const mostMetadata = 16 << 10

// scheduleMetrics are what this process does to schedules.
type scheduleMetrics struct {
	reasons *names
	ticks   *prometheus.CounterVec
	fire    prometheus.Histogram
	late    prometheus.Histogram
	start   prometheus.Histogram
}

func newScheduleMetrics(registry *prometheus.Registry) *scheduleMetrics {
	s := &scheduleMetrics{
		reasons: newNames(maxReasons),
		ticks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pelton_schedule_ticks_total", Help: "Ticks of schedules that this process decided, by outcome and, of those that did not run, reason.",
		}, []string{"outcome", "reason"}),
		fire: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pelton_schedule_fire_duration_seconds", Buckets: statementBuckets, Help: "Time of a transaction that fires schedules.",
		}),
		late: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pelton_schedule_tick_delay_seconds", Buckets: runBuckets,
			Help: "Time from a tick of the clock to the transaction that fired it; of ticks that were caught up with, too.",
		}),
		start: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pelton_schedule_tick_to_start_seconds", Buckets: runBuckets,
			Help: "Time from a tick to the start of its job's first run; not of backfills.",
		}),
	}
	s.ticks.WithLabelValues(string(periodic.TickFired), "")
	for _, reason := range periodic.Reasons() {
		s.ticks.WithLabelValues(string(outcomeOf(reason)), s.reasons.fold(reason))
	}
	registry.MustRegister(s.ticks, s.fire, s.late, s.start)
	return s
}

// outcomeOf is how a tick ends that does not run for a reason.
func outcomeOf(reason string) periodic.Outcome {
	if reason == periodic.ReasonRefused {
		return periodic.TickFailed
	}
	return periodic.TickSkipped
}

// Decided is called by a client of schedules.
func (m *Metrics) Decided(ticks []periodic.Verdict) {
	type key struct {
		outcome periodic.Outcome
		reason  string
	}
	counts := map[key]int{}
	for _, t := range ticks {
		counts[key{t.Outcome, t.Reason}]++
		if t.Outcome == periodic.TickFired && t.Source == periodic.SourceClock {
			m.schedules.late.Observe(max(t.Late, 0).Seconds())
		}
	}
	for k, n := range counts {
		reason := k.reason
		if reason != "" {
			reason = m.schedules.reasons.fold(reason)
		}
		m.schedules.ticks.WithLabelValues(string(k.outcome), reason).Add(float64(n))
	}
}

// Fired is called by a client of schedules.
func (m *Metrics) Fired(_ int, took time.Duration) { m.schedules.fire.Observe(took.Seconds()) }

// started notes how long after its tick a job has started, if it is one of a schedule and this its first run.
func (m *Metrics) started(r *jobs.RunStats) {
	if r.Number != 1 || len(r.Metadata) == 0 || len(r.Metadata) > mostMetadata {
		return
	}
	if origin, ok := periodic.OriginOf(r.Metadata); ok && origin.Backfill == 0 {
		m.schedules.start.Observe(max(r.Started.Sub(origin.Tick), 0).Seconds()) // clocks differ
	}
}
