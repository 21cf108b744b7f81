package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// UniqueConflictError says that a job cannot be made available again because another job holds its unique key.
type UniqueConflictError struct {
	JobID    int64
	HolderID int64 // the job that holds the key
}

func (e *UniqueConflictError) Error() string {
	return fmt.Sprintf("job %d cannot be retried: job %d holds its unique key", e.JobID, e.HolderID)
}

// FlowNodeError says that a job cannot be retried, redriven or rescheduled by itself because it works for a node of a flow's run, which decides when it
// runs: retry or rerun the run.
type FlowNodeError = store.NodeError

// JobRetry makes a job available now, whether it has ended, waits for a time, is pending, or was cancelled in the line. A
// running job is left alone, and one in the line keeps its place. Attempts that are used up are raised by one. Two retries at
// once are one. It returns the job as it is afterwards, rivertype.ErrNotFound, a *UniqueConflictError, or, if it has ended and
// worked for a node of a flow, a *FlowNodeError.
func (c *Client) JobRetry(ctx context.Context, id int64) (job *rivertype.JobRow, err error) {
	err = c.operate(ctx, func(db store.DB) error {
		job, err = c.retry(ctx, db, id)
		return err
	})
	return job, err
}

// JobRetryTx is JobRetry in the caller's transaction: the job is available once that commits. After a *UniqueConflictError or
// a *FlowNodeError the transaction is still good.
func (c *Client) JobRetryTx(ctx context.Context, tx pgx.Tx, id int64) (job *rivertype.JobRow, err error) {
	err = operateTx(ctx, tx, func(db store.DB) error {
		job, err = c.retry(ctx, db, id)
		return err
	})
	return job, err
}

func (c *Client) retry(ctx context.Context, db store.DB, id int64) (*rivertype.JobRow, error) {
	_, err := c.store.Retry(ctx, db, id, c.AuditedActor(ctx))
	if held, ok := errors.AsType[*store.KeyHeldError](err); ok {
		return nil, &UniqueConflictError{JobID: held.JobID, HolderID: held.HolderID}
	}
	if err != nil {
		return nil, err
	}
	return c.store.JobRow(ctx, db, id)
}
