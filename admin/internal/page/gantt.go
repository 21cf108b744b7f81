package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// barsShown is how many bars a page's chart has.
const barsShown = 100

// ganttPage is the chart of when nodes ran.
type ganttPage struct {
	Run    runRow
	Bars   []ganttBar
	Ticks  []ganttTick
	Order  string
	Status string
	Search string
	Live   string
	Pager  pager
}

type ganttBar struct {
	nodeLine

	Wait, X, W float64 // percent of the whole: where it was queued, and began, and how long it ran
}

type ganttTick struct {
	X    float64
	Text string
}

func (p *Page) showGantt(w http.ResponseWriter, r *http.Request) error {
	run, err := p.seenRun(r)
	if err != nil {
		return err
	}
	filter, err := nodeFilterOf(r)
	if err != nil {
		return err
	}
	var data *ganttPage
	err = p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		data, err = p.gantt(ctx, tx, run, filter)
		return err
	})
	if err != nil {
		return err
	}
	data.Pager = page(r, data.Pager.Next)
	return p.render(w, r, "gantt", fmt.Sprintf("Gantt of run %d", run.ID), data)
}

func (p *Page) ganttPart(r *http.Request) (part, error) {
	filter, err := nodeFilterOf(r)
	if err != nil {
		return part{}, err
	}
	q, err := p.runPart(r, part{Key: r.URL.RequestURI(), Name: "ganttBars"}, func(ctx context.Context, tx pgx.Tx, run runRow) (any, error) {
		return p.gantt(ctx, tx, run, filter)
	})
	q.Page = "gantt"
	return q, err
}

// gantt reads a piece of the chart: the nodes that began, as many as are shown.
func (p *Page) gantt(ctx context.Context, tx pgx.Tx, run runRow, f nodeFilter) (*ganttPage, error) {
	data := &ganttPage{Run: run, Order: f.order, Status: f.status, Search: f.search}
	list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[nodeLine], "flow_bars",
		run.ID, f.statuses, f.search, max(f.after, 0), barsShown+1, f.order == "longest")
	if err != nil {
		return nil, err
	}
	if len(list) > barsShown {
		list = list[:barsShown]
		data.Pager.Next = strconv.Itoa(max(f.after, 0) + barsShown)
	}
	if run.Live() {
		query := url.Values{"status": {f.status}, "q": {f.search}, "order": {f.order}}
		if f.after >= 0 {
			query.Set("after", strconv.Itoa(f.after))
		}
		data.Live = "/live/runs/" + strconv.FormatInt(run.ID, 10) + "/gantt?" + query.Encode()
	}
	begin, end := run.CreatedAt, time.Now()
	if run.StartedAt != nil {
		begin = *run.StartedAt
	}
	if run.EndedAt != nil {
		end = *run.EndedAt
	}
	whole := max(end.Sub(begin).Seconds(), 0.001)
	at := func(t time.Time) float64 { return min(100, max(0, 100*t.Sub(begin).Seconds()/whole)) }
	for _, n := range list {
		until := end
		if n.EndedAt != nil {
			until = *n.EndedAt
		}
		bar := ganttBar{nodeLine: n, X: at(*n.StartedAt)}
		bar.W, bar.Wait = max(0.3, at(until)-bar.X), bar.X
		if n.QueuedAt != nil {
			bar.Wait = min(bar.X, at(*n.QueuedAt))
		}
		data.Bars = append(data.Bars, bar)
	}
	for i := range 5 {
		data.Ticks = append(data.Ticks, ganttTick{float64(i) * 25, duration(time.Duration(whole * float64(i) / 4 * float64(time.Second)).Round(time.Millisecond))})
	}
	return data, nil
}

// Queued is how long the bar's wait is.
func (b ganttBar) Queued() float64 { return b.X - b.Wait }

// Anchor is where a tick's text is held.
func (t ganttTick) Anchor() string {
	switch t.X {
	case 0:
		return "start"
	case 100:
		return "end"
	}
	return "middle"
}
