package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// JobCancel cancels a job: one that waits never runs; a running one's context is cancelled, at once if its executor listens
// and by its next heartbeat at the latest, and if its worker then returns an error the job ends as cancelled. A job that has
// ended is left as it is. It returns the job as it is afterwards, or rivertype.ErrNotFound.
func (c *Client) JobCancel(ctx context.Context, id int64) (*rivertype.JobRow, error) {
	job, err := c.cancelNow(ctx, id)
	if err != nil {
		return nil, err
	}
	// Its run may have ended, or its ticket may have been taken, while the first look's transaction was open: look once more.
	again, err := c.cancelNow(ctx, id)
	if errors.Is(err, rivertype.ErrNotFound) {
		return job, nil // deleted meanwhile
	}
	return again, err
}

const cancelBatch = 200 // jobs cancelled in a transaction

// cancelLimits are of one of many cancels: who holds a job holds up the others for a moment only.
var cancelLimits = store.Limits{Lock: 200 * time.Millisecond}

// JobCancelMany cancels jobs as JobCancel does, many in a transaction. Jobs that are not there are left out. One that cannot be cancelled, as
// somebody's transaction holds it, is in the error, and keeps no other from being cancelled.
func (c *Client) JobCancelMany(ctx context.Context, ids []int64) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var errs []error
	for part := range slices.Chunk(ids, cancelBatch) {
		err := c.cancelTogether(ctx, part)
		if err == nil {
			continue
		}
		for one := range slices.Chunk(part, 1) {
			if ctx.Err() != nil {
				return err
			}
			errs = append(errs, c.cancelTogether(ctx, one))
		}
	}
	return errors.Join(errs...)
}

// cancelTogether cancels jobs in a transaction, and looks once more as JobCancel does.
func (c *Client) cancelTogether(ctx context.Context, ids []int64) error {
	for range 2 {
		err := c.store.Tx(ctx, cancelLimits, func(tx pgx.Tx) error { return c.store.CancelMany(ctx, tx, ids, c.AuditedActor(ctx)) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) cancelNow(ctx context.Context, id int64) (job *rivertype.JobRow, err error) {
	err = c.operate(ctx, func(db store.DB) error {
		job, err = c.cancel(ctx, db, id)
		return err
	})
	return job, err
}

// JobCancelTx cancels a job when the caller's transaction commits. It cannot look once more after that commit, as JobCancel
// does: if the job's run fails while the transaction is open, the cancel is met by whoever schedules the retry, takes its
// ticket, or sweeps, so that the job may show as retryable for a while, but does not run again.
func (c *Client) JobCancelTx(ctx context.Context, tx pgx.Tx, id int64) (job *rivertype.JobRow, err error) {
	err = operateTx(ctx, tx, func(db store.DB) error {
		job, err = c.cancel(ctx, db, id)
		return err
	})
	return job, err
}

func (c *Client) cancel(ctx context.Context, db store.DB, id int64) (*rivertype.JobRow, error) {
	if _, err := c.store.Cancel(ctx, db, id, c.AuditedActor(ctx)); err != nil {
		return nil, err
	}
	return c.store.JobRow(ctx, db, id)
}
