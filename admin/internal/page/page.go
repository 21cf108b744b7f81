package page

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/internal/look"
	"github.com/peltonq/pelton/admin/internal/once"
	"github.com/peltonq/pelton/admin/internal/upload"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/periodic"
)

// Config says what the pages show and act on. All fields are required but Logger.
type Config struct {
	Pool      *pgxpool.Pool
	Schema    string
	Jobs      *jobs.Client
	Flows     *flow.Client
	Schedules *periodic.Client
	Secrets   *secret.Client
	Alerts    *alert.Store
	Access    *access.Store
	Guard     *access.Guard
	Gauges    func() (Gauges, error) // the newest reading of what waits and runs

	// Reads bound what is read at once.
	Reads *look.Slots

	// Logger is told of what went wrong inside. Defaults to slog's default logger.
	Logger *slog.Logger
}

// Page is all pages of a server. Make it with Mount.
type Page struct {
	config Config
	mux    *http.ServeMux
	rooms  []room
	sql    *sqlfile.Set // look's statements
	once   *once.Store  // of forms that are done once
	parts  *http.ServeMux
	hub    *hub
	slots  *look.Slots // of reads at once

	uploads upload.Gate

	chartCache cache[charts]
	routes     []string // patterns of all routes, for tests
}

// Mount adds the pages to a mux whose requests are authenticated. Close ends what is live.
func Mount(mux *http.ServeMux, config Config) *Page {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	p := &Page{
		config: config, mux: mux, rooms: rooms, sql: look.Load(config.Schema), once: once.New(config.Pool, config.Schema), parts: http.NewServeMux(),
		slots: config.Reads, chartCache: cache[charts]{keep: chartsKeep},
	}
	p.hub = newHub(config.Logger)
	p.get("/", anybody, func(http.ResponseWriter, *http.Request) error { return errNoPage })
	p.get("/live", anybody, p.serveLive)
	for _, room := range rooms {
		room.Mount(p)
	}
	return p
}

// Routes are the patterns of all routes, for tests.
func (p *Page) Routes() []string { return p.routes }

// End ends all streams: a server that shuts down waits for them.
func (p *Page) End() { p.hub.shut() }

// Close is End, and waits until nothing of the pages runs any more.
func (p *Page) Close() {
	p.hub.shut()
	p.hub.wait.Wait()
}

// actor is who asks.
func actor(ctx context.Context) access.Actor {
	a, _ := access.FromContext(ctx)
	return a
}
