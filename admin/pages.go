package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/api"
	"github.com/peltonq/pelton/admin/internal/look"
	"github.com/peltonq/pelton/admin/internal/page"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/schema"
)

const (
	// readyTimeout is how long /readyz waits for the database.
	readyTimeout = 2 * time.Second
	// readyKeep is how long its answer serves further requests.
	readyKeep = time.Second
	// scrapesAtOnce bounds the requests for /metrics under way; further ones get 503.
	scrapesAtOnce = 10
)

// routes are all that is answered. What is in private is for actors only (access.FromContext), and checks their roles itself; own: only
// this machine can reach the server.
func (s *Server) routes(own bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") })
	metrics := promhttp.InstrumentMetricHandler(s.config.Metrics.registry,
		promhttp.HandlerFor(s.config.Metrics.registry, promhttp.HandlerOpts{
			ErrorLog: promLog{s}, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesAtOnce,
		}))
	if s.guard == nil {
		mux.Handle("GET /metrics", metrics)
		mux.Handle("GET /readyz", s.ready(func(*http.Request) bool { return true }))
		mux.HandleFunc("GET /{$}", s.index)
		return securityHeaders(mux)
	}
	shown := own && !s.config.BehindProxy || s.config.InsecureListen
	if !shown {
		metrics = s.guard.Authenticate(s.guard.Require(access.Viewer, "")(metrics))
	}
	mux.Handle("GET /metrics", metrics)
	mux.Handle("GET /readyz", s.ready(func(r *http.Request) bool {
		actor, err := s.guard.Identify(r)
		return shown || err == nil && actor.May(access.Viewer, "")
	}))
	s.routeLogin(mux)
	pages := http.NewServeMux()
	s.routePrivate(pages)
	var private http.Handler = pages
	if s.config.Private != nil {
		private = s.config.Private(pages)
	}
	mux.Handle("/", s.guard.Authenticate(private))
	return securityHeaders(s.guard.Protect(mux))
}

// routePrivate adds what is for actors only.
func (s *Server) routePrivate(mux *http.ServeMux) {
	c, reads := s.config, look.NewSlots()
	secrets := cmp.Or(c.Secrets, secret.NewClient(c.Pages, c.Jobs, nil))
	s.api = api.Mount(mux, api.Config{
		Pool: c.Pages, Access: c.Access, Guard: s.guard, Jobs: c.Jobs, Flows: c.Flows, Schedules: c.Schedules, Secrets: secrets, Alerts: s.alerts, Logger: c.Logger,
		Reads: reads,
	})
	mux.HandleFunc("GET /whoami", func(w http.ResponseWriter, r *http.Request) {
		actor, _ := access.FromContext(r.Context())
		text(w, http.StatusOK, actor.Name)
	})
	s.page = page.Mount(mux, page.Config{
		Pool: c.Pages, Schema: s.schemaName(), Jobs: c.Jobs, Flows: c.Flows, Schedules: c.Schedules, Secrets: secrets, Alerts: s.alerts,
		Access: c.Access, Guard: s.guard, Gauges: c.Metrics.queueGauges, Logger: c.Logger, Reads: reads,
	})
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	text(w, http.StatusOK, "Pelton\n\n/metrics  for Prometheus\n/healthz  the process answers\n/readyz   the database answers, and this process can do its work")
}

// ready tells whether this process can do its work, and those who may know, why not.
func (s *Server) ready(mayKnow func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := s.notReady(r.Context())
		switch {
		case why == "":
			text(w, http.StatusOK, "ok")
		case mayKnow(r):
			text(w, http.StatusServiceUnavailable, why)
		default:
			text(w, http.StatusServiceUnavailable, "not ready")
		}
	})
}

// notReady is why this process cannot do its work; empty: it can.
func (s *Server) notReady(ctx context.Context) string {
	if reason := s.state.Load(); reason != nil {
		return *reason
	}
	if why := s.databaseFault(ctx); why != "" {
		return why
	}
	return s.config.Metrics.duties.stuck(time.Now())
}

// asked is what the database said when it was last asked for readiness.
type asked struct {
	mu    sync.Mutex // held while asking: who comes meanwhile gets the same answer
	until time.Time  // how long it serves
	why   string
}

// databaseFault is why the database is of no use now; empty: it is. It is asked by one request at a time, for at most readyTimeout, and the answer
// serves all that come within readyKeep of it. Who asks may be gone before the answer is there; others wait for it too.
func (s *Server) databaseFault(ctx context.Context) string {
	a := &s.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.until) {
		return a.why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	a.why = ""
	if err := schema.Check(ctx, s.config.Pool, s.schemaName()); err != nil {
		a.why = err.Error()
	}
	a.until = time.Now().Add(readyKeep)
	return a.why
}

func (s *Server) schemaName() string {
	if s.config.Schema == "" {
		return schema.DefaultName
	}
	return s.config.Schema
}

// text answers with a line.
func text(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, line) // nobody is left to tell
}

// promLog writes what the metrics handler complains of to the server's log.
type promLog struct{ s *Server }

// Println implements promhttp.Logger.
func (l promLog) Println(v ...any) {
	l.s.config.Logger.Warn("metrics: scrape", "error", fmt.Sprint(v...))
}
