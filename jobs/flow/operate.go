package flow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// What may be asked of a run, in reports.
const (
	actBegin   = "begin"
	actMore    = "more" // of a run that is advanced piece by piece
	actNext    = "next" // of a run that has ended: the one that waits for it begins
	actKill    = "kill"
	actPause   = "pause"
	actResume  = "resume"
	actRetry   = "retry"   // the failed nodes, or those of one embedded flow
	actRerun   = "rerun"   // from nodes on; args: their numbers
	actSucceed = "succeed" // mark a node succeeded
	actRelease = "release" // a node held by a pipeline
	actAgain   = "again"   // the retry of a whole embedded flow is due
	actSLA     = "sla"     // a limit of time has come; args: which
)

// Kill kills a run: nothing starts any more, and what runs is ended. It is KILLED when all of it is gone.
func (c *Client) Kill(ctx context.Context, run int64) error {
	return c.ask(ctx, run, actKill, live, nil)
}

// Pause has nothing more start; what runs goes on.
func (c *Client) Pause(ctx context.Context, run int64) error {
	return c.ask(ctx, run, actPause, live, nil)
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, run int64) error {
	return c.ask(ctx, run, actResume, live, nil)
}

// Retry runs what failed, was killed or was cancelled once more, in a run that has ended; with the path of an embedded flow, all of
// that flow. What succeeded stays.
func (c *Client) Retry(ctx context.Context, run int64, flows ...string) error {
	return c.ask(ctx, run, actRetry, ended, flows)
}

// Rerun runs these nodes, and all that depends on them, once more, in a run that has ended.
func (c *Client) Rerun(ctx context.Context, run int64, nodes ...string) error {
	if len(nodes) == 0 {
		return fmt.Errorf("rerun run %d: name at least one node", run)
	}
	return c.ask(ctx, run, actRerun, ended, nodes)
}

// MarkSucceeded has a node that has failed, was killed or was cancelled count as succeeded; what waits for it starts if the run is live.
func (c *Client) MarkSucceeded(ctx context.Context, run int64, node string) error {
	return c.ask(ctx, run, actSucceed, either, []string{node})
}

// phase is when something may be asked.
type phase int

const (
	either phase = iota
	live
	ended
)

// ask writes down what is wanted of a run, if it makes sense now; a scheduler does it.
func (c *Client) ask(ctx context.Context, run int64, action string, when phase, paths []string) error {
	err := c.store.Tx(ctx, func(tx pgx.Tx) error {
		r, err := c.store.Lock(ctx, tx, run)
		if err != nil {
			return notFound(err, "there is no run %d", run)
		}
		switch {
		case when == live && r.EndedAt != nil:
			return fmt.Errorf("it is %s: %w", r.Status, ErrEnded)
		case when == ended && r.EndedAt == nil:
			return fmt.Errorf("it is %s: %w", r.Status, ErrLive)
		}
		nodes, err := c.numbers(ctx, tx, r, paths)
		if err != nil {
			return err
		}
		if err := c.check(ctx, tx, r, wishes(action, nodes)); err != nil {
			return err
		}
		args, err := json.Marshal(nodes)
		if err != nil {
			return fmt.Errorf("encode nodes: %w", err)
		}
		if err := c.store.Ask(ctx, tx, run, -1, action, args); err != nil {
			return err
		}
		return c.store.Audit(ctx, tx, c.jobs.Actor(ctx), "flow."+action, runTarget(run),
			map[string]any{"status": r.Status}, map[string]any{"nodes": paths})
	})
	if err != nil {
		return fmt.Errorf("%s run %d: %w", action, run, err)
	}
	c.hint(ctx)
	return nil
}

// check tells what a run would refuse, as it is now.
func (c *Client) check(ctx context.Context, tx pgx.Tx, r store.Run, events []decide.Event) error {
	if len(events) == 0 {
		return nil
	}
	l, err := c.read(ctx, tx, r)
	if err != nil {
		return err
	}
	if refused := l.machine.Apply(events...).Refused; len(refused) > 0 {
		return &RefusedError{refused[0].Reason}
	}
	return nil
}

// numbers finds nodes of a run by their paths.
func (c *Client) numbers(ctx context.Context, tx pgx.Tx, r store.Run, paths []string) ([]int, error) {
	numbers := make([]int, 0, len(paths))
	if len(paths) == 0 {
		return numbers, nil
	}
	p, err := c.plan(ctx, tx, r.VersionID, r.Flow)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		no, err := nodeOf(p.Flow(), path)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, no)
	}
	return numbers, nil
}
