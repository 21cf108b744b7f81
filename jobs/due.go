package jobs

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/peltonq/pelton/jobs/internal/duty"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// dueInterval is the least time between two hints of one process at jobs due soon. What falls between two is found by the looks
// that the first one makes the movers take.
const dueInterval = 200 * time.Millisecond

// dueHints says when other processes' movers are told of jobs due soon.
type dueHints struct {
	moves   atomic.Bool // the duties run in this process: its mover is told directly
	own     limiter     // for what is committed
	callers limiter     // for callers' transactions: theirs may commit late, or never
}

// limiter lets through one call per dueInterval.
type limiter struct{ last atomic.Int64 }

func (l *limiter) allow() bool {
	now, last := time.Now().UnixNano(), l.last.Load()
	return now-last >= int64(dueInterval) && l.last.CompareAndSwap(last, now)
}

// soon tells whether a job due then may be late if no mover is told.
func (c *Client) soon(due time.Time) bool {
	return !c.dues.moves.Load() && time.Until(due) <= cmp.Or(c.config.moveLook, duty.MoveLook)
}

// tellDue tells whether to hint at a run that goes on at due.
func (c *Client) tellDue(due time.Time) bool {
	return !c.config.NotifyOff && c.soon(due) && c.dues.own.allow()
}

// insertsDue tells whether one of the jobs is due soon and a hint is to be sent with it.
func (c *Client) insertsDue(ctx context.Context, jobs []store.NewJob, l *limiter) bool {
	return slices.ContainsFunc(jobs, func(j store.NewJob) bool {
		return j.Due != nil && !j.Pending && time.Until(*j.Due) > 0 && c.soon(*j.Due)
	}) && c.hints(ctx) && l.allow()
}

// hintInserted tells other processes' movers of jobs due soon: with the caller's transaction, or after the insert's own.
func (c *Client) hintInserted(ctx context.Context, db store.DB, jobs []store.NewJob) error {
	if db != store.DB(c.pool) {
		if !c.insertsDue(ctx, jobs, &c.dues.callers) {
			return nil
		}
		return c.store.HintDue(ctx, db)
	}
	if c.insertsDue(ctx, jobs, &c.dues.own) {
		if err := c.store.HintDue(ctx, db); err != nil {
			c.log.DebugContext(ctx, "no hint at jobs due soon; movers look by themselves", "error", err)
		}
	}
	return nil
}
