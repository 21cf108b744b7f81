package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/internal/api"
	"github.com/peltonq/pelton/admin/internal/page"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/periodic"
)

// DefaultListen is where a server listens unless told otherwise.
const DefaultListen = "127.0.0.1:8080"

// Config says what a server shows, and where. Pool and Metrics are required.
type Config struct {
	// Pool is the database that readiness asks.
	Pool *pgxpool.Pool

	// Pages is what the page and the API use; best a small pool of their own, on which Access and the clients are too, so that whoever asks much
	// takes no connection from the queue. Metrics shows it as the pool "pages". Defaults to Pool.
	Pages *pgxpool.Pool

	// Metrics are what /metrics shows. The server starts and stops them.
	Metrics *Metrics

	// Schema is the Postgres schema whose version readiness checks. Defaults to "pelton".
	Schema string

	// Listen is the address, host:port. Defaults to 127.0.0.1:8080; port 0: any.
	Listen string

	// Access says who may do what; nil: there is nothing but metrics and health, which everybody may see who can reach them.
	Access *access.Store

	// Jobs, Flows and Schedules are what the page and the API look and operate with, with the schema of Schema. They need not be
	// started. With Access all three are required.
	Jobs      *jobs.Client
	Flows     *flow.Client
	Schedules *periodic.Client

	// Secrets are what the page and the API list and set secrets of flows with. Nil: one without a key, which sets none.
	Secrets *secret.Client

	// Private stands around the page and the API, behind the login: it may have their requests go on with the traces of their callers, say.
	// May be nil.
	Private func(http.Handler) http.Handler

	// InsecureListen allows an address that other machines can reach without TLS, and shows them the metrics.
	InsecureListen bool

	// TLSCert and TLSKey are files; both or none. They are read again when they have changed.
	TLSCert, TLSKey string

	// BehindProxy: a proxy is before the server and speaks TLS; what it says in X-Forwarded-For and X-Forwarded-Proto is believed.
	BehindProxy bool

	// PublicURL is how browsers reach the server, as https://pelton.example.com. OIDC needs it.
	PublicURL string

	// OIDC is a provider of logins; nil: none.
	OIDC *access.OIDC

	// Logger defaults to slog's default logger.
	Logger *slog.Logger
}

// Server answers /metrics, /healthz and /readyz, and with Config.Access what is for users. Make it with NewServer.
type Server struct {
	config Config
	alerts *alert.Store
	guard  *access.Guard          // nil: no access
	page   *page.Page             // nil: no access
	api    *api.API               // beside page
	state  atomic.Pointer[string] // why it is not ready, of the process itself; nil: it is
	asked  asked                  // what the database said last
	failed chan error

	mu     sync.Mutex
	server *http.Server
	where  string
	own    bool
	done   chan struct{}
}

// NewServer makes a server. It is not ready, and says that nothing has started, until SetReady.
func NewServer(config Config) (*Server, error) {
	if config.Pool == nil || config.Metrics == nil {
		return nil, errors.New("server: Pool and Metrics are required")
	}
	if config.Access != nil && (config.Jobs == nil || config.Flows == nil || config.Schedules == nil) {
		return nil, errors.New("server: with Access, Jobs, Flows and Schedules are required")
	}
	config.Listen = cmp.Or(config.Listen, DefaultListen)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	if (config.TLSCert == "") != (config.TLSKey == "") {
		return nil, errors.New("server: TLSCert and TLSKey belong together")
	}
	config.Pages = cmp.Or(config.Pages, config.Pool)
	alerts, err := alert.NewStore(config.Pages, config.Schema)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s := &Server{config: config, alerts: alerts, failed: make(chan error, 1)}
	s.SetNotReady("the client has not started")
	if config.Pages != config.Pool {
		config.Metrics.pools.watch(pagesPool, config.Pages)
	}
	_, err = s.newGuard(false) // is the configuration right?
	return s, err
}

// SetReady says that the client of this process has started.
func (s *Server) SetReady() { s.state.Store(nil) }

// SetNotReady says why this process is not ready, whatever the database says.
func (s *Server) SetNotReady(reason string) { s.state.Store(&reason) }

// Start listens and returns; requests are answered until Stop. Starting twice does no harm. The error is [ErrInsecureListen],
// [ErrNoAdmin], or that of the listener.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return nil
	}
	secret, err := s.tlsConfig()
	if err != nil {
		return err
	}
	listener, own, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", s.config.Listen, err)
	}
	if s.guard, err = s.newGuard(own); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.config.Metrics.Start(ctx)
	//nolint:contextcheck // handlers take their requests' contexts
	server := &http.Server{
		Handler: s.routes(own), ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelWarn), TLSConfig: secret,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	if s.page != nil {
		server.RegisterOnShutdown(s.page.End)
		server.RegisterOnShutdown(s.api.End)
	}
	done := make(chan struct{})
	s.server, s.where, s.own, s.done = server, listener.Addr().String(), own, done
	go func() {
		defer close(done)
		if err := serve(server, listener); !errors.Is(err, http.ErrServerClosed) {
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

// OnlyHere tells whether only this machine can reach the server.
func (s *Server) OnlyHere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own && !s.config.BehindProxy
}

// URL is where the server is reached on this machine; empty if it does not listen.
func (s *Server) URL() string {
	where := s.Addr()
	switch {
	case where == "":
		return ""
	case s.config.TLSCert != "":
		return "https://" + where
	}
	return "http://" + where
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
	if s.page != nil {
		s.page.Close()
	}
	s.config.Metrics.Stop()
	s.server, s.where, s.done = nil, "", nil
	return err
}
