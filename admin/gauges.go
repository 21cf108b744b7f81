package admin

import (
	"errors"
	"sync"
	"time"

	"github.com/peltonq/pelton/admin/internal/page"
)

// errNoReading says that the database could not be read.
var errNoReading = errors.New("the database did not answer in time")

const (
	// staleFor is how long pages may show a reading while a new one is made: a reading of a long line takes longer than a page may.
	staleFor = time.Minute
	// firstReading is how long a page waits for a reading where there is none to show. A small database is read in that time.
	firstReading = 20 * time.Millisecond
)

// pageGauges is what pages show of the last reading.
type pageGauges struct {
	mu      sync.Mutex
	at      time.Time // of the reading
	gauges  page.Gauges
	err     error         // of the last reading
	reading chan struct{} // closed when the reading under way has ended; nil: there is none
	running sync.WaitGroup
}

// queueGauges is what the last reading of the database says of queues. One that is older than a scrape's would be is shown once more, while a new one
// is made in the background; without one that is new enough there is nothing to show yet.
func (m *Metrics) queueGauges() (page.Gauges, error) {
	p := &m.shown
	gauges, fresh, reading := p.latest(m)
	if fresh {
		return gauges, nil
	}
	select {
	case <-reading:
	case <-time.After(firstReading):
	}
	if gauges, fresh, _ = p.latest(m); fresh {
		return gauges, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return page.Gauges{Reading: p.err == nil}, p.err
}

// latest is the last reading, whether it is new enough to be shown, and a reading under way, which it starts if the last one is old.
func (p *pageGauges) latest(m *Metrics) (gauges page.Gauges, fresh bool, reading <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age := time.Since(p.at)
	if age >= m.keep && p.reading == nil {
		done := make(chan struct{})
		p.reading = done
		p.running.Go(func() { m.readInBackground(done) })
	}
	return p.gauges, age < max(staleFor, m.keep), p.reading
}

func (m *Metrics) readInBackground(done chan<- struct{}) {
	gauges, err := m.readGauges()
	p := &m.shown
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading, p.err = nil, err
	if err == nil { // else the next ones try, and in the end it is too old
		p.gauges, p.at = gauges, time.Now()
	}
	close(done)
}

// readGauges reads them, or takes what was read for a scrape. Here each queue has its own, however many there are.
func (m *Metrics) readGauges() (page.Gauges, error) {
	values := m.database.queue()
	if values == nil {
		return page.Gauges{}, errNoReading
	}
	all := page.Gauges{Queues: map[string]page.QueueGauges{}}
	for key, value := range values {
		of := all.Queues[key.label]
		switch key.name {
		case "ready":
			of.Ready = value
		case "running":
			of.Running = value
		case "oldest":
			of.Oldest = value
		case "scheduled":
			all.Scheduled = value
			continue
		case "parked":
			all.Pending = value
			continue
		case "dead":
			all.Dead += value // of each queue
			continue
		case "alive":
			all.Executors = value
			continue
		default:
			continue
		}
		all.Queues[key.label] = of
	}
	return all, nil
}
