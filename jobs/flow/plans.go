package flow

import (
	"context"
	"sync"

	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

const (
	plansBytes = 64 << 20 // of plans kept in memory
	planFactor = 5        // about what a plan takes for each byte of its graph's JSON
)

// plan is a flow of a version with all that follows from its graph alone. It is shared by the runs of the flow and never changed.
type plan struct {
	*decide.Plan

	children [][]int // by node
	bytes    int     // about
	used     int64   // the greater, the later
}

type planKey struct {
	version int64
	flow    string
}

// plans keeps those that were used last. Safe for concurrent use.
type plans struct {
	limit int // in bytes

	mu    sync.Mutex
	kept  map[planKey]*plan
	bytes int
	clock int64
}

func newPlans(limit int) *plans { return &plans{limit: limit, kept: map[planKey]*plan{}} }

// plan returns a flow's plan, read and made once while it is kept. ErrNotFound if there is no such flow.
func (c *Client) plan(ctx context.Context, db store.DB, version int64, flow string) (*plan, error) {
	key := planKey{version, flow}
	if p := c.plans.get(key); p != nil {
		return p, nil
	}
	g, size, err := c.store.Graph(ctx, db, version, flow)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(g, planFactor*size)
	if err != nil {
		return nil, err
	}
	return c.plans.keep(key, p), nil
}

func newPlan(g *graph.Flow, bytes int) (*plan, error) {
	made, err := decide.NewPlan(g)
	if err != nil {
		return nil, err
	}
	return &plan{Plan: made, children: g.Index().Children, bytes: bytes}, nil
}

func (k *plans) get(key planKey) *plan {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.touch(key)
}

func (k *plans) touch(key planKey) *plan {
	p := k.kept[key]
	if p != nil {
		k.clock++
		p.used = k.clock
	}
	return p
}

// keep keeps a plan, unless somebody was quicker, and returns the one that is kept. Those that were not used for longest go; the one
// that comes stays, whatever its size.
func (k *plans) keep(key planKey, p *plan) *plan {
	k.mu.Lock()
	defer k.mu.Unlock()
	if other := k.touch(key); other != nil {
		return other
	}
	for len(k.kept) > 0 && k.bytes+p.bytes > k.limit {
		var oldest planKey
		for key, other := range k.kept {
			if o := k.kept[oldest]; o == nil || other.used < o.used {
				oldest = key
			}
		}
		k.bytes -= k.kept[oldest].bytes
		delete(k.kept, oldest)
	}
	k.kept[key] = p
	k.bytes += p.bytes
	return k.touch(key)
}
