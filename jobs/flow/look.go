package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/nodecmd"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// Version is a pushed version of a project.
type Version = store.Version

// Entry is a flow of a project's newest version, with its last run.
type Entry = store.FlowEntry

// RunRow is a run.
type RunRow = store.Run

// NodeRow is a node of a run.
type NodeRow = store.Node

// Attempt is one that a node's job has behind it, while another is to follow.
type Attempt = store.Attempt

// EntryFilter selects flows of the newest versions; zero fields select all.
type EntryFilter = store.FlowFilter

// RunFilter selects runs; zero fields select all.
type RunFilter = store.RunFilter

// RunDetail is a run with its nodes, in the order of the graph, the instances of a for_each below it.
type RunDetail struct {
	RunRow

	Nodes []NodeRow `json:"nodes"`
}

// Flows lists the flows of the newest versions; of all projects if project is "". ErrNotFound if there is no such project.
func (c *Client) Flows(ctx context.Context, project string) ([]Entry, error) {
	return c.ListFlows(ctx, EntryFilter{Project: project}, 0)
}

// ListFlows lists flows of the newest versions by project and name, at most limit; all if limit is 0. ErrNotFound if the filter names a project that
// there is not.
func (c *Client) ListFlows(ctx context.Context, filter EntryFilter, limit int) ([]Entry, error) {
	list, err := c.store.Flows(ctx, filter, limit)
	if err == nil && len(list) == 0 {
		err = c.known(ctx, filter.Project, "")
	}
	if err != nil {
		return nil, fmt.Errorf("list flows: %w", err)
	}
	return list, nil
}

// Versions lists versions, the newest first, at most limit; of all projects if project is "". ErrNotFound if there is no such project.
func (c *Client) Versions(ctx context.Context, project string, limit int) ([]Version, error) {
	list, err := c.store.Versions(ctx, project, limit)
	if err == nil && len(list) == 0 {
		err = c.known(ctx, project, "")
	}
	if err != nil {
		return nil, fmt.Errorf("list versions: %w", err)
	}
	return list, nil
}

// VersionsBefore lists versions of a project with numbers below before, the newest first, at most limit. ErrNotFound if there is no such project.
func (c *Client) VersionsBefore(ctx context.Context, project string, before, limit int) ([]Version, error) {
	list, err := c.store.VersionsBefore(ctx, project, before, limit)
	if err == nil && len(list) == 0 {
		err = c.known(ctx, project, "")
	}
	if err != nil {
		return nil, fmt.Errorf("list versions of %q: %w", project, err)
	}
	return list, nil
}

