package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"
)

// defaultListen is where the endpoint is unless told otherwise.
const defaultListen = "127.0.0.1:8080"

// endpoint is a running HTTP server. The zero value is none.
type endpoint struct {
	server *http.Server
	where  string
	failed chan error
	done   chan struct{}
}

// serveEndpoint listens where it was told to, or, if that port is taken and nobody asked for it, on any.
func (a *app) serveEndpoint(ctx context.Context, s serving, admin *admin) (*endpoint, error) {
	if s.listen == "" {
		return &endpoint{}, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.listen)
	if errors.Is(err, syscall.EADDRINUSE) && s.fallback {
		a.logger(levelServe).WarnContext(ctx, "the port is taken; the endpoint is elsewhere", "wanted", s.listen)
		host, _, splitErr := net.SplitHostPort(s.listen)
		if splitErr != nil {
			return nil, usagef("--listen %q: %w", s.listen, splitErr)
		}
		listener, err = config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("endpoint: %s is taken by another program; choose another address with --listen", s.listen)
		}
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	e := &endpoint{
		server: &http.Server{Handler: admin.handler, ReadHeaderTimeout: 10 * time.Second},
		where:  listener.Addr().String(), failed: make(chan error, 1), done: make(chan struct{}),
	}
	go func() {
		defer close(e.done)
		if err := e.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			e.failed <- fmt.Errorf("endpoint: %w", err)
		}
	}()
	return e, nil
}

func (e *endpoint) url() string {
	if e.server == nil {
		return ""
	}
	return "http://" + e.where
}

// close lets requests end for a moment and waits for the server.
func (e *endpoint) close(ctx context.Context) error {
	if e.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := e.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = e.server.Close()
	}
	<-e.done
	return err
}
