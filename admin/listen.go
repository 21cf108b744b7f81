package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/peltonq/pelton/admin/access"
)

// Why a server does not listen on an address that others can reach.
var (
	// ErrInsecureListen is for want of TLS, a proxy, or leave to do without.
	ErrInsecureListen = errors.New("other machines can reach this address, and what is said there can be read on the way")

	// ErrNoAdmin is for want of somebody who may log in.
	ErrNoAdmin = errors.New("other machines can reach this address, and there is no user who may log in as admin of everything")
)

// loopback tells whether only this machine can reach the address to listen on.
func loopback(ctx context.Context, listen string) (bool, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, err
	}
	if host == "" {
		return false, nil // all addresses
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false, err
	}
	for _, a := range addresses {
		if !a.Unmap().IsLoopback() {
			return false, nil
		}
	}
	return true, nil
}

// listen opens the address if the configuration allows it, and tells whether only this machine can reach it.
func (s *Server) listen(ctx context.Context) (listener net.Listener, own bool, err error) {
	own, err = loopback(ctx, s.config.Listen)
	if err == nil {
		err = s.checkListen(ctx, own)
	}
	if err != nil {
		return nil, false, err
	}
	var config net.ListenConfig
	listener, err = config.Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return nil, false, err
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); own && (!ok || !tcp.IP.IsLoopback()) { // the name means another address by now
		return nil, false, errors.Join(ErrInsecureListen, listener.Close())
	}
	return listener, own, nil
}

// checkListen refuses addresses that others can reach if what is said there is not hidden, or if nobody could log in.
func (s *Server) checkListen(ctx context.Context, own bool) error {
	c := s.config
	if own && !c.BehindProxy || c.InsecureListen {
		return nil
	}
	if c.TLSCert == "" && !c.BehindProxy {
		return ErrInsecureListen
	}
	if c.Access == nil {
		return nil // metrics and health, for those who may reach them
	}
	known, err := c.Access.Known(ctx)
	if err != nil {
		return err
	}
	if known.Admin || c.OIDC != nil && (known.AdminByOIDC || c.OIDC.GivesAdmin()) {
		return nil
	}
	return ErrNoAdmin
}

// newGuard makes what finds out who asks; nil: nobody is asked, and there is nothing to protect.
func (s *Server) newGuard(own bool) (*access.Guard, error) {
	if s.config.Access == nil {
		return nil, nil //nolint:nilnil // documented above
	}
	return access.NewGuard(access.GuardConfig{
		Store: s.config.Access, Loopback: own, BehindProxy: s.config.BehindProxy, PublicURL: s.config.PublicURL, OIDC: s.config.OIDC,
		Page: showRefusal, Logger: s.config.Logger,
	})
}

// certificates reads a pair of files, and again when they have changed, so that a renewed certificate needs no restart.
type certificates struct {
	cert, key string
	failed    func(error)

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed time.Time // of the certificate's file
	looked  time.Time
}

// lookEvery is how often the files are looked at.
const lookEvery = 10 * time.Second

func newCertificates(cert, key string, failed func(error)) (*certificates, error) {
	c := &certificates{cert: cert, key: key, failed: failed}
	return c, c.load()
}

func (c *certificates) load() error {
	info, err := os.Stat(c.cert)
	if err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	if info.ModTime().Equal(c.changed) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("TLS: %s and %s: %w", c.cert, c.key, err)
	}
	c.loaded, c.changed = &pair, info.ModTime()
	return nil
}

// get implements tls.Config.GetCertificate. Files that cannot be read leave what was there.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) > lookEvery {
		c.looked = time.Now()
		if err := c.load(); err != nil {
			c.failed(err)
		}
	}
	return c.loaded, nil
}

// tlsConfig is nil where there is no TLS.
func (s *Server) tlsConfig() (*tls.Config, error) {
	if s.config.TLSCert == "" {
		return nil, nil //nolint:nilnil // documented above
	}
	c, err := newCertificates(s.config.TLSCert, s.config.TLSKey, func(err error) {
		s.config.Logger.Error("the certificate stays as it was", "error", err)
	})
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// serve answers requests until the server is stopped.
func serve(server *http.Server, listener net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}
