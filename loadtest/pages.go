package loadtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// PagesConfig says what [Pages] does. The zero value takes about five minutes; 20 million jobs take some more, and 15 GB of disk.
type PagesConfig struct {
	// Finished is how many jobs have ended, over the last seven days. Defaults to 1,000,000; at most 100,000,000.
	Finished int
	// Ready is how many jobs wait in the line. Defaults to 100,000; at most 10,000,000.
	Ready int
	// Nodes is how many nodes the large flow has, whose graph is drawn. Defaults to 4,000; at most 100,000.
	Nodes int
	// LogBytes is how much one job has printed. Defaults to 100 MB; at most 1 GB.
	LogBytes int
	// Reads is how often each page is asked for; the first two do not count. Defaults to 20.
	Reads int
	// Viewers is how many look at the overview, live. Defaults to 10.
	Viewers int
	// For is how long a round with them is measured, and as long one without. Defaults to 30 s.
	For time.Duration
	// Rounds is how many rounds with viewers there are, each between two without. Defaults to 5; at most 1,000.
	Rounds int
	// PGBin and Logger as in [DrainConfig].
	PGBin  string
	Logger *slog.Logger

	// Serve starts a Pelton server on a database, in a process of its own that works the queue "live". Required.
	Serve func(ctx context.Context, databaseURL string) (PageServer, error)

	noSync bool // in tests
}

// PageServer is a process that serves pages.
type PageServer struct {
	URL  string
	CPU  func() (time.Duration, error) // processor time of the process so far
	Stop func() error
}

// PagesReport is the result of [Pages].
type PagesReport struct {
	Scenario string     `json:"scenario"`
	Postgres string     `json:"postgres"`
	Finished int        `json:"finished"`
	Ready    int        `json:"ready"`
	Nodes    int        `json:"nodes"`
	LogBytes int        `json:"log_bytes"`
	Pages    []PageTime `json:"pages"` // the slowest first
	// Pieces are pieces of searches that go on, which the page's script asks for in the background: each takes 0.4 s by design.
	Pieces []PageTime `json:"search_pieces"`
	// Downloads are whole logs, which take as long as their bytes do.
	Downloads []PageTime `json:"downloads"`
	Slowest   float64    `json:"slowest_median_ms"`
	// Live are the times from when a line of a log was printed until a viewer had it.
	LiveP50 float64     `json:"live_p50_ms"`
	LiveMax float64     `json:"live_max_ms"`
	Viewers int         `json:"viewers"` // of the overview
	Load    ViewersLoad `json:"viewers_load"`
}

// ViewersLoad is the processor time that viewers add, of the server and of PostgreSQL, in percent of one processor: of each round with viewers, the difference
// to the mean of the rounds before and after it.
type ViewersLoad struct {
	Rounds   int     `json:"rounds"`
	Alone    float64 `json:"alone_percent"` // what both take without viewers: the median
	Median   float64 `json:"median_percent"`
	Least    float64 `json:"least_percent"`
	Most     float64 `json:"most_percent"`
	Server   float64 `json:"server_percent"`   // the server's part: the median
	Postgres float64 `json:"postgres_percent"` // PostgreSQL's part: the median
}

// PageTime is how long a page takes, from the request until the last byte.
type PageTime struct {
	Page   string  `json:"page"` // a path, where * stands for an id or a name
	Asked  string  `json:"asked"`
	Status int     `json:"status"`
	Bytes  int     `json:"bytes"`
	Median float64 `json:"median_ms"`
	P95    float64 `json:"p95_ms"`
}

