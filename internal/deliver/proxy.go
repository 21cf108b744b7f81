package deliver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// proxyFor tells by which proxy a request goes; nil: by none.
type proxyFor func(*http.Request) (*url.URL, error)

// errOddAddress says that a server behind a proxy is named by what others may read as an address: a number, or signs that become digits and dots on the way.
var errOddAddress = errors.New("want the name of a server, in the form xn--... if it is not ASCII, or its address as 192.0.2.1 or [2001:db8::1]")

// clientBy is for a proxy, which stands where whoever set it up says; so its own address is not looked at.
func clientBy(proxy *url.URL) *http.Client {
	return newClient(http.ProxyURL(proxy), &net.Dialer{Timeout: dialTimeout})
}

// lookTimeout bounds how long a name that a proxy is to resolve is asked for here.
const lookTimeout = 2 * time.Second

// refuseBehindProxy looks at where a proxy is asked to go, as far as that is known here: an address, or a name that this machine can resolve. One that only the
// proxy can resolve is left to its own rules.
func refuseBehindProxy(ctx context.Context, host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		return refuseAddress(ip)
	}
	if endsInNumber(host) || strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return errOddAddress
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // behind a proxy names of the world are often not known
	}
	for _, ip := range ips {
		if err := refuseAddress(ip); err != nil {
			return err
		}
	}
	return nil
}

// endsInNumber tells whether a name may be read as an IPv4 address of another form, as 2852039166 or 0xa9.0xfea9fe.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	hex, isHex := strings.CutPrefix(strings.ToLower(last), "0x")
	if isHex {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
