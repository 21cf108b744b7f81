package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"
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