func (c PagesConfig) withDefaults() PagesConfig {
	setDefault(&c.Finished, 1_000_000)
	setDefault(&c.Ready, 100_000)
	setDefault(&c.Nodes, 4000)
	setDefault(&c.LogBytes, 100_000_000)
	setDefault(&c.Reads, 20)
	setDefault(&c.Viewers, 10)
	setDefault(&c.Rounds, 5)
	c.For = cmp.Or(c.For, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func (c PagesConfig) validate() error {
	var faults []error
	within := func(what string, value, least, most int) {
		if value < least || value > most {
			faults = append(faults, fmt.Errorf("%s: %d is not between %d and %d", what, value, least, most))
		}
	}
	within("finished", c.Finished, 1000, 100_000_000)
	within("ready", c.Ready, 1, 10_000_000)
	within("nodes", c.Nodes, 1, 100_000)
	within("log bytes", c.LogBytes, 1, 1_000_000_000)
	within("reads", c.Reads, 3, 10_000)
	within("viewers", c.Viewers, 1, 100)
	within("rounds", c.Rounds, 1, 1000)
	if c.For < time.Second {
		faults = append(faults, fmt.Errorf("for: %v is below 1s", c.For))
	}
	if c.Serve == nil {
		faults = append(faults, errors.New("no way to start a server"))
	}
	return errors.Join(faults...)
}

// Pages measures the page and the API of a server whose database holds many jobs: every page that links lead to, how soon a live log
// shows a line, and what viewers of the overview cost.
func Pages(ctx context.Context, config PagesConfig, out io.Writer) (report PagesReport, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return PagesReport{}, &ConfigError{fmt.Errorf("pages: %w", err)}
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("pages: %w", err)
		}
	}()
	s, err := startServer(ctx, serverOptions{binDir: config.PGBin, noSync: config.noSync})
	if err != nil {
		return PagesReport{}, err
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	if err := s.exec(ctx, "CREATE DATABASE pages"); err != nil {
		return PagesReport{}, err
	}
	dsn := s.cluster.DSN("pages")
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return PagesReport{}, fmt.Errorf("connect: %w", err)
	}
	defer pool.Close()
	filled, err := fillPages(ctx, pool, dsn, config, out)
	if err != nil {
		return PagesReport{}, fmt.Errorf("fill the database: %w", err)
	}
	server, err := config.Serve(ctx, dsn)
	if err != nil {
		return PagesReport{}, fmt.Errorf("start the server: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	v := &visitor{base: server.URL, reads: config.Reads}
	report = PagesReport{
		Scenario: "pages", Postgres: s.cluster.Version(), Finished: config.Finished, Ready: config.Ready, Nodes: config.Nodes,
		LogBytes: config.LogBytes, Viewers: config.Viewers,
	}
	times, err := v.visitAll(ctx, filled.paths())
	if err != nil {
		return PagesReport{}, err
	}
	report.split(times)
	report.Slowest = report.Pages[0].Median
	if err := report.table(out); err != nil {
		return PagesReport{}, err
	}
	if report.LiveP50, report.LiveMax, err = v.liveLog(ctx, pool); err != nil {
		return PagesReport{}, fmt.Errorf("live log: %w", err)
	}
	if report.Load, err = s.viewersLoad(ctx, v, server, config); err != nil {
		return PagesReport{}, fmt.Errorf("viewers of the overview: %w", err)
	}
	l := report.Load
	_, err = fmt.Fprintf(out, "a line of a live log is shown after %.0f ms, at most %.0f\n"+
		"%d viewers of the overview add %.2f %% of one processor (%.2f to %.2f in %d rounds; the server %.2f, PostgreSQL %.2f); without them both take %.2f %%\n",
		report.LiveP50, report.LiveMax, report.Viewers, l.Median, l.Least, l.Most, l.Rounds, l.Server, l.Postgres, l.Alone)
	return report, err
}

// split puts what was visited where it belongs, the slowest first.
func (r *PagesReport) split(times []PageTime) {
	slices.SortStableFunc(times, func(a, b PageTime) int { return cmp.Compare(b.Median, a.Median) })
	for _, t := range times {
		path, query, _ := strings.Cut(t.Page, "?")
		switch {
		case slices.Contains(strings.Split(query, "&"), "further"):
			r.Pieces = append(r.Pieces, t)
		case strings.HasSuffix(path, "/download"):
			r.Downloads = append(r.Downloads, t)
		default:
			r.Pages = append(r.Pages, t)
		}
	}
}

func (r *PagesReport) table(out io.Writer) error {
	fmt.Fprintf(out, "%d jobs ended, %d ready, a flow of %d nodes, a log of %d bytes\n", r.Finished, r.Ready, r.Nodes, r.LogBytes)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	list := func(what string, times []PageTime) {
		fmt.Fprintf(w, "median ms\tP95 ms\tbytes\tstatus\t%s\n", what)
		for _, p := range times {
			fmt.Fprintf(w, "%.1f\t%.1f\t%d\t%d\t%s\n", p.Median, p.P95, p.Bytes, p.Status, p.Asked)
		}
	}
	list("page", r.Pages)
	if len(r.Pieces) > 0 {
		list("piece of a search that goes on in the background, 0.4 s by design", r.Pieces)
	}
	if len(r.Downloads) > 0 {
		list("download", r.Downloads)
	}
	return w.Flush()
}
