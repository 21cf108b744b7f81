package look

import (
	"context"
	"embed"

	"github.com/peltonq/pelton/internal/sqlfile"
)

//go:embed sql/*.sql
var files embed.FS

// Slots bound how many reads of the page and the API are under way at once; further ones wait.
type Slots chan struct{}

// NewSlots makes slots. They are fewer than the connections of the pool that a server has for both, so that an enqueue finds one.
func NewSlots() Slots { return make(Slots, 6) }

// Take waits for a slot; leave gives it back.
func (s Slots) Take(ctx context.Context) (leave func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Load returns the statements for a schema.
func Load(schema string) *sqlfile.Set { return sqlfile.Load(files, "sql", schema) }
