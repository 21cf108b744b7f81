package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// bulkStatement is the longest that one statement of a bulk insert may take.
const bulkStatement = 5 * time.Minute

// InsertManyFast enqueues jobs by COPY in one transaction of its own and returns how many went in: all, or fewer by the
// duplicates of unique keys. Made for batches of thousands; a call with unique jobs goes the way of InsertMany. If new ids are
// taken, which is rare (the clock was set back), all is done once more, hooks and middleware included.
func (c *Client) InsertManyFast(ctx context.Context, params []river.InsertManyParams) (int, error) {
	if len(params) == 0 {
		return 0, nil
	}
	n := 0
	err := c.onceMore(func() error {
		draw := c.drawAhead(ctx, len(params))
		prepared, err := c.prepare(params)
		if drawn, drawErr := draw(); err == nil && drawErr == nil {
			return c.store.Tx(ctx, store.Limits{Statement: bulkStatement}, func(tx pgx.Tx) (err error) {
				n, err = c.insertFast(ctx, tx, prepared, func() (store.Drawn, error) { return drawn, nil })
				return err
			})
		} else if err == nil {
			err = drawErr
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// drawAhead draws ids while the caller does something else; what it returns waits for them.
func (c *Client) drawAhead(ctx context.Context, n int) func() (store.Drawn, error) {
	var drawn store.Drawn
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		drawn, err = c.store.DrawIDs(ctx, c.pool, n)
	}()
	return func() (store.Drawn, error) {
		<-done
		return drawn, err
	}
}

// InsertManyFastTx is InsertManyFast in the caller's transaction.
func (c *Client) InsertManyFastTx(ctx context.Context, tx pgx.Tx, params []river.InsertManyParams) (int, error) {
	if len(params) == 0 {
		return 0, nil
	}
	prepared, err := c.prepare(params)
	if err != nil {
		return 0, err
	}
	return c.insertFast(ctx, tx, prepared, func() (store.Drawn, error) { return c.store.DrawIDs(ctx, tx, len(params)) })
}

func (c *Client) insertFast(
	ctx context.Context, tx pgx.Tx, prepared []*rivertype.JobInsertParams, draw func() (store.Drawn, error),
) (int, error) {
	if len(c.plugins.insertMiddleware(prepared)) == 0 {
		if err := c.plugins.insertBegin(ctx, prepared); err != nil {
			return 0, err
		}
		return c.copyIn(ctx, tx, prepared, draw)
	}
	n := 0
	_, err := c.plugins.insert(ctx, prepared, func(ctx context.Context) (_ []*rivertype.JobInsertResult, err error) {
		if n, err = c.copyIn(ctx, tx, prepared, draw); err != nil {
			return nil, err
		}
		results := make([]*rivertype.JobInsertResult, len(prepared))
		for i, p := range prepared {
			results[i] = &rivertype.JobInsertResult{Job: insertedRow(p, store.Inserted{State: string(p.State)})}
		}
		return results, nil
	})
	return n, err
}

// copyIn puts jobs in by COPY, or by insert_jobs if one of them is unique, and counts those that went in.
func (c *Client) copyIn(
	ctx context.Context, tx pgx.Tx, prepared []*rivertype.JobInsertParams, draw func() (store.Drawn, error),
) (int, error) {
	jobs, err := newJobs(prepared)
	if err != nil {
		return 0, err
	}
	skipped := make([]bool, 0)
	if slices.ContainsFunc(jobs, func(j store.NewJob) bool { return j.UniqueKey != nil }) {
		inserted, err := c.store.Insert(ctx, tx, jobs, c.hints(ctx))
		if err != nil {
			return 0, err
		}
		for _, in := range inserted {
			skipped = append(skipped, in.Skipped)
		}
	} else {
		drawn, err := draw()
		if err != nil {
			return 0, err
		}
		if err := c.store.CopyIn(ctx, tx, jobs, drawn, c.hints(ctx)); err != nil {
			return 0, err
		}
	}
	if err := c.hintInserted(ctx, tx, jobs); err != nil {
		return 0, err
	}
	n := 0
	c.enqueued(prepared, func(i int) bool {
		in := i >= len(skipped) || !skipped[i]
		if in {
			n++
		}
		return in
	})
	return n, nil
}
