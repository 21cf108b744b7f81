package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// RunParams say what to run.
type RunParams struct {
	Project string
	Flow    string
	Version int // of the project; 0: the newest
	Options Options
}

// RunningError is ErrRunning with the run that is in the way.
type RunningError struct {
	Run  int64
	Flow string
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("run %d of flow %s has not ended, and concurrent is %q", e.Run, e.Flow, Skip)
}

// Is makes it ErrRunning.
func (e *RunningError) Is(err error) bool { return err == ErrRunning }

// Run starts a run and returns its id. It is decided here, under the project's lock, whether it runs, waits or is refused.
// Errors: ErrNotFound, a *RunningError, or what is wrong with the options.
func (c *Client) Run(ctx context.Context, p RunParams) (run int64, err error) {
	err = c.store.Tx(ctx, func(tx pgx.Tx) (err error) {
		run, err = c.RunTx(ctx, tx, p)
		return err
	})
	if err != nil {
		return 0, err
	}
	c.hint(ctx)
	return run, nil
}

// RunTx is Run in the caller's transaction, which should be short: runs of the project's flows that are started meanwhile wait for it.
// Without a hint a scheduler finds the run within its idle look, a minute at most; call Hint after the commit.
func (c *Client) RunTx(ctx context.Context, tx pgx.Tx, p RunParams) (int64, error) {
	run, err := c.runTx(ctx, tx, p)
	if err != nil {
		return 0, fmt.Errorf("run flow %s/%s: %w", p.Project, p.Flow, err)
	}
	return run, nil
}

// CheckRunTx tells for what Run would refuse a run at any time: a version, a flow or a node that there is not, or options. False: there is no such project, so
// nobody can tell. It takes no locks.
func (c *Client) CheckRunTx(ctx context.Context, tx pgx.Tx, p RunParams) (known bool, err error) {
	if _, err := c.store.Version(ctx, tx, p.Project, 0); err != nil {
		if errors.Is(err, ErrNotFound) {
			return false, p.Options.Check()
		}
		return false, err
	}
	_, _, err = c.wanted(ctx, tx, p)
	return true, err
}

// Hint tells schedulers that runs have something to do.
func (c *Client) Hint(ctx context.Context) { c.hint(ctx) }

func (c *Client) hint(ctx context.Context) {
	if err := c.jobs.HintFlows(ctx); err != nil {
		c.log.DebugContext(ctx, "no hint for flows; schedulers look by themselves", "error", err)
	}
}

func (c *Client) runTx(ctx context.Context, tx pgx.Tx, p RunParams) (int64, error) {
	project, err := c.store.LockProject(ctx, tx, p.Project)
	if err != nil {
		return 0, notFound(err, "there is no project %q", p.Project)
	}
	version, plan, err := c.wanted(ctx, tx, p)
	if err != nil {
		return 0, err
	}
	g := plan.Flow()
	o := p.Options
	live, err := c.store.LiveRuns(ctx, tx, project, p.Flow)
	if err != nil {
		return 0, err
	}
	at, err := c.placeOf(ctx, tx, o.Concurrent, live)
	if err != nil {
		return 0, err
	}
	r := store.NewRun{
		VersionID: version.ID, Flow: p.Flow, Status: at.status.String(), By: c.jobs.Actor(ctx), Before: at.before, Pipeline: at.pipeline,
		Priority: cmp.Or(o.Priority, g.Opts.Priority, defaultPriority),
	}
	if r.Paths, r.Statuses, err = newNodes(plan, o.Disabled); err != nil {
		return 0, err
	}
	if r.Options, err = json.Marshal(o); err != nil {
		return 0, fmt.Errorf("encode options: %w", err)
	}
	r.Trace = c.created(ctx, p, version)
	run, err := c.store.CreateRun(ctx, tx, r)
	if err != nil {
		return 0, err
	}
	if err := c.begin(ctx, tx, run, at); err != nil {
		return 0, err
	}
	return run, c.store.Audit(ctx, tx, c.jobs.AuditedActor(ctx), "flow.run", runTarget(run), nil, map[string]any{
		"project": p.Project, "flow": p.Flow, "version": version.No, "options": o,
	})
}

// wanted is the flow that is to run, in a project that there is, with options that are checked.
func (c *Client) wanted(ctx context.Context, tx pgx.Tx, p RunParams) (store.Version, *plan, error) {
	version, err := c.store.Version(ctx, tx, p.Project, p.Version)
	if err != nil {
		return version, nil, notFound(err, "project %q has no version %d", p.Project, p.Version)
	}
	made, err := c.plan(ctx, tx, version.ID, p.Flow)
	if err != nil {
		return version, nil, notFound(err, "version %d of project %q has no flow %q", version.No, p.Project, p.Flow)
	}
	if err := p.Options.validate(made.Flow()); err != nil {
		return version, nil, &InvalidOptionsError{err}
	}
	return version, made, nil
}

const defaultPriority = 5

// place is where a run that is to begin stands among the live ones of its flow.
type place struct {
	status   decide.Status // PREPARING, or QUEUED if it waits for its turn
	before   *int64        // the run that it follows
	pipeline int
}

// placeOf says what a run's option means while others are live. The project's lock must be held. Errors: a *RunningError.
func (c *Client) placeOf(ctx context.Context, tx pgx.Tx, concurrent Concurrent, live []store.Run) (place, error) {
	at := place{status: decide.Preparing}
	if len(live) == 0 {
		return at, nil
	}
	newest := live[len(live)-1]
	switch concurrent {
	case Skip:
		return at, &RunningError{newest.ID, newest.Flow}
	case Queue:
		at.status = decide.Queued
	case Pipeline1, Pipeline2, Pipeline3:
		at.before = &newest.ID
		at.pipeline, _ = strconv.Atoi(string(concurrent[len(concurrent)-1:]))
		return at, c.follow(ctx, tx, newest.ID)
	case Allow, "":
	}
	return at, nil
}

// begin has a run begin whose turn it is.
func (c *Client) begin(ctx context.Context, tx pgx.Tx, run int64, at place) error {
	if at.status == decide.Queued {
		return nil // the end of another tells it
	}
	return c.store.Ask(ctx, tx, run, -1, actBegin, nil)
}

// newNodes are the paths and statuses of a new run's nodes.
func newNodes(plan *plan, disabled []string) (paths, statuses []string, err error) {
	nodes, err := plan.NewNodes(disabled...)
	if err != nil {
		return nil, nil, err
	}
	for i := range nodes {
		paths = append(paths, plan.Flow().Nodes[i].Path)
		statuses = append(statuses, nodes[i].Status.String())
	}
	return paths, statuses, nil
}

// follow notes that the run before is followed, under its row's lock: from then on it tells its followers of its nodes' ends.
func (c *Client) follow(ctx context.Context, tx pgx.Tx, before int64) error {
	if _, err := c.store.Lock(ctx, tx, before); err != nil {
		return err
	}
	return c.store.Follow(ctx, tx, before)
}

func runTarget(run int64) string { return "run " + strconv.FormatInt(run, 10) }

// notFound says what was not found.
func notFound(err error, format string, args ...any) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf(format+": %w", append(args, ErrNotFound)...)
	}
	return err
}
