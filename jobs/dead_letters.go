package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// DeadLetter is a full copy of a job that was given up, with all its attempts. It outlives the job.
type DeadLetter = store.DeadLetter

// DeadAttempt is one run of a dead letter.
type DeadAttempt = store.DeadAttempt

// Redriven is a dead letter and the job made of it.
type Redriven = store.Redriven

// Reasons why a job became a dead letter.
const (
	DeadExhausted = store.Exhausted // it used up its attempts
	DeadPoison    = store.Poison    // it was lost with its process again and again
	DeadConflict  = store.Conflict  // its unique key was taken by another job while it waited for a retry
)

// DeadFilter says which dead letters are meant. Zero fields filter nothing.
type DeadFilter struct {
	IDs    []int64
	Kinds  []string
	Queues []string
	Reason string    // DeadExhausted, DeadPoison or DeadConflict
	Since  time.Time // of death, including
	Until  time.Time // of death, excluding
}

func (f *DeadFilter) stored() store.DeadFilter {
	if f == nil {
		return store.DeadFilter{}
	}
	stored := store.DeadFilter{IDs: f.IDs, Kinds: f.Kinds, Queues: f.Queues, Reason: f.Reason}
	if !f.Since.IsZero() {
		stored.Since = &f.Since
	}
	if !f.Until.IsZero() {
		stored.Until = &f.Until
	}
	return stored
}

// DeadListParams says which dead letters to list; the zero value: the newest 100.
type DeadListParams struct {
	DeadFilter

	After *DeadLetter // continue after this one of the same list
	Limit int         // 1 to 10,000; defaults to 100
	Bytes int         // end early when the letters take about so many bytes; 0: no bound
}

// DeadList lists dead letters, the newest death first.
func (c *Client) DeadList(ctx context.Context, params *DeadListParams) ([]*DeadLetter, error) {
	letters, _, err := c.DeadPart(ctx, params)
	return letters, err
}

// DeadPart is DeadList that also tells whether more letters follow.
func (c *Client) DeadPart(ctx context.Context, params *DeadListParams) (letters []*DeadLetter, more bool, err error) {
	if params == nil {
		params = &DeadListParams{}
	}
	limit, err := deadLimit(params.Limit)
	if err != nil {
		return nil, false, err
	}
	return c.store.ListDead(ctx, c.pool, params.stored(), params.After, limit, params.Bytes)
}

// DeadGet reads the dead letter of a job, or returns rivertype.ErrNotFound.
func (c *Client) DeadGet(ctx context.Context, id int64) (*DeadLetter, error) {
	letters, _, err := c.store.ListDead(ctx, c.pool, store.DeadFilter{IDs: []int64{id}}, nil, 1, 0)
	if err != nil {
		return nil, err
	}
	if len(letters) == 0 {
		return nil, fmt.Errorf("dead letter %d: %w", id, rivertype.ErrNotFound)
	}
	return letters[0], nil
}

// RedrivenAs lists the jobs that redrives made of a job's dead letters, the newest first, at most 10. It is known for as long as the audit is kept.
func (c *Client) RedrivenAs(ctx context.Context, id int64) ([]int64, error) {
	return c.store.RedrivenAs(ctx, c.pool, id)
}

// RedrivenAsTx is RedrivenAs as seen in the caller's transaction.
func (c *Client) RedrivenAsTx(ctx context.Context, tx pgx.Tx, id int64) ([]int64, error) {
	return c.store.RedrivenAs(ctx, tx, id)
}

// RedrivenFrom is the job whose dead letter a job was made of by a redrive, as its metadata say; 0: it was not.
func RedrivenFrom(job *rivertype.JobRow) int64 {
	var from struct {
		ID int64 `json:"redriven_from"`
	}
	if err := json.Unmarshal(job.Metadata, &from); err != nil {
		return 0 // somebody else's word
	}
	return from.ID
}

