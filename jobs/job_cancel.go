package jobs

import (
	"context"
	"errors"

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
	if _, err := c.store.Cancel(ctx, db, id, c.actor(ctx)); err != nil {
		return nil, err
	}
	return c.store.JobRow(ctx, db, id)
}
