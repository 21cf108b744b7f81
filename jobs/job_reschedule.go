package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// NotScheduledError says that a job cannot be rescheduled because it does not wait for a time: its State says where it is, its Text what to do.
type NotScheduledError = store.NotScheduledError

// JobRescheduleOpts are options of JobReschedule.
type JobRescheduleOpts struct {
	// If, unless nil, is given the job as it is, while nobody else can change it. Its error refuses the new time, and is returned. It is for who has
	// looked at the job before: that another's change is not overwritten unseen.
	If func(job *rivertype.JobRow) error
}

// errNoTime guards against a time that was forgotten: it would mean at once.
var errNoTime = errors.New("the scheduled time is zero: say when the job is to run")

// JobReschedule gives a job that waits for its time, scheduled or retryable, another one; a time gone by means at once. Run and attempts stay. The job is
// returned as it is afterwards; doing it twice does no harm. opts may be nil.
//
// One that is available, running, pending or has ended is refused with a *NotScheduledError: of two who act at once, whoever moves a job into the line
// when it is due is not overruled. One that works for a node of a flow is refused with a *FlowNodeError. Other errors are rivertype.ErrNotFound, and an
// *InvalidUpdateError for a time that is zero or not of the years 1 to 9999.
func (c *Client) JobReschedule(ctx context.Context, id int64, at time.Time, opts *JobRescheduleOpts) (job *rivertype.JobRow, err error) {
	err = c.operate(ctx, func(db store.DB) error {
		job, err = c.reschedule(ctx, db, id, at, opts)
		return err
	})
	return job, err
}

// JobRescheduleTx is JobReschedule in the caller's transaction: until that commits, nobody moves the job into the line or cancels it. After a refusal the
// transaction is still good.
func (c *Client) JobRescheduleTx(ctx context.Context, tx pgx.Tx, id int64, at time.Time, opts *JobRescheduleOpts) (job *rivertype.JobRow, err error) {
	err = operateTx(ctx, tx, func(db store.DB) error {
		job, err = c.reschedule(ctx, db, id, at, opts)
		return err
	})
	return job, err
}

func (c *Client) reschedule(ctx context.Context, db store.DB, id int64, at time.Time, opts *JobRescheduleOpts) (*rivertype.JobRow, error) {
	err := checkScheduled(at)
	if at.IsZero() {
		err = errNoTime
	}
	if err != nil {
		return nil, &InvalidUpdateError{id, err}
	}
	if opts != nil && opts.If != nil {
		if err := c.checkHeld(ctx, db, id, opts.If); err != nil {
			return nil, err
		}
	}
	if err := c.store.Reschedule(ctx, db, id, at, c.AuditedActor(ctx)); err != nil {
		return nil, err
	}
	return c.store.JobRow(ctx, db, id)
}
