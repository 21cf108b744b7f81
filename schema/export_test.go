package schema

import "time"

// SetFailpoint has a keeper call fn at each step; an error ends the pass there, as a kill would.
func SetFailpoint(k *Keeper, fn func(step string) error) { k.failpoint = fn }

// SetPatience changes how long and how often a keeper tries to get its locks.
func SetPatience(k *Keeper, lock time.Duration, tries int) {
	k.patience = patience{lock: lock, tries: tries, pause: time.Millisecond}
}
