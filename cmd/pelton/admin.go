package main

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

// admin is what the endpoint shows, and who is told of claims and finishes for it.
type admin struct {
	observer jobs.Observer
	handler  http.Handler
}

// readyTimeout is how long /readyz waits for the database.
const readyTimeout = 2 * time.Second

func newAdmin(pool *pgxpool.Pool, name string) *admin {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := schema.Check(ctx, pool, name); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	return &admin{handler: mux}
}
