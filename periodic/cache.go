package periodic

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/peltonq/pelton/periodic/internal/store"
)

// cache keeps schedules that were compiled, by id. Versions tell whether one still holds.
type cache struct {
	mu    sync.Mutex
	byID  map[int64]*compiled
	bytes int // of their specs
}

// Bounds of a cache: a compiled schedule takes about a kilobyte beside its spec.
const (
	maxCached      = 50_000
	maxCachedBytes = 64 << 20
)

func newCache() *cache { return &cache{byID: map[int64]*compiled{}} }

// take returns what is known of schedules, and their versions, in order; 0: not known.
func (k *cache) take(ids []int64) (known map[int64]*compiled, versions []int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, versions = make(map[int64]*compiled, len(ids)), make([]int32, len(ids))
	for i, id := range ids {
		if c := k.byID[id]; c != nil {
			known[id], versions[i] = c, int32(c.version) //nolint:gosec // it is an integer of the database
		}
	}
	return known, versions
}

// put keeps a schedule; if there are too many, others go, whichever they are.
func (k *cache) put(c *compiled) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(c.id)
	for id := range k.byID {
		if len(k.byID) < maxCached && k.bytes+c.size <= maxCachedBytes {
			break
		}
		k.drop(id)
	}
	k.byID[c.id] = c
	k.bytes += c.size
}

func (k *cache) drop(id int64) {
	if old := k.byID[id]; old != nil {
		k.bytes -= old.size
		delete(k.byID, id)
	}
}

// compiledOf is the schedule of a row, or the known one if that still holds. Its name does not change with its version.
func (c *Client) compiledOf(row *store.Read, known *compiled) (*compiled, error) {
	if row.Spec == nil {
		return known, nil
	}
	var s Schedule
	if err := json.Unmarshal([]byte(*row.Spec), &s); err != nil {
		return nil, fmt.Errorf("schedule %q: its stored spec: %w", row.Name, err)
	}
	s.Name = row.Name
	var code *coded
	if row.Code {
		if code = c.coded[codeKey(row.Owner, row.Name)]; code == nil {
			return nil, fmt.Errorf("schedule %q can only be fired by a process of %q", row.Name, row.Owner)
		}
	}
	compiled, err := s.compile(row.ID, row.CreatedAt, noTime, code)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", row.Name, err)
	}
	compiled.version, compiled.owner, compiled.size = row.Version, row.Owner, len(*row.Spec)
	c.known.put(compiled)
	return compiled, nil
}

// codeKey names a schedule that only its owner's processes can fire, as schedule_due.code does.
func codeKey(owner, name string) string { return owner + "/" + name }
