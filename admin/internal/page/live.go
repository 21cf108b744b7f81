package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/service"
)

const (
	// liveEvery is the time between two makings of a part that does not say.
	liveEvery = 2 * time.Second
	// recheckEvery is how often a stream looks whether its actor may still see it.
	recheckEvery = 3 * time.Second
	// beatEvery is how often something is written to a stream, so that both sides know that the other is there.
	beatEvery = 15 * time.Second
	// writeTime is how long a write to a stream may take: who does not read is cut off.
	writeTime = 20 * time.Second
	// maxParts bounds the parts of one stream.
	maxParts = 20
	// maxStreams bounds the streams of a server.
	maxStreams = 1000
	// maxStreamsEach is how many of them one user has.
	maxStreamsEach = 100
)

// restAfter is how long what took so long to make is left alone at least: a hundred times as long, so that it takes a hundredth of one processor. Beyond
// ten seconds it is twenty times: one slow moment of the database does not leave a page behind for minutes.
func restAfter(took time.Duration) time.Duration {
	return min(100*took, max(10*time.Second, 20*took))
}

// part is a piece of a page that is kept up to date. It is made once for all who look at it, whatever their roles: it has no forms.
type part struct {
	Key   string        // what is shown; the same for all who see the same. Empty: the path
	Page  string        // the template's file
	Name  string        // the template in it
	Every time.Duration // defaults to 2 s
	Load  func(ctx context.Context) (any, error)
}

// opener says what part a request means, and refuses who may not see it. It is asked again while a stream is open, so it reads little.
type opener func(r *http.Request) (part, error)

type openedKey struct{}

// live adds a source of a live part under a path below /live/.
func (p *Page) live(path string, need need, open opener) {
	p.routes = append(p.routes, "GET "+path)
	p.parts.HandleFunc("GET "+path, func(_ http.ResponseWriter, r *http.Request) {
		found, ok := r.Context().Value(openedKey{}).(*opened)
		if !ok {
			return
		}
		if found.err = need(r.Context()); found.err != nil {
			return
		}
		if found.part, found.err = open(r); found.err == nil && found.part.Key == "" {
			found.part.Key = r.URL.Path
		}
	})
	p.get(path, need, func(w http.ResponseWriter, r *http.Request) error { return p.showPart(w, r, open) })
}

// opened is the answer of an opener.
type opened struct {
	part part
	err  error
}

// find asks the opener of a path.
func (p *Page) find(r *http.Request, path string) (part, error) {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" {
		return part{}, badInput("%q is no live part", path)
	}
	found := &opened{err: notFound("there is no live part %s", path)}
	asked := r.WithContext(context.WithValue(r.Context(), openedKey{}, found))
	asked.URL, asked.Method, asked.RequestURI = u, http.MethodGet, path
	asked.Form, asked.PostForm = nil, nil
	if err := checkAddress(asked); err != nil {
		return part{}, err
	}
	p.parts.ServeHTTP(discard{}, asked)
	return found.part, found.err
}

// discard takes what the mux of parts answers itself.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// showPart makes a part once: for tests, and for who wants to look at it alone.
func (p *Page) showPart(w http.ResponseWriter, r *http.Request, open opener) error {
	found, err := open(r)
	if err != nil {
		return err
	}
	text, err := found.make(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text)
	return nil
}

func (q part) make(ctx context.Context) ([]byte, error) {
	data, err := q.Load(ctx)
	if err != nil {
		return nil, err
	}
	return execute(q.Page, q.Name, data)
}

