package page

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/peltonq/pelton/admin/access"
)

// A part that panics is tried again, and ends nothing else.
func TestPartThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := newHub(slog.New(slog.NewTextHandler(&log, nil)))
		var made atomic.Int64
		viewer := make(chan struct{}, 1)
		shown := h.join(part{Key: "k", Page: "fault", Name: "state", Load: func(context.Context) (any, error) {
			if made.Add(1) == 1 {
				panic("a fault of the program")
			}
			return "running", nil
		}}, viewer)
		<-viewer
		if text, _ := shown.latest(); !strings.Contains(string(text), "running") || !strings.Contains(log.String(), "a fault of the program") {
			t.Errorf("shown %q, logged %q", text, log.String())
		}
		h.leave(shown, viewer)
		h.shut()
	})
}

// However many look at a part, it is made once for all of them, in a hundredth of the time at most, and only while somebody looks.
func TestPartsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(slog.New(slog.DiscardHandler))
		var made, took atomic.Int64
		var fails atomic.Bool
		q := part{Key: "k", Page: "fault", Name: "state", Load: func(context.Context) (any, error) {
			n := made.Add(1)
			time.Sleep(time.Duration(took.Load())) //nolint:forbidigo // the clock is synctest's
			switch {
			case fails.Load():
				return nil, errors.New("no database")
			case n > 3 && n < 6:
				return "same", nil
			}
			return "running", nil
		}}
		var topics []*topic
		viewers := make([]chan struct{}, 10)
		for i := range viewers {
			viewers[i] = make(chan struct{}, 1)
			topics = append(topics, h.join(q, viewers[i]))
		}
		after := func(d time.Duration) int64 {
			was := made.Load()
			time.Sleep(d) //nolint:forbidigo // as above
			synctest.Wait()
			return made.Load() - was
		}
		if n := after(20 * time.Second); n < 9 || n > 12 {
			t.Errorf("made %d times in 20 s for ten viewers", n)
		}
		if text, version := topics[9].latest(); version != 3 || string(text) != `<span class="state runs">running</span>` {
			t.Errorf("version %d of what changed twice: %s", version, text)
		}
		for _, v := range viewers {
			if len(v) != 1 {
				t.Error("a viewer was not told")
			}
		}
		took.Store(int64(time.Second))
		if n := after(1000 * time.Second); n < 45 || n > 49 { // 20 s between two
			t.Errorf("a part that takes 1 s was made %d times in 1000 s", n)
		}
		took.Store(0)
		fails.Store(true)
		if after(300*time.Second) == 0 {
			t.Error("it was not tried again")
		}
		if _, version := topics[0].latest(); version != 3 {
			t.Errorf("version %d: a failure was shown", version)
		}
		for i, topic := range topics[1:] {
			h.leave(topic, viewers[i+1])
		}
		if after(300*time.Second) == 0 {
			t.Error("the last viewer was forgotten")
		}
		h.leave(topics[0], viewers[0])
		if n := after(time.Hour); n != 0 || len(h.topics) != 0 {
			t.Errorf("made %d times for nobody", n)
		}
		h.join(q, viewers[0])
		h.shut()
		h.wait.Wait()
	})
}

// Nobody takes all streams of a server.
func TestStreamsOfOneUserAreBounded(t *testing.T) {
	t.Parallel()
	h := newHub(slog.New(slog.DiscardHandler))
	enter := func(name string) (exit func(), err error) {
		_, exit, err = h.enter(access.WithActor(t.Context(), access.Actor{Name: name}))
		return exit, err
	}
	var exits []func()
	for range maxStreamsEach {
		exit, err := enter("vic")
		if err != nil {
			t.Fatal(err)
		}
		exits = append(exits, exit)
	}
	if _, err := enter("vic"); err == nil || !strings.Contains(err.Error(), "of yours") {
		t.Errorf("one more: %v", err)
	}
	exit, err := enter("ann")
	if err != nil {
		t.Fatal(err)
	}
	exits[0]()
	again, err := enter("vic")
	if err != nil {
		t.Fatal(err)
	}
	for _, exit := range append(exits[1:], exit, again) {
		exit()
	}
	if h.streams != 0 || len(h.by) != 0 {
		t.Errorf("%d streams, %v", h.streams, h.by)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	counts := make([]int64, 26)
	if _, ok := percentile(0.95, counts); ok {
		t.Error("of nothing")
	}
	counts[0], counts[10] = 95, 5 // below 1 ms; 512 to 1024 ms
	if p, _ := percentile(0.95, counts); p != 0.001 {
		t.Errorf("95th is %v", p)
	}
	if p, _ := percentile(0.99, counts); p < 0.9 || p > 0.95 {
		t.Errorf("99th is %v", p)
	}
	counts[25] = 1000
	if p, _ := percentile(1, counts); p < 16777 {
		t.Errorf("the longest is %v s", p)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 s", 5 * time.Microsecond: "5 us", 12 * time.Millisecond: "12 ms", 1500 * time.Millisecond: "1.5 s", 59 * time.Second: "59 s", time.Minute: "1 min",
		90 * time.Second: "1 min 30 s", 2 * time.Hour: "2 h", 26 * time.Hour: "1 d 2 h", -time.Minute: "-1 min",
	} {
		if got := duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := count(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
}
