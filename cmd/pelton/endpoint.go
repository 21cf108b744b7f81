package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/periodic"
)

// endpointStop is how long requests under way may go on when the program stops.
const endpointStop = 2 * time.Second

// endpoint is the health and metrics server of a long-running command. Without an address there is none, and nothing is measured.
type endpoint struct {
	metrics *admin.Metrics
	server  *admin.Server
	access  *access.Store // nil: no page
}

// newEndpoint makes what observes clients, before there are any.
func (a *app) newEndpoint(pool *pgxpool.Pool, s serving) (*endpoint, error) {
	if s.listen == "" {
		return &endpoint{}, nil
	}
	log := a.logger(levelServe)
	config := admin.MetricsConfig{Schema: a.schemaName(), Logger: log}
	if !s.duties {
		config.LostEvery = -1 // the schedulers look
	}
	metrics, err := admin.NewMetrics(pool, config)
	if err != nil {
		return nil, err
	}
	return &endpoint{metrics: metrics}, nil
}

// clients are what the page and the API operate with, on a pool of their own.
type clients struct {
	pool      *pgxpool.Pool
	jobs      *jobs.Client
	flows     *flow.Client
	schedules *periodic.Client
	secrets   *secret.Client
}

// prepare makes the server, which does not listen yet. An error is about the command line.
func (e *endpoint) prepare(pool *pgxpool.Pool, a *app, s serving, by clients) error {
	if e.metrics == nil {
		return nil
	}
	return e.listenOn(pool, a, s, by, s.listen)
}

func (e *endpoint) listenOn(pool *pgxpool.Pool, a *app, s serving, by clients, address string) (err error) {
	config := admin.Config{
		Pool: pool, Pages: by.pool, Metrics: e.metrics, Schema: a.schemaName(), Logger: a.logger(levelServe),
		Jobs: by.jobs, Flows: by.flows, Schedules: by.schedules, Secrets: by.secrets,
		Private: a.tracedRequests(), Listen: address, InsecureListen: s.insecure,
	}
	if err := s.access.configure(a, by.pool, &config); err != nil {
		return err
	}
	e.access = config.Access
	e.server, err = admin.NewServer(config)
	return err
}

// observer is told what the clients do.
type observer interface {
	jobs.Observer
	flow.StepObserver
	periodic.Observer
}

// observer is nil if nobody asks.
func (e *endpoint) observer() observer {
	if e.metrics == nil {
		return nil
	}
	return e.metrics
}

// start listens where it was told to, or, if that port is taken and nobody asked for it, on any.
func (e *endpoint) start(ctx context.Context, pool *pgxpool.Pool, a *app, s serving, by clients) error {
	if e.server == nil {
		return nil
	}
	err := e.server.Start(ctx)
	if errors.Is(err, syscall.EADDRINUSE) && s.fallback {
		host, _, splitErr := net.SplitHostPort(s.listen)
		if splitErr != nil {
			return usagef("--listen %q: %w", s.listen, splitErr)
		}
		a.logger(levelServe).WarnContext(ctx, "the port is taken; the endpoint is elsewhere", "wanted", s.listen)
		if err := e.listenOn(pool, a, s, by, net.JoinHostPort(host, "0")); err != nil {
			return err
		}
		err = e.server.Start(ctx)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("endpoint: %s is taken by another program; choose another address with --listen", s.listen)
	case err != nil:
		return cmp.Or(explainListen(err), fmt.Errorf("endpoint: %w", err))
	}
	s.access.tell(ctx, a, e.access, e.server.OnlyHere())
	return nil
}

// ready says that the client has started.
func (e *endpoint) ready() {
	if e.server != nil {
		e.server.SetReady()
	}
}

// stopping says that the client stops.
func (e *endpoint) stopping() {
	if e.server != nil {
		e.server.SetNotReady("the client is stopping")
	}
}

func (e *endpoint) failed() <-chan error {
	if e.server == nil {
		return nil
	}
	return e.server.Failed()
}

func (e *endpoint) url() string {
	if e.server == nil {
		return ""
	}
	return e.server.URL()
}

// close lets requests end for a moment and waits for the server.
func (e *endpoint) close(ctx context.Context) error {
	if e.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endpointStop)
	defer cancel()
	return e.server.Stop(ctx)
}
