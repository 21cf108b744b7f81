package page

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/peltonq/pelton/internal/service"
)

// hub makes live parts for those who look at them.
type hub struct {
	log  *slog.Logger
	ctx  context.Context //nolint:containedctx // the life of all streams, ended by shut
	end  context.CancelCauseFunc
	wait sync.WaitGroup // streams and topics

	mu      sync.Mutex
	closed  bool
	streams int
	by      map[string]int // streams of each user
	topics  map[string]*topic
}

func newHub(log *slog.Logger) *hub {
	ctx, end := context.WithCancelCause(context.Background())
	return &hub{log: log, ctx: ctx, end: end, topics: map[string]*topic{}, by: map[string]int{}}
}

// shut ends all streams and topics; there will be no more.
func (h *hub) shut() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end(errClosing)
}

// enter counts a stream, and gives it a context that ends with the request or the hub. exit is for its end.
func (h *hub) enter(ctx context.Context) (_ context.Context, exit func(), err error) {
	who := actor(ctx).Name
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.by[who] >= maxStreamsEach:
		return nil, nil, &inputError{http.StatusServiceUnavailable, "too many live pages of yours are open: close some"}
	case h.closed:
		return nil, nil, &inputError{http.StatusServiceUnavailable, errClosing.Error()}
	case h.streams >= maxStreams:
		return nil, nil, &inputError{http.StatusServiceUnavailable, "too many live pages are open"}
	}
	h.streams++
	h.by[who]++
	h.wait.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(h.ctx, func() { cancel(errClosing) })
	return ctx, func() {
		forget()
		cancel(nil)
		h.mu.Lock()
		h.streams--
		if h.by[who]--; h.by[who] == 0 {
			delete(h.by, who)
		}
		h.mu.Unlock()
		h.wait.Done()
	}, nil
}

// topic is a part that somebody looks at.
type topic struct {
	part part
	end  context.CancelFunc

	mu      sync.Mutex
	text    []byte
	version int // of the text; 0: not made yet
	viewers map[chan struct{}]int
}

// latest is the part as it was made last.
func (t *topic) latest() ([]byte, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text, t.version
}

func (t *topic) publish(text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version > 0 && bytes.Equal(text, t.text) {
		return
	}
	t.text, t.version = text, t.version+1
	for viewer := range t.viewers {
		notify(viewer)
	}
}

func notify(viewer chan<- struct{}) {
	select {
	case viewer <- struct{}{}:
	default: // it has something to look at already
	}
}

// join has a viewer told of what changes in a part.
func (h *hub) join(q part, viewer chan struct{}) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.topics[q.Key]
	if !ok {
		ctx, end := context.WithCancel(h.ctx)
		t = &topic{part: q, end: end, viewers: map[chan struct{}]int{}}
		h.topics[q.Key] = t
		h.wait.Go(func() { h.run(ctx, t) })
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.viewers[viewer]++
	return t
}

// leave ends that; without viewers nothing is made any more.
func (h *hub) leave(t *topic, viewer chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.viewers[viewer]--; t.viewers[viewer] <= 0 {
		delete(t.viewers, viewer)
	}
	if len(t.viewers) == 0 {
		t.end()
		if h.topics[t.part.Key] == t {
			delete(h.topics, t.part.Key)
		}
	}
}

// make makes the part. As in a handler, a panic ends what asked for it and not the server.
func (t *topic) make(ctx context.Context) (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return t.part.make(ctx)
}

// run makes a part again and again.
func (h *hub) run(ctx context.Context, t *topic) {
	for first := true; ; first = false {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, readTime+time.Second)
		text, err := t.make(limited)
		cancel()
		took := time.Since(began)
		if first {
			took = 0 // it found caches and connections cold, which says little of the next ones
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			h.log.WarnContext(ctx, "a live part could not be made", "part", t.part.Key, "error", err)
		default:
			t.publish(text)
		}
		every := t.part.Every
		if every == 0 {
			every = liveEvery
		}
		if !service.Sleep(ctx, max(every, restAfter(took))) {
			return
		}
	}
}
