package page

import (
	"context"
	"maps"
	"net/http"
	"slices"
)

var overviewRoom = room{Name: "Overview", Path: "/", Mount: func(p *Page) {
	p.get("/{$}", checksItself, p.showOverview)
	p.live("/live/overview", viewer, func(*http.Request) (part, error) {
		return part{Page: "overview", Name: "figures", Load: func(ctx context.Context) (any, error) { return p.overview(ctx) }}, nil
	})
}}

// Gauges are what waits and runs.
type Gauges struct {
	Queues                              map[string]QueueGauges
	Scheduled, Pending, Dead, Executors float64
}

// QueueGauges are those of a queue.
type QueueGauges struct {
	Ready, Running float64
	Oldest         float64 // seconds that the oldest job in the line has waited
}

// overview is what the overview shows.
type overview struct {
	Gauges

	Ready, Running float64
	Lines          []overviewLine
}

type overviewLine struct {
	Queue string
	QueueGauges
}

func (p *Page) overview(context.Context) (overview, error) {
	gauges, err := p.config.Gauges()
	if err != nil {
		return overview{}, err
	}
	o := overview{Gauges: gauges}
	for _, queue := range slices.Sorted(maps.Keys(gauges.Queues)) {
		g := gauges.Queues[queue]
		o.Ready, o.Running = o.Ready+g.Ready, o.Running+g.Running
		o.Lines = append(o.Lines, overviewLine{queue, g})
	}
	return o, nil
}

// showOverview shows who may see only some projects where those are.
func (p *Page) showOverview(w http.ResponseWriter, r *http.Request) error {
	if viewer(r.Context()) != nil {
		return p.render(w, r, "welcome", "Pelton", nil)
	}
	o, err := p.overview(r.Context())
	if err != nil {
		return err
	}
	return p.render(w, r, "overview", "Overview", o)
}
