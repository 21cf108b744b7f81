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
	actTimeout = "timeout" // the time of an embedded flow's attempt is over
	actSLA     = "sla"     // a limit of time has come; args: which
)

// Kill kills a run: nothing starts any more, and what runs is ended. It is KILLED when all of it is gone. Of one that is being killed
// nothing changes.
func (c *Client) Kill(ctx context.Context, run int64) error {
	return c.ask(ctx, run, actKill, live, nil)
}

// Pause has no more nodes start. Those that have a job go on, in the queue, in their attempts and with their retries: pause the queue to hold
// these. Of a run that is paused nothing changes.
func (c *Client) Pause(ctx context.Context, run int64) error {
	return c.ask(ctx, run, actPause, live, nil)
}

// Resume ends a pause. ErrRefused if there is none.
func (c *Client) Resume(ctx context.Context, run int64) error {
	return c.ask(ctx, run, actResume, live, nil)
}

// Retry runs what failed, was killed or was cancelled once more, in a run that has ended; with the path of an embedded flow or of an
// instance of a for_each, all of that. What succeeded stays. Options.Concurrent of the run says when it goes on while others of its flow
// are live; with Skip the error is a *RunningError.
func (c *Client) Retry(ctx context.Context, run int64, paths ...string) error {
	return c.ask(ctx, run, actRetry, ended, paths)
}

// Rerun runs these nodes, and all that depends on them, once more, in a run that has ended. It then goes on as by Retry.
func (c *Client) Rerun(ctx context.Context, run int64, nodes ...string) error {
	if len(nodes) == 0 {
		return fmt.Errorf("rerun run %d: name at least one node", run)
	}
	return c.ask(ctx, run, actRerun, ended, nodes)
}

// MarkSucceeded has a node that has failed, was killed or cancelled, or has not started, count as succeeded; what waits for it starts. A run
// that had ended goes on as by Retry.
func (c *Client) MarkSucceeded(ctx context.Context, run int64, node string) error {
	return c.ask(ctx, run, actSucceed, either, []string{node})
}

// marked are the args of succeed.
type marked struct {
	By    string `json:"by"`
	Nodes []int  `json:"nodes"`
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
		r, err := c.lock(ctx, tx, run, when != live)
		if err != nil {
			return notFound(err, "there is no run %d", run)
		}
		switch {
		case when == live && r.EndedAt != nil:
			return fmt.Errorf("it is %s: %w", r.Status, ErrEnded)
		case when == ended && r.EndedAt == nil:
			return fmt.Errorf("it is %s: %w", r.Status, ErrLive)
		}
		if erased, err := c.store.IsErased(ctx, tx, run); err != nil {
			return err
		} else if erased && r.EndedAt != nil {
			return &RefusedError{"what a job of it held was erased: start a new run"}
		}
		l, err := c.read(ctx, tx, r)
		if err != nil {
			return err
		}
		nodes, err := l.numbers(paths)
		if err != nil {
			return err
		}
		if err := c.check(ctx, tx, l, wishes(action, nodes)); err != nil {
			return err
		}
		args, err := json.Marshal(nodes)
		switch action {
		case actKill:
			args, err = json.Marshal(c.jobs.Actor(ctx))
		case actSucceed:
			args, err = json.Marshal(marked{c.jobs.Actor(ctx), nodes})
		}
		if err != nil {
			return fmt.Errorf("encode what was asked: %w", err)
		}
		if err := c.store.Ask(ctx, tx, run, -1, action, args); err != nil {
			return err
		}
		if r.EndedAt != nil {
			if err := c.restart(ctx, tx, l); err != nil {
				return err
			}
		}
		return c.store.Audit(ctx, tx, c.jobs.AuditedActor(ctx), "flow."+action, runTarget(run),
			map[string]any{"status": r.Status}, map[string]any{"nodes": paths})
	})
	if err != nil {
		return fmt.Errorf("%s run %d: %w", action, run, err)
	}
	c.hint(ctx)
	return nil
}

// lock locks a run, and before it its project if the run may begin once more.
func (c *Client) lock(ctx context.Context, tx pgx.Tx, run int64, project bool) (store.Run, error) {
	if project {
		r, err := c.store.Run(ctx, tx, run)
		if err != nil {
			return r, err
		}
		if _, err := c.store.LockProject(ctx, tx, r.Project); err != nil {
			return r, err
		}
	}
	return c.store.Lock(ctx, tx, run)
}

// restart has a run that has ended go on as a new one would begin now, by its own option. For those that follow it, it has ended: they do
// not wait for it again, so that runs cannot wait for each other.
func (c *Client) restart(ctx context.Context, tx pgx.Tx, l *loaded) error {
	r := &l.run
	live, err := c.store.LiveRuns(ctx, tx, r.ProjectID, r.Flow)
	if err != nil {
		return err
	}
	at, err := c.placeOf(ctx, tx, l.options.Concurrent, live)
	if err != nil {
		return err
	}
	if err := c.store.Restart(ctx, tx, r.ID, at.status.String(), at.before, at.pipeline); err != nil {
		return err
	}
	followers, err := c.store.Unfollow(ctx, tx, *r)
	if err != nil {
		return err
	}
	for _, id := range followers {
		if err := c.store.Ask(ctx, tx, id, -1, actRelease, nil); err != nil {
			return err
		}
	}
	return c.begin(ctx, tx, r.ID, at)
}

// check tells what a run would refuse, as it is now and with what people have asked for before.
func (c *Client) check(ctx context.Context, tx pgx.Tx, l *loaded, events []decide.Event) error {
	asked, err := c.store.Wishes(ctx, tx, l.run.ID)
	if err != nil {
		return err
	}
	var before []decide.Event
	for _, action := range asked {
		if action != actBegin {
			before = append(before, wishes(action, nil)...)
		} else if l.run.Pipeline != 3 {
			before = append(before, decide.Begin{})
		}
	}
	for _, refusal := range l.machine.Apply(append(before, events...)...).Refused {
		if refusal.Event >= len(before) {
			return &RefusedError{refusal.Reason}
		}
	}
	return nil
}