// Runs lists runs, the newest first, at most limit. ErrNotFound if the filter names a project or flow that there is not.
func (c *Client) Runs(ctx context.Context, filter RunFilter, limit int) ([]RunRow, error) {
	list, err := c.store.Runs(ctx, filter, limit)
	if err == nil && len(list) == 0 {
		err = c.known(ctx, filter.Project, filter.Flow)
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return list, nil
}

// RunStatuses are those that a run may have.
func RunStatuses() []string {
	return decide.RunStatuses()
}

// known fails with ErrNotFound if a project, or a flow of its newest version, does not exist; "" is any.
func (c *Client) known(ctx context.Context, project, name string) error {
	if project == "" {
		return nil
	}
	v, err := c.store.Version(ctx, c.pool, project, 0)
	if err != nil {
		return notFound(err, "there is no project %q", project)
	}
	if name == "" {
		return nil
	}
	_, err = c.plan(ctx, c.pool, v.ID, name)
	return notFound(err, "version %d of project %q has no flow %q", v.No, project, name)
}

// Get reads a run and its nodes. A node whose job is being worked is RUNNING since that was taken, and one whose job is tried again has what was tried. ErrNotFound if there is no such run.
func (c *Client) Get(ctx context.Context, run int64) (*RunDetail, error) {
	return c.get(ctx, run, store.AllOutputs, 0)
}

// triedShown is how many characters of the error of an attempt there are where not all is read.
const triedShown = 1000

// GetPart is Get that reads no more than so many bytes of outputs, those of the first nodes: others are LeftOut. It cuts items after 1,000 characters,
// reasons after 5,000, and the errors of what was tried after 1,000. Node has all of a node.
func (c *Client) GetPart(ctx context.Context, run int64, outputs int) (*RunDetail, error) {
	return c.get(ctx, run, max(0, outputs), triedShown)
}

func (c *Client) get(ctx context.Context, run int64, outputs, cut int) (*RunDetail, error) {
	r, err := c.store.Run(ctx, c.pool, run)
	if err != nil {
		return nil, fmt.Errorf("run %d: %w", run, err)
	}
	nodes, err := c.store.ShownNodes(ctx, run, "", outputs)
	if err != nil {
		return nil, fmt.Errorf("run %d: %w", run, err)
	}
	tried, err := c.store.Tried(ctx, run, cut)
	if err != nil {
		return nil, fmt.Errorf("run %d: %w", run, err)
	}
	for _, a := range tried {
		if int(a.No) < len(nodes) {
			addTried(&nodes[a.No], a)
		}
	}
	return &RunDetail{r, inPlace(nodes)}, nil
}

// Node reads a node of a run, as Get does. ErrNotFound if there is no such run or node.
func (c *Client) Node(ctx context.Context, run int64, path string) (*NodeRow, error) {
	nodes, err := c.store.ShownNodes(ctx, run, path, store.AllOutputs)
	if err != nil {
		return nil, fmt.Errorf("run %d: %w", run, err)
	}
	if path == "" || len(nodes) == 0 {
		return nil, fmt.Errorf("run %d has no node %q: %w", run, path, ErrNotFound)
	}
	tried, err := c.store.Tried(ctx, run, 0)
	if err != nil {
		return nil, fmt.Errorf("run %d: %w", run, err)
	}
	for _, a := range tried {
		if a.No == nodes[0].No {
			addTried(&nodes[0], a)
		}
	}
	return &nodes[0], nil
}

// NodeJob is a job of a node.
type NodeJob = store.NodeJob

// NodeJobs lists the jobs of a run's nodes, those of earlier tries too, in the order in which they were made: of the node with a path and those in it, or
// of all if path is "", from behind the job after on, at most limit. There are none of a run that there is not.
func (c *Client) NodeJobs(ctx context.Context, run int64, path string, after int64, limit int) ([]NodeJob, error) {
	list, err := c.store.NodeJobs(ctx, run, path, after, limit)
	if err != nil {
		return nil, fmt.Errorf("jobs of run %d: %w", run, err)
	}
	return list, nil
}

// HasJob tells whether a job is, or was, one of a run's nodes.
func (c *Client) HasJob(ctx context.Context, run, job int64) (bool, error) {
	has, err := c.store.HasJob(ctx, run, job)
	if err != nil {
		return false, fmt.Errorf("run %d: %w", run, err)
	}
	return has, nil
}

// inPlace puts the instances of a for_each below it: their rows come behind all others, in the order in which they were made.
func inPlace(nodes []NodeRow) []NodeRow {
	of := map[int32][]NodeRow{}
	for _, n := range nodes {
		if n.Template != nil {
			of[*n.Template] = append(of[*n.Template], n)
		}
	}
	if len(of) == 0 {
		return nodes
	}
	list := make([]NodeRow, 0, len(nodes))
	for _, n := range nodes {
		if n.Template == nil {
			list = append(append(list, n), of[n.No]...)
		}
	}
	return list
}

// addTried adds what was tried to a node whose job has not ended. Its attempt is then the one that runs, or the last that did.
func addTried(n *NodeRow, a Attempt) {
	if decide.Status(n.Status).Ended() { // it began since the nodes were read
		return
	}
	n.Tried, n.Attempt, n.RetryAt = append(n.Tried, a), a.Attempt, a.RetryAt
	switch {
	case n.Status != decide.Running.String():
	case n.RetryAt != nil: // its executor has it on its list for a moment more
		n.Status, n.StartedAt = decide.Queued.String(), nil
	default:
		n.Attempt++
	}
}

// Ended waits until a run has ended and nothing more is asked of it (a retry that was asked for has begun then, and ended), or ctx
// has, and returns the run; changed, if not nil, is told of it each time it has moved.
func (c *Client) Ended(ctx context.Context, run int64, changed func(*RunDetail)) (*RunDetail, error) {
	step := int64(-1)
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		r, err := c.store.Run(ctx, c.pool, run)
		if err != nil {
			return nil, fmt.Errorf("run %d: %w", run, err)
		}
		if r.Step != step || r.EndedAt != nil {
			step = r.Step
			wait = firstLook
		}
		if changed != nil || r.EndedAt != nil {
			asked, err := c.store.Asked(ctx, run, c.engine.head.Floor()) // before the run is read: what is applied in between shows in the run
			if err != nil {
				return nil, fmt.Errorf("run %d: %w", run, err)
			}
			detail, err := c.Get(ctx, run)
			if err != nil {
				return nil, err
			}
			if changed != nil {
				changed(detail)
			}
			if detail.EndedAt != nil && !asked {
				return detail, nil
			}
		}
		if !service.Sleep(ctx, wait) {
			return nil, context.Cause(ctx)
		}
	}
}

