package access

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
)

// line is who waits for their password's hash to be computed. A crowd, from however many addresses, does not keep others out: those whose
// address has failed less often come first, then the networks take turns, then it is who came first.
type line struct {
	mu      sync.Mutex
	free    int // places
	waiting []*waiter
	turns   map[string]int64 // when a network was served last, while it has somebody waiting or served
	here    map[string]int   // how many of a network wait or are served
	turn    int64
}

// caller is who wants a place.
type caller struct {
	network  string
	failures int // of the address
}

// waiter is a caller in the line.
type waiter struct {
	caller

	served chan struct{} // closed when it has a place
}

func newLine(places int) *line {
	return &line{free: places, turns: map[string]int64{}, here: map[string]int{}}
}

// enter waits for a place. Whoever has got one (nil) leaves.
func (l *line) enter(ctx context.Context, c caller) error {
	w := &waiter{c, make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, w)
	l.here[c.network]++
	l.serve()
	l.mu.Unlock()
	select {
	case <-w.served:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, w)
	if i < 0 { // served in this moment
		return nil
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.gone(c)
	return context.Cause(ctx)
}

// leave gives a place back.
func (l *line) leave(c caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free++
	l.serve()
	l.gone(c)
}

func (l *line) gone(c caller) {
	if l.here[c.network]--; l.here[c.network] == 0 {
		delete(l.here, c.network)
		delete(l.turns, c.network)
	}
}

// serve gives free places to those who come first.
func (l *line) serve() {
	for l.free > 0 && len(l.waiting) > 0 {
		first := slices.MinFunc(l.waiting, func(a, b *waiter) int {
			return cmp.Or(cmp.Compare(a.failures, b.failures), cmp.Compare(l.turns[a.network], l.turns[b.network]))
		})
		i := slices.Index(l.waiting, first)
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.free--
		l.turn++
		l.turns[first.network] = l.turn
		close(first.served)
	}
}

// callerFrom is who calls from an address, or from the network that stands for one; counted: the tries that count as failed, with this one.
func callerFrom(address string, counted int) caller {
	c := caller{network: address, failures: counted - 1}
	a, err := netip.ParseAddr(address)
	if err != nil {
		p, err := netip.ParsePrefix(address)
		if err != nil {
			return c
		}
		a = p.Addr()
	}
	bits := 48
	if a.Unmap().Is4() {
		a, bits = a.Unmap(), 24
	}
	if p, err := a.WithZone("").Prefix(bits); err == nil {
		c.network = p.String()
	}
	return c
}
