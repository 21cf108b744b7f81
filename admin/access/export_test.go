package access

import (
	"context"
	"testing"
	"time"
)

// Cheap makes the hashes of a store cost little, for tests that make many.
func (s *Store) Cheap() *Store {
	s.hasher = newHasher(cost{memory: 8, passes: 1, threads: 1})
	return s
}

// ChangePassword is changePassword.
func (s *Store) ChangePassword(ctx context.Context, name, old, password, address string) (secret string, err error) {
	return s.changePassword(ctx, name, old, password, address)
}

// Hashes is how many hashes of passwords a store has computed.
func (s *Store) Hashes() int64 { return s.hasher.computed.Load() }

// What tests look into.
var (
	ErrNoRole = errNoRole
)

// UsualHasher is the hasher of a store that nobody made cheap.
func UsualHasher() Hasher { return Hasher{newHasher(usualCost)} }

// Hasher computes hashes of passwords.
type Hasher struct{ h *hasher }

// HashOf is hash.
func (h Hasher) HashOf(ctx context.Context, password string) (string, error) {
	return h.h.hash(ctx, password)
}

// Matches is matches.
func (h Hasher) Matches(ctx context.Context, password, stored string) (bool, error) {
	return h.h.matches(ctx, caller{}, password, stored)
}

// ActorWith is an actor who was given some roles.
func ActorWith(capped *Grant, grants ...Grant) Actor {
	return Actor{Name: "a", grants: grants, cap: capped}
}

// FillLine has all hashes that are computed at once go on until leave is called.
func (s *Store) FillLine(t *testing.T) (leave func()) {
	t.Helper()
	for range hashesAtOnce {
		if err := s.hasher.line.enter(t.Context(), caller{}); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for range hashesAtOnce {
			s.hasher.line.leave(caller{})
		}
	}
}

// AwaitWaiting waits until so many wait for a hash.
func (s *Store) AwaitWaiting(t *testing.T, n int) {
	t.Helper()
	for give := time.Now().Add(time.Minute); s.hasher.line.waits() != n; {
		if time.Now().After(give) {
			t.Fatalf("%d wait for a hash, want %d", s.hasher.line.waits(), n)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // until they wait
	}
}
