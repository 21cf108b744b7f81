package periodic

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/peltonq/pelton/periodic/internal/store"
)

// cache keeps schedules that were compiled, by id. Versions tell whether one still holds.
type cache struct {
	mu   sync.Mutex
	byID map[int64]*compiled
}

// maxCached bounds it: a few hundred bytes each.
const maxCached = 100_000

func newCache() *cache { return &cache{byID: map[int64]*compiled{}} }

// versions are those of the schedules that are known, 0 of others.
func (k *cache) versions(ids []int64) []int32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	versions := make([]int32, len(ids))
	for i, id := range ids {
		if c := k.byID[id]; c != nil {
			versions[i] = int32(c.version) //nolint:gosec // it is an integer of the database
		}
	}
	return versions
}

func (k *cache) get(id int64) *compiled {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byID[id]
}

// put keeps a schedule; if there are too many, any other goes.
func (k *cache) put(c *compiled) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.byID) >= maxCached {
		for id := range k.byID {
			delete(k.byID, id)
			break
		}
	}
	k.byID[c.id] = c
}

// compiledOf is the schedule of a row. Its name does not change with its version.
func (c *Client) compiledOf(row *store.Read) (*compiled, error) {
	if row.Spec == nil {
		if known := c.known.get(row.ID); known != nil && known.version == row.Version {
			return known, nil
		}
		return nil, errForgotten
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
	compiled.version, compiled.owner = row.Version, row.Owner
	c.known.put(compiled)
	return compiled, nil
}

// codeKey names a schedule that only its owner's processes can fire, as schedule_due.code does.
func codeKey(owner, name string) string { return owner + "/" + name }