// Why says in a sentence why a node has not started, what it waits for, or why it ended as it did. ErrNotFound if there is no such
// run or node.
func (c *Client) Why(ctx context.Context, run int64, path string) (string, error) {
	l, n, err := c.nodeOf(ctx, run, path)
	if err != nil {
		return "", err
	}
	return c.why(ctx, l, n)
}

func (c *Client) why(ctx context.Context, l *loaded, n int) (string, error) {
	if l.rows[n].JobID == nil || l.machine.Node(n).Status != decide.Queued {
		return l.machine.Why(n), nil
	}
	tried, err := c.store.Tried(ctx, l.run.ID, 0)
	if err != nil {
		return "", fmt.Errorf("run %d: %w", l.run.ID, err)
	}
	for _, a := range slices.Backward(tried) {
		if int(a.No) == n && a.RetryAt != nil {
			return fmt.Sprintf("attempt %d %s and the next is due at %s: %s", a.Attempt, a.Outcome, a.RetryAt.UTC().Format(time.RFC3339), text(a.Error)), nil
		}
	}
	return c.whyQueued(ctx, *l.rows[n].JobID)
}

// WhyRun says in a sentence how a run stands, what it waits for, or why it ended as it did. ErrNotFound if there is no such run.
func (c *Client) WhyRun(ctx context.Context, run int64) (string, error) {
	r, err := c.store.Run(ctx, c.pool, run)
	if err != nil {
		return "", fmt.Errorf("run %d: %w", run, err)
	}
	if r.Status == decide.Queued.String() {
		live, err := c.store.LiveRuns(ctx, c.pool, r.ProjectID, r.Flow)
		if err != nil {
			return "", fmt.Errorf("run %d: %w", run, err)
		}
		for _, other := range live {
			if other.Status != r.Status {
				return fmt.Sprintf("it waits for run %d of its flow, which is %s", other.ID, other.Status), nil
			}
		}
	}
	if r.Status == decide.Preparing.String() && r.Before != nil && r.Pipeline == 3 {
		return fmt.Sprintf("it waits for the end of run %d (pipeline 3)", *r.Before), nil
	}
	l, err := c.read(ctx, c.pool, r)
	if err != nil {
		return "", fmt.Errorf("run %d: %w", run, err)
	}
	return l.machine.WhyRun(), nil
}

// whyQueued says what a node's job waits for.
func (c *Client) whyQueued(ctx context.Context, job int64) (string, error) {
	j, err := c.store.QueuedJob(ctx, job)
	kind := "kind " + j.Kind
	if j.Kind == nodecmd.Kind {
		kind = "commands of flows (kind " + j.Kind + ")"
	}
	switch {
	case errors.Is(err, ErrNotFound): // it was deleted, which the run hears of soon
		return fmt.Sprintf("its job %d is gone", job), nil
	case err != nil:
		return "", fmt.Errorf("job %d: %w", job, err)
	case !j.Worked: // an executor that does not know the kind takes it for a moment, to put it where it waits for one that does
		return fmt.Sprintf("its job waits: no executor works %s", kind), nil
	case j.Taken:
		return "its job runs", nil
	case j.Paused:
		return fmt.Sprintf("its job waits: queue %s is paused", j.Queue), nil
	case !j.Claimed:
		return fmt.Sprintf("its job waits: no executor that works %s takes jobs of queue %s", kind, j.Queue), nil
	}
	return fmt.Sprintf("its job waits in queue %s for its turn", j.Queue), nil
}
