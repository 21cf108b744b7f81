package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// JobUpdateParams says what to change of a job. Zero fields stay as they are.
type JobUpdateParams struct {
	// Output is a new output, anything that encodes to at most 1 MiB of JSON. An output that a run records when it ends later
	// replaces it. If it is nil and JobUpdate is called under a worker's context, it is what RecordOutput has recorded so far,
	// as with River: so that a long run's output can be read while it goes on.
	Output any

	// Metadata is merged into the job's metadata, key by key.
	Metadata map[string]any

	// Queue and Priority (1 to 4) move the job into another line. A run that has been taken goes on where it is.
	Queue    string
	Priority int

	// MaxAttempts is 1 to 32,767. It counts from the next end of a run on.
	MaxAttempts int

	// Args are anything that encodes to at most 1 MiB of JSON. They count from the next run on.
	Args any

	// If, unless nil, is given the job as it is, while nobody else can change it. Its error refuses the change, and is returned. It is for who has looked at
	// the job before: that another's change is not overwritten unseen. Which run the job is in may change at any time all the same.
	If func(job *rivertype.JobRow) error
}

// InvalidUpdateError tells why a change of a job was refused before anything was stored.
type InvalidUpdateError struct {
	JobID int64
	Err   error
}

func (e *InvalidUpdateError) Error() string { return fmt.Sprintf("update job %d: %v", e.JobID, e.Err) }

func (e *InvalidUpdateError) Unwrap() error { return e.Err }

// JobUpdate changes a job and returns it as it is afterwards, or rivertype.ErrNotFound. Nothing a run has begun with changes. Bad input is an
// *InvalidUpdateError.
func (c *Client) JobUpdate(ctx context.Context, id int64, params *JobUpdateParams) (job *rivertype.JobRow, err error) {
	change, err := params.change(recordedOutput(ctx))
	if err != nil {
		return nil, &InvalidUpdateError{id, err}
	}
	var run int32
	err = c.operate(ctx, func(db store.DB) error {
		job, run, err = c.update(ctx, db, id, change, params)
		return err
	})
	if err != nil || !change.Moves() {
		return job, err
	}
	// The job may have entered its old line for a further run while the transaction was open: look once more.
	err = c.operate(ctx, func(db store.DB) error { return c.store.MoveAgain(ctx, db, id, run) })
	if err != nil && !errors.Is(err, rivertype.ErrNotFound) {
		return nil, err
	}
	return job, nil
}

// JobUpdateTx changes a job when the caller's transaction commits. If the job is retried at once while the transaction is open,
// that one run may still happen in the old line.
func (c *Client) JobUpdateTx(ctx context.Context, tx pgx.Tx, id int64, params *JobUpdateParams) (job *rivertype.JobRow, err error) {
	change, err := params.change(recordedOutput(ctx))
	if err != nil {
		return nil, &InvalidUpdateError{id, err}
	}
	err = operateTx(ctx, tx, func(db store.DB) error {
		job, _, err = c.update(ctx, db, id, change, params)
		return err
	})
	return job, err
}

func (c *Client) update(ctx context.Context, db store.DB, id int64, change store.Change, params *JobUpdateParams) (*rivertype.JobRow, int32, error) {
	if params != nil && params.If != nil {
		if err := c.checkHeld(ctx, db, id, params.If); err != nil {
			return nil, 0, err
		}
	}
	run, err := c.store.Change(ctx, db, id, change, c.AuditedActor(ctx))
	if err != nil {
		return nil, 0, err
	}
	job, err := c.store.JobRow(ctx, db, id)
	return job, run, err
}

// checkHeld holds a job against changes by others until the transaction ends, and has it checked as it is.
func (c *Client) checkHeld(ctx context.Context, db store.DB, id int64, check func(*rivertype.JobRow) error) error {
	if _, err := c.store.Change(ctx, db, id, store.Change{}, c.AuditedActor(ctx)); err != nil { // one that changes nothing takes the locks
		return err
	}
	job, err := c.store.JobRow(ctx, db, id)
	if err != nil {
		return err
	}
	return check(job)
}

// recordedOutput is what the worker whose context this is has recorded so far; nil if nothing.
func recordedOutput(ctx context.Context) json.RawMessage {
	w := workOf(ctx)
	if w == nil {
		return nil
	}
	w.record.mu.Lock()
	defer w.record.mu.Unlock()
	return w.record.output
}

// change checks the params and encodes them.
func (p *JobUpdateParams) change(recorded json.RawMessage) (change store.Change, err error) {
	if p == nil {
		p = &JobUpdateParams{}
	}
	if p.Queue != "" {
		if err := checkQueueName(p.Queue); err != nil {
			return change, err
		}
	}
	if p.Priority < 0 || p.Priority > 4 {
		return change, fmt.Errorf("priority is %d, want 1 to 4", p.Priority)
	}
	if p.MaxAttempts < 0 || p.MaxAttempts > maxAttemptsLimit {
		return change, fmt.Errorf("max attempts is %d, want 1 to %d", p.MaxAttempts, maxAttemptsLimit)
	}
	change = store.Change{Queue: p.Queue, Priority: int16(p.Priority), MaxAttempts: int16(p.MaxAttempts)} //nolint:gosec // checked
	if p.Args != nil {
		if change.Args, err = encodeLimited("args", p.Args); err != nil {
			return change, err
		}
	}
	if err := checkKeys(p.Metadata); err != nil {
		return change, err
	}
	metadata := map[string]any{}
	maps.Copy(metadata, p.Metadata)
	switch {
	case p.Output != nil:
		metadata[rivertype.MetadataKeyOutput] = p.Output
	case recorded != nil:
		metadata[rivertype.MetadataKeyOutput] = recorded
	}
	if len(metadata) > 0 {
		change.Metadata, err = encodeLimited("metadata with output", metadata)
	}
	return change, err
}

// encodeLimited encodes to JSON of at most MaxArgsBytes.
func encodeLimited(what string, value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", what, err)
	}
	return encoded, checkEncoded(what, encoded, MaxArgsBytes)
}
