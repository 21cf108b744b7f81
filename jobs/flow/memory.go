package flow

import (
	"sync"

	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

const (
	memoryBytes = 192 << 20 // of runs kept in memory
	nodeBytes   = 600       // about what a node takes beside its texts
)

// memory keeps runs between their steps. Each is checked against its row's step before it is used. Safe for concurrent use; a run itself
// belongs to whoever advances it.
type memory struct {
	limit int // in bytes

	mu    sync.Mutex
	runs  map[int64]*loaded
	clock int64
}

func newMemory(limit int) *memory { return &memory{limit: limit, runs: map[int64]*loaded{}} }

// get returns a run if it is kept as its row is.
func (m *memory) get(run store.Run) *loaded {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.runs[run.ID]
	if l == nil || l.run.Step != run.Step {
		return nil
	}
	l.run = run
	return l
}

// keep keeps a run after a step of it, unless it has ended. Those that were not used for longest go.
func (m *memory) keep(l *loaded) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.ended {
		delete(m.runs, l.run.ID)
		return
	}
	m.clock++
	l.used, l.kept = m.clock, l.bytes
	m.runs[l.run.ID] = l
	total := 0
	for _, other := range m.runs {
		total += other.kept
	}
	for total > m.limit && len(m.runs) > 1 {
		var oldest int64
		for id, other := range m.runs {
			if o := m.runs[oldest]; o == nil || other.used < o.used {
				oldest = id
			}
		}
		total -= m.runs[oldest].kept
		delete(m.runs, oldest)
	}
}

// forget drops a run whose rows may not be as it is in memory.
func (m *memory) forget(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs, id)
}

// sizeOf is about what a node takes.
func sizeOf(r *store.Node) int {
	size := nodeBytes + len(r.Path) + 3*len(r.Outputs)
	for _, s := range []*string{r.Item, r.Reason, r.Held} {
		if s != nil {
			size += 2 * len(*s)
		}
	}
	return size
}
