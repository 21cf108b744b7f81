package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// DefaultListen is where a server listens unless told otherwise.
const DefaultListen = "127.0.0.1:8080"

// ErrInsecureListen is returned by Start for an address that others can reach, unless Config.InsecureListen is set.
var ErrInsecureListen = errors.New("address is not of this machine alone, and nobody is asked who they are")

// Config says what a server shows, and where. Pool and Metrics are required.
type Config struct {
	// Pool is the database that readiness asks.
	Pool *pgxpool.Pool

	// Metrics are what /metrics shows. The server starts and stops them.
	Metrics *Metrics

	// Schema is the Postgres schema whose version readiness checks. Defaults to "pelton".
	Schema string

	// Listen is the address, host:port. Defaults to 127.0.0.1:8080; port 0: any.
	Listen string

	// InsecureListen allows an address that other machines can reach.
	InsecureListen bool

	// Logger defaults to slog's default logger.
	Logger *slog.Logger
}

// Server answers /metrics, /healthz and /readyz. Make it with NewServer.
type Server struct {
	config  Config
	handler http.Handler
	state   atomic.Pointer[string] // why it is not ready, of the process itself; nil: it is
	failed  chan error

	mu     sync.Mutex
	server *http.Server
	where  string
	done   chan struct{}
}

// NewServer makes a server. It is not ready, and says that nothing has started, until SetReady.
func NewServer(config Config) (*Server, error) {
	if config.Pool == nil || config.Metrics == nil {
		return nil, errors.New("server: Pool and Metrics are required")
	}
	config.Listen = cmp.Or(config.Listen, DefaultListen)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	s := &Server{config: config, failed: make(chan error, 1)}
	s.SetNotReady("the client has not started")
	s.handler = s.routes()
	return s, nil
}

// SetReady says that the client of this process has started.
func (s *Server) SetReady() { s.state.Store(nil) }

// SetNotReady says why this process is not ready, whatever the database says.
func (s *Server) SetNotReady(reason string) { s.state.Store(&reason) }

// Start listens and returns; requests are answered until Stop. Starting twice does no harm. The error is [ErrInsecureListen], or
// that of the listener.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return nil
	}
	if err := s.checkAddress(ctx); err != nil {
		return fmt.Errorf("listen on %q: %w", s.config.Listen, err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", s.config.Listen, err)
	}
	s.config.Metrics.Start(ctx)
	server := &http.Server{
		Handler: s.handler, ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	done := make(chan struct{})
	s.server, s.where, s.done = server, listener.Addr().String(), done
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			select {
			case s.failed <- fmt.Errorf("serve on %q: %w", listener.Addr(), err):
			default:
			}
		}
	}()
	return nil
}

// Addr is where the server listens, host:port; empty if it does not.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.where
}

// Failed delivers the error of a server that ended by itself.
func (s *Server) Failed() <-chan error { return s.failed }

// Stop lets requests under way end until ctx ends, cuts the rest off, and waits. Stopping twice does no harm.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	err := s.server.Shutdown(ctx)
	if err != nil && ctx.Err() != nil {
		err = s.server.Close()
	}
	<-s.done
	s.config.Metrics.Stop()
	s.server, s.where, s.done = nil, "", nil
	return err
}

// checkAddress refuses what others can reach, unless that is wanted.
func (s *Server) checkAddress(ctx context.Context) error {
	host, _, err := net.SplitHostPort(s.config.Listen)
	if err != nil {
		return err
	}
	if s.config.InsecureListen {
		return nil
	}
	if host == "" {
		return ErrInsecureListen // all addresses
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if !a.Unmap().IsLoopback() {
			return ErrInsecureListen
		}
	}
	return nil
}
