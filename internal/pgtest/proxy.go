package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Proxy is a TCP proxy in front of a server that a test uses to break connections: all of them ([Proxy.Cut]), for a
// while ([Proxy.Down], [Proxy.Pause]), or in the middle of one exchange ([Proxy.CutAfterSend], [Proxy.CutBeforeSend]).
type Proxy struct {
	dsn      url.URL
	network  string
	upstream string
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]struct{}
	served int // connections so far
	down   bool
	closed bool
	paused chan struct{} // closed when traffic may flow again; nil while it flows
	traps  []*trap
}

// trap is a cut that waits for its message.
type trap struct {
	match  func(message []byte) bool
	before bool // cut before the message is sent on
	sprung chan struct{}
}

// NewProxy starts a proxy in front of the server of a DSN (a URL). It ends with the test.
func NewProxy(t testing.TB, dsn string) *Proxy {
	t.Helper()
	proxy, err := newProxy(t.Context(), dsn)
	if err != nil {
		t.Fatalf("pgtest: proxy: %v", err)
	}
	t.Cleanup(proxy.close)
	return proxy
}

func newProxy(ctx context.Context, dsn string) (*Proxy, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	own, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	network, upstream := pgconn.NetworkAddress(config.Host, config.Port)
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	own.Host = listener.Addr().String()
	query := own.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	own.RawQuery = query.Encode()
	proxy := &Proxy{dsn: *own, network: network, upstream: upstream, listener: listener, links: map[*link]struct{}{}}
	proxy.work.Go(proxy.accept)
	return proxy, nil
}

// DSN returns the URL of the same database through the proxy.
func (p *Proxy) DSN() string { return p.dsn.String() }

// Connections returns how many connections are open through the proxy.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Served returns how many connections were made through the proxy so far, those that have ended included.
func (p *Proxy) Served() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served
}

// Cut breaks all open connections at both ends. New ones are served.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAll()
}

// Down breaks all open connections and refuses new ones until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	p.cutAll()
}

// Up ends Down.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// Pause holds all traffic while connections stay open, as a network does that drops packets. What is on the way arrives
// after Resume.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == nil {
		p.paused = make(chan struct{})
	}
}

// Resume ends Pause.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resume()
}

func (p *Proxy) resume() {
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

// CutAfterSend waits for the first client message that matches, sends it on, lets the server carry it out, and then
// breaks that connection without passing on the answer: the client cannot know what happened. The returned channel is
// closed when that is done. The message begins with its type byte, as in the protocol; see [SQL].
func (p *Proxy) CutAfterSend(match func(message []byte) bool) <-chan struct{} {
	return p.arm(&trap{match: match, sprung: make(chan struct{})})
}

// CutBeforeSend breaks the connection of the first client message that matches, without sending it on.
func (p *Proxy) CutBeforeSend(match func(message []byte) bool) <-chan struct{} {
	return p.arm(&trap{match: match, before: true, sprung: make(chan struct{})})
}

func (p *Proxy) arm(armed *trap) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, armed)
	return armed.sprung
}

// caught returns and disarms the first trap that the message matches.
func (p *Proxy) caught(message []byte) *trap {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, armed := range p.traps {
		if armed.match(message) {
			p.traps = append(p.traps[:i:i], p.traps[i+1:]...)
			return armed
		}
	}
	return nil
}

// gate returns at once while traffic flows, else when it does again or the link is cut.
func (p *Proxy) gate(l *link) {
	p.mu.Lock()
	paused := p.paused
	p.mu.Unlock()
	if paused == nil {
		return
	}
	select {
	case <-paused:
	case <-l.cutting:
	}
}

// cutAll needs the mutex.
func (p *Proxy) cutAll() {
	for open := range p.links {
		open.cut()
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.cutAll()
	p.resume()
	p.mu.Unlock()
	_ = p.listener.Close()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.work.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	l := &link{proxy: p, client: client, cutting: make(chan struct{})}
	if !p.admit(l) {
		reset(client)
		return
	}
	defer func() {
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	dialer := net.Dialer{Timeout: time.Minute}
	server, err := dialer.Dial(p.network, p.upstream)
	if err != nil {
		l.cut()
		return
	}
	l.run(server)
}

func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down || p.closed {
		return false
	}
	p.links[l] = struct{}{}
	p.served++
	return true
}

// reset closes a connection so that the other end sees it broken, not ended.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}

var (
	errCut      = errors.New("cut by the test")
	errProtocol = errors.New("not the PostgreSQL protocol")
)

func protocolError(what string, got int) error {
	return fmt.Errorf("%w: %s %s", errProtocol, what, strconv.Itoa(got))
}
