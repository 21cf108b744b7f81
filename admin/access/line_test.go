package access

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// waits is how many wait in a line.
func (l *line) waits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// A crowd from one network, each address of which has failed less than its limit, does not keep others waiting; nor do those who have failed
// often keep those who have not.
func TestCrowdsDoNotKeepOthersOut(t *testing.T) {
	t.Parallel()
	const crowd = 300
	l := newLine(hashesAtOnce)
	served := make(chan string, 2*crowd)
	calls := 0
	call := func(name string, c caller) {
		go func() {
			if err := l.enter(t.Context(), c); err != nil {
				t.Error(err)
			}
			served <- name
		}()
		calls++
		for l.waits() < calls-hashesAtOnce {
			time.Sleep(time.Millisecond) //nolint:forbidigo // until it waits
		}
	}
	first := callerFrom("2001:db8:7::/64", 1)
	for range hashesAtOnce {
		call("crowd", first)
		<-served
	}
	for i := range crowd {
		call("crowd", callerFrom(fmt.Sprintf("2001:db8:7:%x::/64", i), 1))
	}
	call("failed often", callerFrom("198.51.100.7", 15))
	call("one", callerFrom("192.0.2.1", 1))
	call("two", callerFrom("2001:db8:8::/64", 1))
	for place, want := range []string{"one", "two", "crowd"} {
		l.leave(first)
		if got := <-served; got != want {
			t.Errorf("served at place %d: %s, want %s", place+1, got, want)
		}
	}
	for n := 1; n < crowd; n++ {
		l.leave(first)
		if got := <-served; got != "crowd" {
			t.Fatalf("%s was served before the last of the crowd, who have not failed", got)
		}
	}
	l.leave(first)
	if got := <-served; got != "failed often" {
		t.Errorf("at last: %s", got)
	}
}

// Who goes away before they are served leaves nothing behind.
func TestLeavingALine(t *testing.T) {
	t.Parallel()
	l := newLine(1)
	here := callerFrom("192.0.2.1", 1)
	if err := l.enter(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := l.enter(ctx, callerFrom("192.0.3.1", 1)); !errors.Is(err, gone) {
		t.Error(err)
	}
	l.leave(here)
	if err := l.enter(t.Context(), here); err != nil {
		t.Error(err)
	}
	l.leave(here)
	if l.free != 1 || len(l.waiting)+len(l.here)+len(l.turns) != 0 {
		t.Errorf("%+v", l)
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.77": "192.0.2.0/24", "::ffff:192.0.2.77": "192.0.2.0/24", "2001:db8:7:8::/64": "2001:db8:7::/48", "2001:db8:7:8::9": "2001:db8:7::/48", "": "", "unix": "unix",
	} {
		if got := callerFrom(address, 1).network; got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
