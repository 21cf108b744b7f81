package loadtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
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
	// For is how long their load is measured, and as long without them. Defaults to 30 s.
	For time.Duration
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
	Slowest  float64    `json:"slowest_median_ms"`
	// Live are the times from when a line of a log was printed until a viewer had it.
	LiveP50 float64 `json:"live_p50_ms"`
	LiveMax float64 `json:"live_max_ms"`
	// Load is the processor time that viewers of the overview add, of the server and of PostgreSQL, in percent of one processor.
	Viewers int     `json:"viewers"`
	Load    float64 `json:"viewers_load_percent"`
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
	if report.Pages, err = v.visitAll(ctx, filled.paths()); err != nil {
		return PagesReport{}, err
	}
	slices.SortStableFunc(report.Pages, func(a, b PageTime) int { return cmp.Compare(b.Median, a.Median) })
	report.Slowest = report.Pages[0].Median
	if report.LiveP50, report.LiveMax, err = v.liveLog(ctx, pool); err != nil {
		return PagesReport{}, fmt.Errorf("live log: %w", err)
	}
	if report.Load, err = s.viewersLoad(ctx, v, server, config); err != nil {
		return PagesReport{}, fmt.Errorf("viewers of the overview: %w", err)
	}
	return report, report.table(out)
}

func (r PagesReport) table(out io.Writer) error {
	fmt.Fprintf(out, "%d jobs ended, %d ready, a flow of %d nodes, a log of %d bytes\n", r.Finished, r.Ready, r.Nodes, r.LogBytes)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "median ms\tP95 ms\tbytes\tstatus\tpage")
	for _, p := range r.Pages {
		fmt.Fprintf(w, "%.1f\t%.1f\t%d\t%d\t%s\n", p.Median, p.P95, p.Bytes, p.Status, p.Asked)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "a line of a live log is shown after %.0f ms, at most %.0f; %d viewers of the overview add %.2f %% of a processor\n",
		r.LiveP50, r.LiveMax, r.Viewers, r.Load)
	return err
}
