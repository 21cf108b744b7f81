package access

import "context"

// Cheap makes the hashes of a store cost little, for tests that make many.
func (s *Store) Cheap() *Store {
	s.hasher = newHasher(cost{memory: 8, passes: 1, threads: 1})
	return s
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
	return h.h.matches(ctx, password, stored)
}

// ActorWith is an actor who was given some roles.
func ActorWith(capped *Grant, grants ...Grant) Actor {
	return Actor{Name: "a", grants: grants, cap: capped}
}
