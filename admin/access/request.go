package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Secure tells whether the browser's connection is TLS, as far as the server or the proxy before it knows.
func (g *Guard) Secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	if !g.config.BehindProxy {
		return false
	}
	return strings.EqualFold(last(r, "X-Forwarded-Proto"), "https") || g.public != nil && g.public.Scheme == "https"
}

// last is the last entry of a header that proxies write: the nearest one's own. Those before it anybody can write.
func last(r *http.Request, name string) string {
	all := r.Header.Values(name)
	if len(all) == 0 {
		return ""
	}
	list := strings.Split(all[len(all)-1], ",")
	return strings.TrimSpace(list[len(list)-1])
}

// client is the address that a request comes from; of IPv6 the network of 64 bits, which is what one customer has.
func (g *Guard) client(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if g.config.BehindProxy {
		if from := last(r, "X-Forwarded-For"); from != "" {
			host = from
			if with, err := netip.ParseAddrPort(from); err == nil { // some proxies add the port
				host = with.Addr().String()
			}
		}
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return "?"
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}

var (
	errHost   = errors.New("the Host of this request is no name of this machine: reach the server as localhost or 127.0.0.1, or tell it its public URL")
	errOrigin = errors.New("another page sent this request")
	errProxy  = errors.New("this request came through a proxy, and there are no users yet: add one (pelton user add), and start with --behind-proxy")
)

// checkHost refuses names that are none of this machine's where only this machine can reach the server: such a name was made to point
// here, so that somebody's page may read what the server says.
func (g *Guard) checkHost(r *http.Request) error {
	if !g.config.Loopback || g.config.BehindProxy {
		return nil
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if g.public != nil && strings.EqualFold(host, g.public.Hostname()) {
		return nil
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return nil
	}
	if address, err := netip.ParseAddr(host); err == nil && address.Unmap().IsLoopback() {
		return nil
	}
	return errHost
}

// checkOrigin refuses requests that change something and were sent by another page.
func (g *Guard) checkOrigin(r *http.Request) error {
	if err := g.origins.Check(r); err != nil {
		return errOrigin
	}
	return nil
}

// checkCookieOrigin is for requests that a browser sends by itself with a cookie: all browsers that Pelton knows say where those come from.
func checkCookieOrigin(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return fmt.Errorf("%w, or a program with a cookie: use a token, or send Origin", errOrigin)
	}
	return nil
}

// checkForwarded refuses what came through a proxy that nobody told of.
func checkForwarded(r *http.Request) error {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header.Get(name) != "" {
			return errProxy
		}
	}
	return nil
}

// Protect refuses requests under a wrong name of this machine, and those that another page sent to change something. All routes belong behind it.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := errors.Join(g.checkHost(r), g.checkOrigin(r)); err != nil {
			g.Deny(w, r, fmt.Errorf("%w: %w", ErrForbidden, err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// SafeNext is a path of this server that a browser may be sent to after a login: the one given, if it is one, else /.
func SafeNext(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }) {
		return "/"
	}
	return next
}

// open tells whether everybody is let in as local.
func (g *Guard) open(ctx context.Context, r *http.Request) (bool, error) {
	if !g.config.Loopback || g.config.BehindProxy {
		return false, nil
	}
	if g.closed.Load() {
		return false, nil
	}
	known, err := g.store.Known(ctx)
	if err != nil {
		return false, err
	}
	if known.Anyone {
		g.closed.Store(true) // users are never deleted
		return false, nil
	}
	return true, checkForwarded(r)
}
