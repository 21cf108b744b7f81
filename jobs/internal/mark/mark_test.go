package mark_test

import (
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs/internal/mark"
)

func TestMarkInMetadata(t *testing.T) {
	t.Parallel()
	metadata, err := mark.Mark{Run: 7, Node: 3, Try: 1, Retry: &mark.Retry{Backoff: 2}}.Metadata(map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	if got := mark.Of(metadata); got == nil || got.Run != 7 || got.Node != 3 || got.Try != 1 || got.Retry.Backoff != 2 {
		t.Errorf("%s was read as %+v", metadata, got)
	}
	for _, other := range []string{"", "{}", `{"a":"pelton:flow"}`, `{"pelton:flow":{}}`, `{"pelton:flow":null}`, `{"pelton:flow":1}`} {
		if got := mark.Of([]byte(other)); got != nil {
			t.Errorf("%q was read as %+v", other, got)
		}
	}
}

func TestRetryWaits(t *testing.T) {
	t.Parallel()
	fixed, doubled := mark.Retry{Backoff: 2}, mark.Retry{Backoff: 1, MaxBackoff: 5}
	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 1000: 5 * time.Second} {
		if got := doubled.Wait(attempt); got != want {
			t.Errorf("doubled, after attempt %d: %v, want %v", attempt, got, want)
		}
		if got := fixed.Wait(attempt); got != 2*time.Second {
			t.Errorf("fixed, after attempt %d: %v", attempt, got)
		}
	}
	shortened := mark.Retry{Backoff: 10, Jitter: 0.5}
	for range 100 {
		if got := shortened.Wait(1); got < 5*time.Second || got > 10*time.Second {
			t.Errorf("with jitter: %v", got)
		}
	}
}
