package admin

import (
	"maps"
	"sync"
	"sync/atomic"
)

// children finds the metric of a set of labels without a lock. What is looked up is what the caller has at hand; what is made and
// kept is bounded by the caller's folding of keys.
type children[K comparable, V any] struct {
	create func(K) V

	mu  sync.Mutex // of those who add
	all atomic.Pointer[map[K]V]
}

func newChildren[K comparable, V any](create func(K) V) *children[K, V] {
	c := &children[K, V]{create: create}
	c.all.Store(&map[K]V{})
	return c
}

// get returns the metric of a key, if it is there.
func (c *children[K, V]) get(key K) (V, bool) {
	v, ok := (*c.all.Load())[key]
	return v, ok
}

// add returns the metric of a key, and makes it if it is not there.
func (c *children[K, V]) add(key K) V {
	if v, ok := c.get(key); ok {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.get(key); ok {
		return v
	}
	all := maps.Clone(*c.all.Load())
	v := c.create(key)
	all[key] = v
	c.all.Store(&all)
	return v
}
