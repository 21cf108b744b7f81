package flow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// Graph is a flow of a version as it was pushed: what it is made of. It is shared; nobody changes it.
type Graph = graph.Flow

// GraphNode is a node of it.
type GraphNode = graph.Node

// Graph reads a flow of a project's version (0: the newest). ErrNotFound if there is none.
func (c *Client) Graph(ctx context.Context, project, name string, version int) (Version, *Graph, error) {
	v, err := c.store.Version(ctx, c.pool, project, version)
	if err != nil {
		return Version{}, nil, notFound(err, "project %q has no version %d", project, version)
	}
	p, err := c.plan(ctx, c.pool, v.ID, name)
	if err != nil {
		return Version{}, nil, notFound(err, "version %d of project %q has no flow %q", v.No, project, name)
	}
	return v, p.Flow(), nil
}

// Version reads a version of a project (0: the newest), with its notes. ErrNotFound if there is none.
func (c *Client) Version(ctx context.Context, project string, no int) (Version, error) {
	v, err := c.store.Version(ctx, c.pool, project, no)
	return v, notFound(err, "project %q has no version %d", project, no)
}

// Param is a parameter of a node, and where its value comes from: "the run", "config of load", "outputs of extract".
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Explanation is what can be said of a node of a run.
type Explanation struct {
	Why         string  `json:"why"`              // as by Client.Why
	Params      []Param `json:"params,omitempty"` // by name, as they are now: of a node that has not started, some may be still to come
	ParamsFault string  `json:"params_fault,omitempty"`
}

// Explain says why a node stands as it does, and what its parameters are. Values of secrets are not among them. ErrNotFound if there is no such run or
// node.
func (c *Client) Explain(ctx context.Context, run int64, path string) (*Explanation, error) {
	l, n, err := c.nodeOf(ctx, run, path)
	if err != nil {
		return nil, err
	}
	e := &Explanation{}
	if e.Why, err = c.why(ctx, l, n); err != nil {
		return nil, err
	}
	scopes := l.scopes(n)
	values, err := param.Resolve(scopes)
	if err != nil { // what is not resolved is shown as it was written
		e.ParamsFault, values = err.Error(), scopes.Merge()
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !strings.HasPrefix(name, "secret.") {
			e.Params = append(e.Params, Param{name, values[name], scopes.From(name)})
		}
	}
	return e, nil
}

// nodeOf reads a run, and finds a node of it.
func (c *Client) nodeOf(ctx context.Context, run int64, path string) (*loaded, int, error) {
	r, err := c.store.Run(ctx, c.pool, run)
	if err != nil {
		return nil, 0, fmt.Errorf("run %d: %w", run, err)
	}
	l, err := c.read(ctx, c.pool, r)
	if err != nil {
		return nil, 0, fmt.Errorf("run %d: %w", run, err)
	}
	n := l.machine.Number(path)
	if n == decide.None {
		return nil, 0, fmt.Errorf("run %d of flow %s has no node %q: %w", run, r.Flow, path, ErrNotFound)
	}
	return l, n, nil
}
