package flow

import (
	"context"
	"fmt"
	"io"

	"github.com/peltonq/pelton/jobs/flow/internal/draw"
)

// Picture is a flow's picture without statuses, one for all its runs. Node i of the graph is the group n<i> in it.
type Picture = draw.Picture

// Limits of what is drawn.
const (
	MaxDrawnNodes = draw.MaxNodes
	MaxDrawnEdges = draw.MaxEdges
)

// ErrTooLarge says that a flow has more nodes or edges than are drawn.
var ErrTooLarge = draw.ErrTooLarge

// picturesBytes is how much is kept in memory of pictures.
const picturesBytes = 32 << 20

// Picture draws a flow of a project's version (0: the newest), once while it is kept. Errors: ErrNotFound, ErrTooLarge. Large flows take some tenths of a second; one
// is drawn at a time.
func (c *Client) Picture(ctx context.Context, project, name string, version int) (*Picture, error) {
	v, err := c.store.Version(ctx, c.pool, project, version)
	if err != nil {
		return nil, notFound(err, "project %q has no version %d", project, version)
	}
	picture, err := c.picture(ctx, v.ID, name)
	return picture, notFound(err, "version %d of project %q has no flow %q", v.No, project, name)
}

func (c *Client) picture(ctx context.Context, version int64, name string) (*Picture, error) {
	key := planKey{version, name}
	if picture, found := c.pictures.get(key); found {
		return picture, nil
	}
	p, err := c.plan(ctx, c.pool, version, name)
	if err != nil {
		return nil, err
	}
	select {
	case c.drawing <- struct{}{}:
		defer func() { <-c.drawing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if picture, found := c.pictures.get(key); found { // somebody else has drawn it meanwhile
		return picture, nil
	}
	picture, err := draw.Draw(ctx, p.Flow())
	if err != nil {
		return nil, err
	}
	return c.pictures.keep(key, picture), nil
}

// SVG draws a flow of a project's version (0: the newest) and writes the picture.
func (c *Client) SVG(ctx context.Context, w io.Writer, project, name string, version int) error {
	picture, err := c.Picture(ctx, project, name, version)
	if err != nil {
		return err
	}
	return picture.Write(w, nil)
}

// RunSVG draws a run's flow, its nodes coloured by their statuses.
func (c *Client) RunSVG(ctx context.Context, w io.Writer, run int64) error {
	r, err := c.store.Run(ctx, c.pool, run)
	if err != nil {
		return fmt.Errorf("run %d: %w", run, err)
	}
	nodes, err := c.store.ShownNodes(ctx, run, "", 0)
	if err != nil {
		return fmt.Errorf("run %d: %w", run, err)
	}
	picture, err := c.picture(ctx, r.VersionID, r.Flow)
	if err != nil {
		return fmt.Errorf("run %d: %w", run, err)
	}
	status := make([]string, len(nodes))
	for _, n := range nodes {
		status[n.No] = n.Status
	}
	return picture.Write(w, func(i int) string { return status[i] })
}
