package pagetest

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// Visitor is somebody who asks for pages.
type Visitor struct {
	Client http.Client

	t     testing.TB
	url   string
	token string
}

// As makes a visitor who is the user of this name, by a token; "" is somebody who has not logged in.
func (s *Site) As(name string) *Visitor {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	v := &Visitor{t: s.t, url: s.URL, token: s.tokens[name]}
	if name != "" && v.token == "" {
		s.t.Fatalf("there is no user %q", name)
	}
	v.Client = http.Client{
		Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return v
}

// Login gives a visitor a session instead of a token.
func (v *Visitor) Login(name string) {
	v.t.Helper()
	v.LoginBy(name, Password)
}

// LoginBy is Login with a password of one's own.
func (v *Visitor) LoginBy(name, password string) {
	v.t.Helper()
	v.token = ""
	a := v.Post("/login", url.Values{"name": {name}, "password": {password}})
	if a.Status != http.StatusSeeOther {
		v.t.Fatalf("login of %s: %d %s", name, a.Status, a.Body)
	}
}

// Answer is what a request got.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Get asks for a page as a browser does.
func (v *Visitor) Get(path string, headers ...string) Answer {
	v.t.Helper()
	return v.Do(http.MethodGet, path, "", headers...)
}

// Post sends a form as a page of the server does.
func (v *Visitor) Post(path string, form url.Values, headers ...string) Answer {
	v.t.Helper()
	return v.Do(http.MethodPost, path, form.Encode(),
		append([]string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}, headers...)...)
}

// Do sends a request; headers are pairs.
func (v *Visitor) Do(method, path, body string, headers ...string) Answer {
	v.t.Helper()
	response, err := v.Client.Do(v.request(v.t.Context(), method, path, body, headers...))
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return Answer{response.StatusCode, response.Header, string(text)}
}

func (v *Visitor) request(ctx context.Context, method, path, body string, headers ...string) *http.Request {
	v.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, v.url+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Stuck sends the beginning of a form, whose rest never comes, and returns what it is answered. length is what it says that the form has, in bytes.
func (v *Visitor) Stuck(path string, length int64) (Answer, error) {
	ctx, cancel := context.WithTimeout(v.t.Context(), 2*Patience)
	defer cancel()
	r := v.request(ctx, http.MethodPost, path, "", "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("x="), until{ctx})), length
	response, err := v.Client.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, string(text)}, err
}

// until gives nothing to read until its context ends.
type until struct{ ctx context.Context } //nolint:containedctx // it is one request's

func (u until) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

// Want gets a page that must have a status and hold texts.
func (v *Visitor) Want(status int, path string, texts ...string) Answer {
	v.t.Helper()
	a := v.Get(path)
	v.check(a, status, "GET "+path, texts)
	return a
}

// WantPost sends a form whose answer must have a status and hold texts. Of a redirect (303), the page it leads to must hold them.
func (v *Visitor) WantPost(status int, path string, form url.Values, texts ...string) Answer {
	v.t.Helper()
	a := v.Post(path, form)
	if a.Status == http.StatusSeeOther && status == a.Status {
		to := a.Header.Get("Location")
		v.check(v.Get(to), http.StatusOK, "POST "+path+", then GET "+to, texts)
		return a
	}
	v.check(a, status, "POST "+path, texts)
	return a
}

func (v *Visitor) check(a Answer, status int, what string, texts []string) {
	v.t.Helper()
	if a.Status != status {
		v.t.Errorf("%s: %d, want %d: %s", what, a.Status, status, a.Body)
		return
	}
	for _, text := range texts {
		if !strings.Contains(a.Body, text) {
			v.t.Errorf("%s: %q is not in it: %s", what, text, a.Body)
		}
	}
}

// Event is a server-sent event.
type Event struct{ Name, Data string }

// Stream opens a stream, and returns its events until the test or the stream ends; then the channel is closed.
func (v *Visitor) Stream(path string) <-chan Event {
	v.t.Helper()
	ctx, cancel := context.WithCancel(v.t.Context())
	response, err := v.Client.Do(v.request(ctx, http.MethodGet, path, "", "Accept", "text/event-stream")) //nolint:bodyclose // by the goroutine below
	if err != nil {
		cancel()
		v.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		cancel()
		v.t.Fatalf("stream %s: %d %s", path, response.StatusCode, text)
	}
	events := make(chan Event, 100)
	done := make(chan struct{})
	v.t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		defer close(events)
		defer response.Body.Close() //nolint:errcheck // only read
		read(ctx, response.Body, events)
	}()
	return events
}

func read(ctx context.Context, body io.Reader, events chan<- Event) {
	var e Event
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case lines.Text() == "":
			if e.Name != "" {
				select {
				case events <- e:
				case <-ctx.Done():
					return
				}
			}
			e = Event{}
		case field == "event":
			e.Name = value
		case field == "data", lines.Text() == "data:":
			if e.Data != "" {
				e.Data += "\n"
			}
			e.Data += value
		}
	}
}
