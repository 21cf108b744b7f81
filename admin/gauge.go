package admin

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/peltonq/pelton/jobs/flow"
)

// gauge is a metric about the database: its label, if it has one, and whether it is an age or a delay, of which the largest counts.
type gauge struct {
	desc  *prometheus.Desc
	label string
	age   bool
}

func newGauge(name, help string, label ...string) gauge {
	g := gauge{desc: prometheus.NewDesc(name, help, label, nil)}
	if len(label) > 0 {
		g.label = label[0]
	}
	return g
}

func newAge(name, help string, label ...string) gauge {
	g := newGauge(name, help, label...)
	g.age = true
	return g
}

var up = prometheus.NewDesc("pelton_up", "1: the database could be read; 0: it did not answer in time, or refused, and what it holds is left out.", nil, nil)

// gauges about the database, by the name of their rows.
var gauges = map[string]gauge{
	"ready":     newGauge("pelton_jobs_ready", "Jobs in the line.", "queue"),
	"oldest":    newAge("pelton_oldest_ready_age_seconds", "How long the oldest jobs in the line have been there; 0: none.", "queue"),
	"running":   newGauge("pelton_jobs_running", "Runs that go on; of more than 10,000 the queues are estimated.", "queue"),
	"scheduled": newGauge("pelton_jobs_scheduled", "Jobs that wait for a time, retries among them; estimated beyond 100,000."),
	"parked":    newGauge("pelton_jobs_parked", "Jobs that wait for somebody (pending); estimated beyond 100,000."),
	"dead": newGauge("pelton_dead_letters", "Dead letters that nobody has redriven or discarded; estimated beyond 10,000 of a queue.",
		"queue"),
	"alive":  newGauge("pelton_executors_alive", "Processes that work jobs and gave a sign of life within 30 seconds."),
	"silent": newGauge("pelton_executors_silent", "Processes that have not said goodbye and gave no sign of life for 30 seconds."),
	"died":   newGauge("pelton_executors_died", "Processes that were found dead within the last hour."),
	"slots":  newGauge("pelton_executor_slots", "Jobs that the living processes can run at once."),
	"notified": newGauge("pelton_notification_queue_ratio",
		"How full the server's queue of notifications is, from 0 to 1; a session that listens and does not read fills it."),
	"ahead": newGauge("pelton_partitions_ahead", "Partitions made whose time has yet to come.", "table"),
	"left":  newGauge("pelton_partitions_left_seconds", "Time until rows fall into the open-ended partition; below 0: they do.", "table"),
	"duty": newAge("pelton_duty_late_seconds",
		"How long a duty of the scheduler's has been late, whoever should do it; 0: it is done in time.", "duty"),
	"lag": newGauge("pelton_mark_lag", "Positions drawn from the line's sequence that are not settled yet.", "table"),
	"passed": newGauge("pelton_mark_passed_writers",
		"Open transactions that the low-water mark has passed, because they write and stay open.", "table"),

	"runs":       newGauge("pelton_flow_runs", "Live runs of flows; at most 100,000 are counted.", "status"),
	"nodes":      newGauge("pelton_flow_nodes", "Nodes of live runs; at most 100,000 are counted.", "status"),
	"reports":    newGauge("pelton_flow_reports_waiting", "Things that are to happen to runs and have not yet; at most 100,000 are counted."),
	"report_age": newAge("pelton_flow_oldest_report_age_seconds", "How long the oldest of these has waited; 0: none."),
	"schedule_lag": newAge("pelton_schedule_lag_seconds",
		"How late the firer is: for how long the first schedule has been due; 0: none is. owner: whose code alone can fire it.", "owner"),
	"schedules": newGauge("pelton_schedules", "Schedules, paused ones among them; estimated beyond 100,000."),
	"backfills": newGauge("pelton_backfills_live", "Backfills that have not ended."),

	"database": newGauge("pelton_database_size_bytes", "Size of the whole database on disk."),
	"size":     newGauge("pelton_table_size_bytes", "Size of tables with their indexes, by family.", "family"),
}

// liveStatuses are those that a live run may have.
func liveStatuses() []string {
	return slices.DeleteFunc(flow.RunStatuses(), func(s string) bool { return slices.Contains(flow.EndStatuses(), s) })
}

// nodeStatuses are those of nodes that have ended, and of some that have not.
func nodeStatuses() []string {
	return append(flow.NodeEndStatuses(), "READY", "QUEUED", "RUNNING", "KILLING")
}
