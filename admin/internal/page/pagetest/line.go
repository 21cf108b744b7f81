package pagetest

import (
	"net"
	"strings"
	"sync"
)

// Line is the connection between browsers and a site, which a test breaks.
type Line struct {
	mu    sync.Mutex
	to    string            // the site's address; empty: it is cut
	ends  map[net.Conn]bool // of open connections
	stuck map[net.Conn]bool // those of them that nothing comes out of any more
}

// Line leads to the site from now on: browsers that are started later use it.
func (s *Site) Line() *Line {
	s.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	l := &Line{ends: map[net.Conn]bool{}, stuck: map[net.Conn]bool{}}
	l.Mend(s.URL)
	s.URL = "http://" + listener.Addr().String()
	var work sync.WaitGroup
	work.Go(func() {
		for {
			browser, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { l.connect(browser) })
		}
	})
	s.t.Cleanup(func() {
		_ = listener.Close()
		l.Cut()
		work.Wait()
	})
	return l
}

// Cut ends all connections, and those that are tried from now on.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = ""
	for end := range l.ends {
		_ = end.Close()
	}
}

// Mend leads what is connected from now on to a site.
func (l *Line) Mend(url string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = strings.TrimPrefix(url, "http://")
}

// Stall leaves open what is, but nothing comes through it any more.
func (l *Line) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for end := range l.ends {
		l.stuck[end] = true
	}
}

// connect joins a browser to the site until one of them has enough.
func (l *Line) connect(browser net.Conn) {
	defer browser.Close() //nolint:errcheck // a test's
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	if to == "" {
		return
	}
	site, err := net.Dial("tcp", to) //nolint:noctx // of this machine
	if err != nil {
		return
	}
	defer site.Close() //nolint:errcheck // a test's
	l.mu.Lock()
	l.ends[browser], l.ends[site] = true, true
	cut := l.to == ""
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.ends, browser)
		delete(l.ends, site)
	}()
	if cut {
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		l.carry(browser, site)
	}()
	l.carry(site, browser)
	<-back
}

// carry brings what comes from one end to the other.
func (l *Line) carry(to, from net.Conn) {
	defer to.Close() //nolint:errcheck // so that the other direction ends too
	data := make([]byte, 32<<10)
	for {
		n, err := from.Read(data)
		if err != nil {
			return
		}
		l.mu.Lock()
		stuck := l.stuck[from]
		l.mu.Unlock()
		if stuck {
			continue
		}
		if _, err := to.Write(data[:n]); err != nil {
			return
		}
	}
}
