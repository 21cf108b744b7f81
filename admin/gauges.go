package admin

import (
	"errors"

	"github.com/peltonq/pelton/admin/internal/page"
)

// errNoReading says that the database could not be read.
var errNoReading = errors.New("the database did not answer in time")

// queueGauges is what the last reading of the database says of queues; it is at most as old as a scrape's.
func (m *Metrics) queueGauges() (page.Gauges, error) {
	families, err := m.gauges.Gather()
	if err != nil {
		return page.Gauges{}, err
	}
	all := page.Gauges{Queues: map[string]page.QueueGauges{}}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			value, queue := metric.GetGauge().GetValue(), ""
			for _, label := range metric.GetLabel() {
				if label.GetName() == "queue" {
					queue = label.GetValue()
				}
			}
			of := all.Queues[queue]
			switch family.GetName() {
			case "pelton_up":
				if value == 0 {
					return page.Gauges{}, errNoReading
				}
				continue
			case "pelton_jobs_ready":
				of.Ready = value
			case "pelton_jobs_running":
				of.Running = value
			case "pelton_oldest_ready_age_seconds":
				of.Oldest = value
			case "pelton_jobs_scheduled":
				all.Scheduled = value
				continue
			case "pelton_jobs_parked":
				all.Pending = value
				continue
			case "pelton_dead_letters":
				all.Dead = value
				continue
			case "pelton_executors_alive":
				all.Executors = value
				continue
			default:
				continue
			}
			all.Queues[queue] = of
		}
	}
	return all, nil
}
