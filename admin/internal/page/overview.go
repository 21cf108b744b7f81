package page

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
)

var overviewRoom = room{Name: "Overview", Path: "/", Sees: access.Actor.Anything, Mount: func(p *Page) {
	p.get("/{$}", checksItself, p.showOverview)
	p.live("/live/mine", checksItself, p.minePart)
	p.live("/live/overview", viewer, func(r *http.Request) (part, error) {
		w := windowOf(r)
		return part{
			Key: "overview " + w.Name, Page: "overview", Name: "figures", Every: 3 * time.Second,
			Load: func(ctx context.Context) (any, error) { return p.overview(ctx, w) },
		}, nil
	})
}}

// Gauges are what waits and runs.
type Gauges struct {
	Queues                              map[string]QueueGauges
	Scheduled, Pending, Dead, Executors float64

	Reading bool // the first reading is being made: there are none yet
}

// QueueGauges are those of a queue.
type QueueGauges struct {
	Ready, Running float64
	Oldest         float64 // seconds that the oldest job in the line has waited
}

// window is a time that charts show.
type window struct {
	Name string
	Long time.Duration
	Step time.Duration
}

var windows = []window{{"hour", time.Hour, time.Minute}, {"day", 24 * time.Hour, 20 * time.Minute}}

// windowOf is the window that a request asks for.
func windowOf(r *http.Request) window {
	for _, w := range windows {
		if w.Name == r.URL.Query().Get("window") {
			return w
		}
	}
	return windows[0]
}

// history is how the runs of a queue ended in a window, step by step.
type history struct {
	Completed, Failed, Cancelled, Discarded []float64
	Waits                                   [][]int64
}

func newHistory(steps int) *history {
	zero := func() []float64 { return make([]float64, steps) }
	return &history{zero(), zero(), zero(), zero(), make([][]int64, steps)}
}

func (h *history) add(other *history) {
	for i := range h.Completed {
		h.Completed[i] += other.Completed[i]
		h.Failed[i] += other.Failed[i]
		h.Cancelled[i] += other.Cancelled[i]
		h.Discarded[i] += other.Discarded[i]
		h.Waits[i] = addCounts(h.Waits[i], other.Waits[i])
	}
}

func (h *history) layers() []layer {
	return []layer{
		{"good", "completed", h.Completed}, {"off", "cancelled", h.Cancelled}, {"warns", "failed, to be retried", h.Failed}, {"bad", "discarded", h.Discarded},
	}
}

// p95 is the wait of 95 of 100 runs, in all and step by step, in seconds.
func (h *history) p95() (all float64, known bool, steps []float64) {
	var total []int64
	for _, counts := range h.Waits {
		value, _ := percentile(0.95, counts)
		steps = append(steps, value)
		total = addCounts(total, counts)
	}
	all, known = percentile(0.95, total)
	return all, known, steps
}

// charts are the histories of all queues in a window, and what fires.
type charts struct {
	From, To time.Time
	Queues   map[string]*history
	Firing   []firingRule
	Standing standing
}

// standing is how flows and schedules stand, and which queues are worked.
type standing struct {
	LiveRuns, FailedRuns, BadSchedules int64
	Ticks                              []nextTick // the next ones
	Duties                             []undone   // those that are late, or fail
	worked                             []string   // queues of which live executors take jobs
	paused                             []string   // queues of which none takes any; jobs.AllQueues: all
}

// undone is a duty of the scheduler's that is late, or at which a process fails.
type undone struct {
	Duty        string
	Since       time.Time
	By, Problem *string // who fails, and why; nil: nobody does it
	Done        bool    // by others, in time
}

// nextTick is when a schedule fires next.
type nextTick struct {
	Schedule string
	At       time.Time
}

// Path is where the schedule is shown.
func (t nextTick) Path() string { return schedulePath(t.Schedule) }

