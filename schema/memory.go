package schema

import (
	"sync"
	"time"
)

// memory is when something costly was last done to each partition, by this process. Safe for concurrent use.
type memory struct {
	pause time.Duration
	mu    sync.Mutex
	last  map[uint32]time.Time // by oid
}

// newMemory forgets after a twentieth of a retention, at most an hour.
func newMemory(retention time.Duration) *memory {
	return &memory{pause: min(retention/20, time.Hour), last: map[uint32]time.Time{}}
}

func (m *memory) due(oid uint32) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.last[oid]
	return !ok || time.Since(last) >= m.pause
}

func (m *memory) done(oid uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, last := range m.last {
		if time.Since(last) >= m.pause {
			delete(m.last, other)
		}
	}
	m.last[oid] = time.Now()
}