// serveLive is the stream of all parts of a page: /live?part=/live/a&part=/live/b. The event of the i-th part is "part" and its number.
func (p *Page) serveLive(w http.ResponseWriter, r *http.Request) error {
	paths := r.URL.Query()["part"]
	if len(paths) == 0 || len(paths) > maxParts {
		return badInput("want 1 to %d parts", maxParts)
	}
	check := func(r *http.Request) error {
		for _, path := range paths {
			if _, err := p.find(r, path); err != nil {
				return err
			}
		}
		return nil
	}
	return p.stream(w, r, check, func(ctx context.Context, send sender) error {
		changed := make(chan struct{}, 1)
		topics := make([]*topic, len(paths))
		for i, path := range paths {
			found, err := p.find(r, path)
			if err != nil {
				return err
			}
			topics[i] = p.hub.join(found, changed) //nolint:contextcheck // a topic is everybody's
			defer p.hub.leave(topics[i], changed)
		}
		seen := make([]int, len(topics))
		for {
			for i, t := range topics {
				text, version := t.latest()
				if version == seen[i] {
					continue
				}
				seen[i] = version
				if err := send(fmt.Sprintf("part%d", i), "", text); err != nil {
					return err
				}
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-changed:
			}
		}
	})
}

// sender writes an event to a stream. An id that is not empty is where a browser that was cut off goes on.
type sender func(event, id string, data []byte) error

// Why streams end.
var (
	errClosing = errors.New("the server is stopping")
	errGone    = errors.New("the browser has gone")
)

// stream answers with server-sent events: fn sends them until its context ends. check says whether the actor may see it; it is asked at once, and again
// every few seconds of the actor as they are then. The last event, "over", says why the stream ended.
func (p *Page) stream(w http.ResponseWriter, r *http.Request, check func(*http.Request) error, fn func(ctx context.Context, send sender) error) error {
	if err := check(r); err != nil {
		return err
	}
	ctx, exit, err := p.hub.enter(r.Context())
	if err != nil {
		return err
	}
	defer exit()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies pass events on at once
	if err := out.beat(); err != nil {
		return nil // nobody is left to tell
	}
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(ctx, cancel, r, check, out) })
	err = fn(ctx, out.send)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	watching.Wait()
	reason := "end"
	switch {
	case err == nil:
	case errors.Is(err, access.ErrNotLoggedIn), errors.Is(err, access.ErrForbidden):
		reason = "refused"
	case errors.Is(err, errClosing):
		return nil // the browser comes back
	case r.Context().Err() == nil && !errors.Is(err, errGone):
		p.config.Logger.WarnContext(r.Context(), "a stream failed", "path", r.URL.Path, "error", err)
		return nil
	}
	_ = out.send("over", "", []byte(reason)) // the browser may have gone
	return nil
}

// watch ends a stream whose actor may not see it any more, and keeps it awake.
func (p *Page) watch(ctx context.Context, cancel context.CancelCauseFunc, r *http.Request, check func(*http.Request) error, out *eventWriter) {
	beaten := time.Now()
	for service.Sleep(ctx, recheckEvery) {
		if time.Since(beaten) > beatEvery {
			beaten = time.Now()
			if err := out.beat(); err != nil {
				cancel(err)
				return
			}
		}
		a, err := p.config.Guard.Identify(r)
		if err == nil {
			err = check(r.WithContext(access.WithActor(ctx, a)))
		}
		if ctx.Err() == nil && err != nil && !tookTooLong(err) {
			cancel(err)
			return
		}
	}
}

// eventWriter writes events from several goroutines.
type eventWriter struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
}

func (e *eventWriter) write(text []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return errors.Join(errGone, err)
	}
	if _, err := e.w.Write(text); err != nil {
		return errors.Join(errGone, err)
	}
	if err := e.control.Flush(); err != nil {
		return errors.Join(errGone, err)
	}
	return nil
}

// beat says that the server is there: the script takes a stream that is silent for much longer for broken.
func (e *eventWriter) beat() error { return e.send("beat", "", []byte("-")) }

func (e *eventWriter) send(event, id string, data []byte) error {
	var out bytes.Buffer
	out.WriteString("event: " + event + "\n")
	if id != "" {
		out.WriteString("id: " + id + "\n")
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		out.WriteString("data: " + strings.TrimSuffix(line, "\r") + "\n")
	}
	out.WriteByte('\n')
	return e.write(out.Bytes())
}
