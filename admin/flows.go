package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/peltonq/pelton/jobs/flow"
)

var _ flow.StepObserver = (*Metrics)(nil)

// flowMetrics are what this process does to flows.
type flowMetrics struct {
	projects *names
	of       *children[string, projectMetrics]
	step     prometheus.Histogram
	nodes    *prometheus.CounterVec
	lasted   prometheus.Histogram
}

// projectMetrics are those of a project.
type projectMetrics struct {
	ended  map[string]prometheus.Counter // by status
	missed prometheus.Counter
}

func newFlowMetrics(registry *prometheus.Registry) *flowMetrics {
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pelton_flow_runs_ended_total", Help: "Runs of flows whose end this process recorded, by status; one that goes on may end again.",
	}, []string{"project", "status"})
	missed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pelton_flow_sla_missed_total", Help: "Limits of time (SLAs) of runs and nodes that passed.",
	}, []string{"project"})
	f := &flowMetrics{
		projects: newNames(maxProjects),
		step: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pelton_flow_step_duration_seconds", Buckets: statementBuckets, Help: "Time of a step: a transaction that advances a run.",
		}),
		nodes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pelton_flow_nodes_ended_total", Help: "Nodes of flows that ended, by status; one that is started over may end again.",
		}, []string{"status"}),
		lasted: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pelton_flow_run_duration_seconds", Buckets: flowBuckets,
			Help: "Time from the start of a run, or from when it last went on, to its end.",
		}),
	}
	f.of = newChildren(func(project string) projectMetrics {
		p := projectMetrics{ended: map[string]prometheus.Counter{}, missed: missed.WithLabelValues(project)}
		for _, status := range flow.EndStatuses() {
			p.ended[status] = ended.WithLabelValues(project, status)
		}
		return p
	})
	for _, status := range flow.NodeEndStatuses() {
		f.nodes.WithLabelValues(status)
	}
	registry.MustRegister(ended, missed, f.step, f.nodes, f.lasted)
	return f
}

// Stepped is called by a client of flows.
func (m *Metrics) Stepped(s *flow.StepStats) {
	m.flows.step.Observe(s.Took.Seconds())
	project, known := m.flows.of.get(s.Project)
	if !known {
		project = m.flows.of.add(m.flows.projects.fold(s.Project))
	}
	for status, n := range s.Nodes {
		m.flows.nodes.WithLabelValues(status).Add(float64(n))
	}
	project.missed.Add(float64(s.Missed))
	if s.Ended != "" {
		project.ended[s.Ended].Inc()
		m.flows.lasted.Observe(s.Lasted.Seconds())
	}
}
