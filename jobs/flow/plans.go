package flow

import (
	"context"

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
}

type planKey struct {
	version int64
	flow    string
}

func newPlans(limit int) *kept[planKey, *plan] {
	return newKept[planKey](limit, func(p *plan) int { return p.bytes })
}

// plan returns a flow's plan, read and made once while it is kept. ErrNotFound if there is no such flow.
func (c *Client) plan(ctx context.Context, db store.DB, version int64, flow string) (*plan, error) {
	key := planKey{version, flow}
	if p, found := c.plans.get(key); found {
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
