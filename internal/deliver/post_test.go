package deliver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A notice goes to the address it was given and nowhere else, and what comes back is bounded.
func TestPostGoesNowhereElse(t *testing.T) {
	t.Parallel()
	reached := make(chan string, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path }))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != `{"a": 1}` || r.Header.Get("X-Own") != "x" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %q with %v: %v", r.Method, body, r.Header, err)
		}
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere.URL+"/secret", http.StatusFound)
		case "/long":
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	post := func(to string) error {
		return Post(t.Context(), to, []byte(`{"a": 1}`), http.Header{"X-Own": {"x"}})
	}
	if err := post(server.URL + "/hook?token=secret"); err != nil {
		t.Error(err)
	}
	if err := post(server.URL + "/away"); err == nil || !strings.Contains(err.Error(), "answered 302 Found") {
		t.Errorf("a redirect: %v", err)
	}
	if err := post(server.URL + "/long"); err == nil || len(err.Error()) > 1200 || !strings.Contains(err.Error(), "answered 500") {
		t.Errorf("a long answer: %v", err)
	}
	close(reached)
	for path := range reached {
		t.Errorf("the redirect led to %s", path)
	}
}

func TestPostRefuses(t *testing.T) {
	t.Parallel()
	for to, says := range map[string]string{
		"http://169.254.169.254/latest/meta-data?token=secret": "link-local", "http://[fe80::1%25lo]/?token=secret": "link-local",
		"http://[::ffff:169.254.169.254]/?token=secret": "link-local", "http://[fd00:ec2::254]/?token=secret": "link-local",
		"http://[64:ff9b::169.254.169.254]/?token=secret": "link-local", "http://[64:ff9b:1::a9fe:a9fe]/?token=secret": "link-local",
		"http://[2002:a9fe:a9fe::1]/?token=secret": "link-local", "http://[::169.254.169.254]/?token=secret": "link-local",
		"file:///etc/passwd?token=secret": "want a URL", "gopher://x/?token=secret": "want a URL", "/relative?token=secret": "want a URL", "http://?token=secret": "want a URL",
	} {
		err := Post(t.Context(), to, nil, nil)
		var wrong *AddressError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// Behind a proxy it is the target that is looked at, not the proxy: neither leads the one's address past the check, nor is the other's refused.
func TestPostByProxy(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.String() }))
	t.Cleanup(proxy.Close)
	by := func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	for _, to := range []string{"http://hooks.invalid/a", "http://192.0.2.1/b", "http://[2001:db8::1]/c"} { // none can be resolved, or reached, from here
		if err := postBy(t.Context(), to, []byte("{}"), nil, by); err != nil {
			t.Errorf("%s: %v", to, err)
		} else if got := <-asked; got != to {
			t.Errorf("the proxy was asked for %s, want %s", got, to)
		}
	}
	for to, says := range map[string]string{
		"http://169.254.169.254/": "link-local", "http://[::ffff:169.254.169.254]/": "link-local", "https://[fd00:ec2::254]/": "link-local",
		"http://2852039166/": "want the name", "http://0xA9.0xfea9fe/": "want the name", "http://169.254.43518/": "want the name", "http://169.254.169.254./": "want the name",
		"https://169\u3002254\u3002169\u3002254/": "want the name", "https://\uff11\uff16\uff19.254.169.254/": "want the name", "https://%EF%BC%9169.254.169.254/": "want the name",
	} {
		var wrong *AddressError
		if err := postBy(t.Context(), to, nil, nil, by); !errors.As(err, &wrong) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", to, err, says)
		}
	}
	far := func(*http.Request) (*url.URL, error) { return url.Parse("http://169.254.0.1:1") } // a proxy may stand there
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)                     // nobody answers there; refused it would be at once
	defer cancel()
	if err := postBy(ctx, "http://192.0.2.1/", nil, nil, far); err == nil || errors.Is(err, errLinkLocal) {
		t.Errorf("a proxy with a link-local address: %v", err)
	}
	odd := func(*http.Request) (*url.URL, error) { return nil, errors.New("secret") }
	if err := postBy(t.Context(), "http://192.0.2.1/", nil, nil, odd); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an odd proxy: %v", err)
	}
	close(asked)
	for to := range asked {
		t.Errorf("the proxy was asked for %s", to)
	}
}

// An IPv4 address is found wherever an IPv6 address carries it, and who is elsewhere is not refused.
func TestRefusesLinkLocalInOtherForms(t *testing.T) {
	t.Parallel()
	for address, refused := range map[string]bool{
		"64:ff9b::a9fe:a9fe": true, "64:ff9b::a9fe:1": true, "64:ff9b::e000:1": true, // 224.0.0.1
		"64:ff9b:1:a9fe:a9:fe00::": true, "64:ff9b:1:a9:fe:a9fe::": true, "64:ff9b:1::a9:fea9:fe00:0": true, "64:ff9b:1::a9fe:a9fe": true,
		"64:ff9b:1:7::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true, "::a9fe:a9fe": true, "::ffff:a9fe:a9fe": true, "::ffff:0:a9fe:a9fe": true, "fe80::1%lo": true,

		"64:ff9b::0808:0808": false, "64:ff9b:1::0808:0808": false, "64:ff9b:2::a9fe:a9fe": false, "2002:808:808::a9fe:a9fe": false,
		"2001:db8::a9fe:a9fe": false, "::1": false, "127.0.0.1": false, "10.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:0:808:808": false,
	} {
		ip := netip.MustParseAddr(address)
		if err := refuseLinkLocal("tcp", netip.AddrPortFrom(ip, 80).String(), nil); (err != nil) != refused {
			t.Errorf("%s: %v, want refused: %t", address, err, refused)
		}
	}
}