// DeadRedrive makes a new job of a dead letter and removes the letter. The new job starts with no attempts and with
// redriven_from in its metadata; it holds no unique key. rivertype.ErrNotFound if there is no such letter, a
// *FlowNodeError if it is of a flow's node. To run the old job
// again under its own id, while it is there, use JobRetry.
func (c *Client) DeadRedrive(ctx context.Context, id int64) (job *rivertype.JobRow, err error) {
	err = c.operate(ctx, func(db store.DB) error {
		job, err = c.redrive(ctx, db, id)
		return err
	})
	return job, err
}

// DeadRedriveTx is DeadRedrive in the caller's transaction.
func (c *Client) DeadRedriveTx(ctx context.Context, tx pgx.Tx, id int64) (job *rivertype.JobRow, err error) {
	err = operateTx(ctx, tx, func(db store.DB) error {
		job, err = c.redrive(ctx, db, id)
		return err
	})
	return job, err
}

func (c *Client) redrive(ctx context.Context, db store.DB, id int64) (*rivertype.JobRow, error) {
	made, err := c.store.Redrive(ctx, db, id, c.AuditedActor(ctx))
	if err != nil {
		return nil, err
	}
	return c.store.JobRow(ctx, db, made)
}

// DeadRedriveMany makes new jobs of the dead letters that match, the oldest death first, at most limit (1 to 10,000; 0: 100).
// Letters that somebody else is just working on are passed over, and so are those of flows' nodes: DeadFlowNodes counts them. Call it again until it makes none.
func (c *Client) DeadRedriveMany(ctx context.Context, filter *DeadFilter, limit int) (made []Redriven, err error) {
	if limit, err = deadLimit(limit); err != nil {
		return nil, err
	}
	err = c.operate(ctx, func(db store.DB) error {
		made, err = c.store.RedriveMany(ctx, db, filter.stored(), limit, c.AuditedActor(ctx))
		return err
	})
	return made, err
}

// DeadFlowNodes counts the dead letters that match and are of flows' nodes, up to 10,000. They are not redriven: retry their runs.
func (c *Client) DeadFlowNodes(ctx context.Context, filter *DeadFilter) (int, error) {
	return c.store.DeadNodes(ctx, c.pool, filter.stored(), 10_000)
}

// DeadDiscard removes a dead letter for good, or returns rivertype.ErrNotFound. The job itself stays until its retention.
func (c *Client) DeadDiscard(ctx context.Context, id int64) error {
	return c.operate(ctx, func(db store.DB) error { return c.discard(ctx, db, id) })
}

// DeadDiscardTx is DeadDiscard in the caller's transaction.
func (c *Client) DeadDiscardTx(ctx context.Context, tx pgx.Tx, id int64) error {
	return operateTx(ctx, tx, func(db store.DB) error { return c.discard(ctx, db, id) })
}

func (c *Client) discard(ctx context.Context, db store.DB, id int64) error {
	found, err := c.store.Discard(ctx, db, id, c.AuditedActor(ctx))
	if err == nil && !found {
		err = fmt.Errorf("dead letter %d: %w", id, rivertype.ErrNotFound)
	}
	return err
}

// DeadDiscardMany removes the dead letters that match, as DeadRedriveMany does, and returns their ids.
func (c *Client) DeadDiscardMany(ctx context.Context, filter *DeadFilter, limit int) (ids []int64, err error) {
	if limit, err = deadLimit(limit); err != nil {
		return nil, err
	}
	err = c.operate(ctx, func(db store.DB) error {
		ids, err = c.store.DiscardMany(ctx, db, filter.stored(), limit, c.AuditedActor(ctx))
		return err
	})
	return ids, err
}

func deadLimit(limit int) (int, error) {
	switch {
	case limit == 0:
		return 100, nil
	case limit < 0 || limit > 10_000:
		return 0, fmt.Errorf("dead letters: limit is %d, want 1 to 10,000", limit)
	}
	return limit, nil
}
