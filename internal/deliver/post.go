package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	answerBytes = 100      // of an answer that are in the error: enough for "no_such_channel", and too little to read pages by
	headerBytes = 16 << 10 // of an answer
	dialTimeout = 10 * time.Second
)

// client goes to servers without a proxy between.
var client = newClient(nil, &net.Dialer{Timeout: dialTimeout, Control: refuseLinkLocal})

// newClient makes a client that has no connection of its own left when a POST has ended. It goes nowhere but to the address it was given: a redirect is an answer.
func newClient(proxy proxyFor, dialer *net.Dialer) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: proxy, DialContext: dialer.DialContext,
			DisableKeepAlives: true, MaxResponseHeaderBytes: headerBytes, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		},
	}
}

// errLinkLocal says that nobody who has a webhook is there.
var errLinkLocal = errors.New("link-local addresses, where clouds keep credentials of their machines, get no notices")

// metadata are addresses of such services that are not link-local.
var metadata = netip.MustParsePrefix("fd00:ec2::/32")

// refuseLinkLocal looks at the address that a name has led to.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return refuseAddress(at.Addr())
}

func refuseAddress(at netip.Addr) error {
	for _, ip := range append(embedded(at), at.Unmap()) {
		if ip.IsLinkLocalUnicast() || ip.IsMulticast() || metadata.Contains(ip) {
			return errLinkLocal
		}
	}
	return nil
}

// wraps are prefixes of IPv6 addresses that lead to an IPv4 address in them, and the places of its bytes. Of the local NAT64 prefix each network has a part of
// a length of its own (RFC 6052, 2.2): /48, /56, /64 or /96.
var wraps = []struct {
	prefix netip.Prefix
	bytes  [][4]int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), [][4]int{{12, 13, 14, 15}}},
	{netip.MustParsePrefix("64:ff9b:1::/48"), [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}}},
	{netip.MustParsePrefix("2002::/16"), [][4]int{{2, 3, 4, 5}}},           // 6to4
	{netip.MustParsePrefix("::/96"), [][4]int{{12, 13, 14, 15}}},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [][4]int{{12, 13, 14, 15}}}, // IPv4-translated
}

// embedded are the IPv4 addresses that an IPv6 address may lead to through a gateway: NAT64, 6to4, and the deprecated IPv4-compatible and IPv4-translated ones.
func embedded(ip netip.Addr) (all []netip.Addr) {
	if !ip.Is6() {
		return nil
	}
	in := ip.As16()
	for _, w := range wraps {
		if !w.prefix.Contains(ip.WithZone("")) {
			continue
		}
		for _, at := range w.bytes {
			all = append(all, netip.AddrFrom4([4]byte{in[at[0]], in[at[1]], in[at[2]], in[at[3]]}))
		}
	}
	return all
}

// Post sends JSON to a URL, and wants an answer of 2xx. Redirects are not followed, and link-local addresses are refused. By a proxy (HTTPS_PROXY, HTTP_PROXY and
// NO_PROXY of the environment) that is so for addresses, and for names that are known here; others are the proxy's to judge. Errors name the server, and not the whole URL,
// which may be a secret; of another answer they tell the status, and the first 100 bytes of what a 4xx says in plain text or JSON. An [*AddressError] if it is no URL.
func Post(ctx context.Context, to string, body []byte, header http.Header) error {
	return postBy(ctx, to, body, header, http.ProxyFromEnvironment)
}

func postBy(ctx context.Context, to string, body []byte, header http.Header, by proxyFor) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &AddressError{"webhook", errors.New("want a URL with http:// or https://")}
	}
	where := u.Scheme + "://" + u.Host
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return &AddressError{where, errors.New("cannot be asked")}
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pelton")
	proxy, err := by(req)
	if err != nil {
		return errors.New("webhooks: the environment names a proxy by what is no URL") // which may hold a password
	}
	through := client
	if proxy != nil {
		if err := refuseBehindProxy(ctx, u.Hostname()); err != nil {
			return &AddressError{where, err}
		}
		through = clientBy(proxy)
	}
	resp, err := through.Do(req)
	if errors.Is(err, errLinkLocal) {
		return &AddressError{where, errLinkLocal}
	}
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return fmt.Errorf("webhook %s: %w", where, err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode/100 == 2 {
		return nil
	}
	return fmt.Errorf("webhook %s answered %s%s", where, resp.Status, said(resp))
}

// said is the beginning of what an answer says of a request that was wrong, for who set up the webhook; empty for any other answer.
func said(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || resp.StatusCode/100 != 4 || kind != "text/plain" && kind != "application/json" {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, answerBytes)) // what came before a fault is as good
	if line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "")), " "); line != "" {
		return ": " + line
	}
	return ""
}
