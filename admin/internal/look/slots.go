package look

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// NoUser takes slots without a share: for what nobody, or everybody, asked for.
const NoUser = 0

// Slots bound how many reads of the page and the API are under way at once; further ones wait. A crowd of one user's does not keep others out: a user
// has at most half of the slots, and of those who wait the one comes first whose user has the fewest, then who came first.
type Slots struct {
	mu      sync.Mutex
	free    int
	share   int           // of one user
	taken   map[int64]int // by user
	waiting []*waiter     // in the order in which they came
}

// waiter waits for a slot.
type waiter struct {
	user   int64
	served chan struct{} // closed when it has one
}

// NewSlots makes six slots. They are fewer than the connections of the pool that a server has for both, so that an enqueue finds one.
func NewSlots() *Slots { return &Slots{free: 6, share: 3, taken: map[int64]int{}} }

// Take waits for a slot for a user's read, or NoUser's; leave gives it back. The error is that of ctx.
func (s *Slots) Take(ctx context.Context, user int64) (leave func(), err error) {
	w := &waiter{user, make(chan struct{})}
	leave = func() { s.leave(user) }
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.serve()
	s.mu.Unlock()
	select {
	case <-w.served:
		return leave, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return nil, ctx.Err()
	}
	return leave, nil // served in this moment
}

func (s *Slots) leave(user int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if user != NoUser {
		if s.taken[user]--; s.taken[user] == 0 {
			delete(s.taken, user)
		}
	}
	s.serve()
}

// serve gives free slots to those who come first.
func (s *Slots) serve() {
	for s.free > 0 && len(s.waiting) > 0 {
		first := slices.MinFunc(s.waiting, func(a, b *waiter) int { return cmp.Compare(s.taken[a.user], s.taken[b.user]) })
		if s.taken[first.user] >= s.share {
			return
		}
		s.free--
		if first.user != NoUser {
			s.taken[first.user]++
		}
		i := slices.Index(s.waiting, first)
		s.waiting = slices.Delete(s.waiting, i, i+1)
		close(first.served)
	}
}