func (p *Page) standing(ctx context.Context, tx pgx.Tx) (s standing, err error) {
	if err = tx.QueryRow(ctx, p.sql.Get("overview_flows")).Scan(&s.LiveRuns, &s.FailedRuns); err != nil {
		return s, err
	}
	if err = tx.QueryRow(ctx, p.sql.Get("overview_bad_ticks")).Scan(&s.BadSchedules); err != nil {
		return s, err
	}
	if s.Ticks, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[nextTick], "overview_ticks"); err != nil {
		return s, err
	}
	if s.Duties, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[undone], "overview_duties"); err != nil {
		return s, err
	}
	if s.worked, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowTo[string], "worked_queues"); err != nil {
		return s, err
	}
	s.paused, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowTo[string], "paused_queues")
	return s, err
}

// AllPaused tells whether all queues are paused together.
func (s standing) AllPaused() bool { return slices.Contains(s.paused, jobs.AllQueues) }

// chartsKeep is how long charts are kept at least: their table changes once a minute, and alerts are evaluated every 15 seconds.
const chartsKeep = 10 * time.Second

func (p *Page) charts(ctx context.Context, w window) (charts, error) {
	return p.chartCache.get(ctx, w.Name, func(ctx context.Context) (charts, error) {
		return p.readCharts(access.WithActor(ctx, access.Actor{}), w, time.Now()) // others may wait for it, so it is not within one user's share of reads
	})
}

func (p *Page) readCharts(ctx context.Context, w window, now time.Time) (charts, error) {
	to := now.UTC().Truncate(time.Minute).Add(time.Minute)
	steps := int(w.Long / w.Step)
	found := charts{From: to.Add(-w.Long), To: to, Queues: map[string]*history{}}
	type row struct {
		Queue                                   string
		Step                                    int32
		Completed, Failed, Cancelled, Discarded int64
		Waits                                   []int64
	}
	err := p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if found.Standing, err = p.standing(ctx, tx); err != nil {
			return err
		}
		rows, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[row], "queue_charts", found.From, found.To, int32(w.Step/time.Second))
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.Step < 0 || int(r.Step) >= steps {
				continue
			}
			h, ok := found.Queues[r.Queue]
			if !ok {
				h = newHistory(steps)
				found.Queues[r.Queue] = h
			}
			h.Completed[r.Step], h.Failed[r.Step] = float64(r.Completed), float64(r.Failed)
			h.Cancelled[r.Step], h.Discarded[r.Step], h.Waits[r.Step] = float64(r.Cancelled), float64(r.Discarded), r.Waits
		}
		found.Firing, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[firingRule], "alerts_firing")
		return err
	})
	return found, err
}

// overview is what the overview shows.
type overview struct {
	Gauges

	Firing         []firingRule
	Standing       standing
	Window         window
	Windows        []window
	Ready, Running float64
	Ended, Failed  float64
	Lines          []overviewLine
	LeftOut        int // how many queues have no line
	Throughput     template.HTML
	Waits          template.HTML
	Layers         []layer
}

// firingRule is a rule of alerts that fires.
type firingRule struct {
	Rule     string
	Subjects int32
}

// linesShown bounds the table of queues: the busiest are shown.
const linesShown = 200

type overviewLine struct {
	Queue string
	QueueGauges

	Rate   float64 // runs that ended in a minute, of the last five whole ones
	Ended  float64 // in the window
	Failed float64
	P95    float64 // in seconds
	Waited bool    // there is a P95
	Spark  template.HTML
	Waits  template.HTML

	Unworked bool // jobs are ready, and no executor takes them
	Paused   bool // by itself, not with all
}

// Share is how many of a hundred runs failed.
func (l overviewLine) Share() float64 { return l.Failed / l.Ended * 100 }

