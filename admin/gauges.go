package admin

import (
	"errors"
	"sync"
	"time"

	"github.com/peltonq/pelton/admin/internal/page"
)

// errNoReading says that the database could not be read.
var errNoReading = errors.New("the database did not answer in time")

// staleFor is how many times as long as a reading is kept pages may show it while a new one is made: a reading of a long line takes longer than a
// page may.
const staleFor = 12

// pageGauges is what pages show of the last reading.
type pageGauges struct {
	mu      sync.Mutex
	at      time.Time // of the reading
	gauges  page.Gauges
	reading bool
	running sync.WaitGroup // a reading in the background
}

// queueGauges is what the last reading of the database says of queues. One that is older than a scrape's would be is shown once more, while a new one
// is made.
func (m *Metrics) queueGauges() (page.Gauges, error) {
	p := &m.shown
	p.mu.Lock()
	defer p.mu.Unlock()
	age := time.Since(p.at)
	switch {
	case age < m.keep:
	case age < staleFor*m.keep:
		if !p.reading {
			p.reading = true
			p.running.Go(m.readInBackground)
		}
	default:
		gauges, err := m.readGauges()
		if err != nil {
			return page.Gauges{}, err
		}
		p.gauges, p.at = gauges, time.Now()
	}
	return p.gauges, nil
}

func (m *Metrics) readInBackground() {
	gauges, err := m.readGauges()
	p := &m.shown
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = false
	if err == nil { // else the next ones try, and in the end it is too old
		p.gauges, p.at = gauges, time.Now()
	}
}

// readGauges reads them, or takes what was read for a scrape.
func (m *Metrics) readGauges() (page.Gauges, error) {
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
				all.Dead += value // of each queue
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
