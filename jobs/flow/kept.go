package flow

import "sync"

// kept keeps what was used last, up to so many bytes. Safe for concurrent use; what is kept is shared and never changed.
type kept[K comparable, V any] struct {
	limit  int // in bytes
	sizeOf func(V) int

	mu    sync.Mutex
	all   map[K]*keptOne[V]
	bytes int
	clock int64
}

type keptOne[V any] struct {
	value V
	bytes int
	used  int64 // the greater, the later
}

func newKept[K comparable, V any](limit int, sizeOf func(V) int) *kept[K, V] {
	return &kept[K, V]{limit: limit, sizeOf: sizeOf, all: map[K]*keptOne[V]{}}
}

func (k *kept[K, V]) get(key K) (value V, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.touch(key)
}

func (k *kept[K, V]) touch(key K) (value V, found bool) {
	one := k.all[key]
	if one == nil {
		return value, false
	}
	k.clock++
	one.used = k.clock
	return one.value, true
}

// keep keeps something, unless somebody was quicker, and returns what is kept. What was not used for longest goes; what comes stays,
// whatever its size.
func (k *kept[K, V]) keep(key K, value V) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	if other, found := k.touch(key); found {
		return other
	}
	one := &keptOne[V]{value: value, bytes: k.sizeOf(value)}
	for len(k.all) > 0 && k.bytes+one.bytes > k.limit {
		var oldest K
		var least *keptOne[V]
		for key, other := range k.all {
			if least == nil || other.used < least.used {
				oldest, least = key, other
			}
		}
		k.bytes -= least.bytes
		delete(k.all, oldest)
	}
	k.all[key] = one
	k.bytes += one.bytes
	k.clock++
	one.used = k.clock
	return value
}