func (p *Page) overview(ctx context.Context, w window) (overview, error) {
	gauges, err := p.config.Gauges()
	if err != nil {
		return overview{}, err
	}
	drawn, err := p.charts(ctx, w)
	if err != nil {
		return overview{}, err
	}
	o := overview{Gauges: gauges, Firing: drawn.Firing, Standing: drawn.Standing, Window: w, Windows: windows}
	names := map[string]bool{}
	for queue := range gauges.Queues {
		names[queue] = true
	}
	for queue := range drawn.Queues {
		names[queue] = true
	}
	for _, queue := range drawn.Standing.paused {
		if queue != jobs.AllQueues {
			names[queue] = true
		}
	}
	all, idle := newHistory(int(w.Long/w.Step)), newHistory(int(w.Long/w.Step))
	queues := slices.Collect(maps.Keys(names))
	busy := map[string]float64{}
	for _, queue := range queues {
		h, g := cmp.Or(drawn.Queues[queue], idle), gauges.Queues[queue]
		all.add(h)
		ended, failed := h.ended()
		o.Ready, o.Running, o.Ended, o.Failed = o.Ready+g.Ready, o.Running+g.Running, o.Ended+ended, o.Failed+failed
		busy[queue] = g.Ready + g.Running + ended
	}
	slices.SortFunc(queues, func(a, b string) int { return cmp.Or(cmp.Compare(busy[b], busy[a]), strings.Compare(a, b)) })
	o.LeftOut = max(0, len(queues)-linesShown)
	queues = queues[:len(queues)-o.LeftOut]
	slices.Sort(queues)
	for _, queue := range queues {
		h := cmp.Or(drawn.Queues[queue], idle)
		line := newLine(queue, gauges.Queues[queue], h, w)
		line.Paused = slices.Contains(drawn.Standing.paused, queue)
		line.Unworked = line.Ready > 0 && !slices.Contains(drawn.Standing.worked, queue)
		o.Lines = append(o.Lines, line)
	}
	o.Layers = all.layers()
	unit := fmt.Sprintf("runs in %s", duration(w.Step))
	o.Throughput = bars(fmt.Sprintf("Runs that ended in the last %s, by outcome: %.0f, of which %.0f failed", w.Name, o.Ended, o.Failed), o.Layers,
		func(most float64) string { return count(most) + " " + unit }, drawn.From, drawn.To)
	p95, _, steps := all.p95()
	o.Waits = bars(fmt.Sprintf("Wait of 95 of 100 runs for a slot in the last %s: %s", w.Name, seconds(p95)),
		[]layer{{"runs", "wait", steps}}, seconds, drawn.From, drawn.To)
	return o, nil
}

// ended is how many runs ended, and how many of these failed.
func (h *history) ended() (all, failed float64) {
	failed = sum(h.Failed) + sum(h.Discarded)
	return sum(h.Completed) + sum(h.Cancelled) + failed, failed
}

func newLine(queue string, gauges QueueGauges, h *history, w window) overviewLine {
	l := overviewLine{Queue: queue, QueueGauges: gauges}
	perStep := make([]float64, len(h.Completed))
	for i := range perStep {
		perStep[i] = h.Completed[i] + h.Failed[i] + h.Cancelled[i] + h.Discarded[i]
	}
	l.Ended, l.Failed = h.ended()
	if w.Step == time.Minute {
		l.Rate = sum(lasting(perStep[:len(perStep)-1], 5)) / 5
	} else {
		l.Rate = l.Ended / w.Long.Minutes()
	}
	var steps []float64
	l.P95, l.Waited, steps = h.p95()
	l.Spark = spark(fmt.Sprintf("%.0f runs ended, %.0f failed", l.Ended, l.Failed), h.layers())
	l.Waits = spark("wait of 95 of 100 runs, at most "+seconds(slices.Max(steps)), []layer{{"runs", "wait", steps}})
	return l
}

func seconds(s float64) string { return duration(time.Duration(s * float64(time.Second))) }

// showOverview shows who may see single projects only an overview of those.
func (p *Page) showOverview(w http.ResponseWriter, r *http.Request) error {
	if viewer(r.Context()) != nil {
		return p.showMine(w, r)
	}
	o, err := p.overview(r.Context(), windowOf(r))
	if err != nil {
		return err
	}
	return p.render(w, r, "overview", "Overview", o)
}
