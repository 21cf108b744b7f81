package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// EraseError says that a job cannot be erased because it, or the run of the flow it works for, has not ended; or, from JobRetry, that it cannot
// run again because it was erased.
type EraseError = store.EraseError

// Erased is what JobErase has blanked.
type Erased struct {
	Jobs        []int64 `json:"jobs"`         // the job, and those that were made of it by a redrive, or it of them
	Attempts    int     `json:"attempts"`     // whose output, error, trace or metadata were blanked
	LogChunks   int     `json:"log_chunks"`   // deleted
	DeadLetters int     `json:"dead_letters"` // deleted
	Nodes       int     `json:"nodes"`        // of a flow's run, whose outputs, reason or item were blanked
	Runs        int     `json:"runs"`         // of flows, whose parameters were blanked; they cannot be retried
	Answers     int     `json:"answers"`      // of the API, kept for a day, that held the job
	Notices     int     `json:"notices"`      // of flows and of alerts, and alerts, that told of it
	Changed     bool    `json:"changed"`      // false: nothing was left of it
}

// JobErase blanks what a job that has ended held, for privacy: args, tags, metadata, unique key, outputs, errors with their traces, logs and its dead
// letter, in all places; id, kind, queue, times and outcomes stay. If the job worked for a node of a flow, its run must have ended; the node's
// outputs, the item of a for_each and the run's parameters are blanked too. Erasing twice does no harm. An erased job, and an erased run, do not run again.
// It returns rivertype.ErrNotFound, or an *EraseError if it is too early.
//
// What was copied elsewhere stays: backups, WAL and replicas until they are gone, other jobs that were made with the same data, a child's
// parameters that came from a node's output, mails that were sent.
func (c *Client) JobErase(ctx context.Context, id int64) (done *Erased, err error) {
	err = c.operate(ctx, func(db store.DB) error {
		done, err = c.erase(ctx, db, id)
		return err
	})
	return done, err
}

// JobEraseTx is JobErase in the caller's transaction.
func (c *Client) JobEraseTx(ctx context.Context, tx pgx.Tx, id int64) (done *Erased, err error) {
	err = operateTx(ctx, tx, func(db store.DB) error {
		done, err = c.erase(ctx, db, id)
		return err
	})
	return done, err
}

func (c *Client) erase(ctx context.Context, db store.DB, id int64) (*Erased, error) {
	answer, err := c.store.Erase(ctx, db, id, c.AuditedActor(ctx))
	if err != nil {
		return nil, err
	}
	done := &Erased{}
	if err := json.Unmarshal(answer, done); err != nil {
		return nil, fmt.Errorf("erase job %d: %w", id, err)
	}
	return done, nil
}
