package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/peltonq/pelton/schema"
)

const (
	// readyTimeout is how long /readyz waits for the database.
	readyTimeout = 2 * time.Second
	// scrapesAtOnce bounds the requests for /metrics under way; further ones get 503.
	scrapesAtOnce = 10
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.InstrumentMetricHandler(s.config.Metrics.registry,
		promhttp.HandlerFor(s.config.Metrics.registry, promhttp.HandlerOpts{
			ErrorLog: promLog{s}, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesAtOnce,
		})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		text(w, http.StatusOK, "Pelton\n\n/metrics  for Prometheus\n/healthz  the process answers\n/readyz   the database answers, and the client has started")
	})
	return mux
}

// ready tells whether this process can do its work, and if not, why.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if reason := s.state.Load(); reason != nil {
		text(w, http.StatusServiceUnavailable, *reason)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := schema.Check(ctx, s.config.Pool, s.schemaName()); err != nil {
		text(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	text(w, http.StatusOK, "ok")
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
	w.Header().Set("X-Content-Type-Options", "nosniff")
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
