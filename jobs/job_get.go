package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// JobGet reads a job with its state, its errors and its output. Returns rivertype.ErrNotFound if there is none.
//
// A job that was cancelled while it waited in the line is reported as cancelled at once, though its attempt is recorded only
// when its ticket is met.
func (c *Client) JobGet(ctx context.Context, id int64) (*rivertype.JobRow, error) {
	return c.store.JobRow(ctx, c.pool, id)
}

// JobGetTx is JobGet as seen in the caller's transaction.
func (c *Client) JobGetTx(ctx context.Context, tx pgx.Tx, id int64) (*rivertype.JobRow, error) {
	return c.store.JobRow(ctx, tx, id)
}

// JobWaits says in words what keeps a job waiting beside its time and its turn: that its queue is paused, or that no executor works it.
// Empty: nothing does, or it does not wait.
func (c *Client) JobWaits(ctx context.Context, job *rivertype.JobRow) (string, error) {
	if job.State == rivertype.JobStateRunning || job.FinalizedAt != nil {
		return "", nil
	}
	return c.waits(ctx, c.pool, job.Kind, job.Queue)
}

// KindWaitsTx is JobWaits for whatever job of a kind waits in a queue, as seen in the caller's transaction.
func (c *Client) KindWaitsTx(ctx context.Context, tx pgx.Tx, kind, queue string) (string, error) {
	return c.waits(ctx, tx, kind, queue)
}

func (c *Client) waits(ctx context.Context, db store.DB, kind, queue string) (string, error) {
	w, err := c.store.JobWaits(ctx, db, kind, queue)
	switch {
	case err != nil:
		return "", err
	case !w.Worked:
		return "no executor works kind " + kind, nil
	case w.Paused:
		return "queue " + queue + " is paused", nil
	case !w.Taken:
		return "no executor that works kind " + kind + " takes jobs of queue " + queue, nil
	}
	return "", nil
}
