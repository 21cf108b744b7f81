package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// AllQueues names all queues in QueuePause and QueueResume.
const AllQueues = "*"

// QueuePauseOpts is room for options of QueuePause and QueueResume; nil is fine.
type QueuePauseOpts struct{}

// QueueGet reads a queue that somebody named (paused, updated) or that a living executor works; PausedAt is also set while all
// queues are paused. A queue needs no row to work, so rivertype.ErrNotFound says little about its jobs.
func (c *Client) QueueGet(ctx context.Context, name string) (*rivertype.Queue, error) {
	return c.queue(ctx, c.pool, name)
}

// QueueGetTx is QueueGet as seen in the caller's transaction.
func (c *Client) QueueGetTx(ctx context.Context, tx pgx.Tx, name string) (*rivertype.Queue, error) {
	return c.queue(ctx, tx, name)
}

func (c *Client) queue(ctx context.Context, db store.DB, name string) (*rivertype.Queue, error) {
	queues, err := c.store.Queues(ctx, db, name, 1)
	if err != nil {
		return nil, err
	}
	if len(queues) == 0 {
		return nil, fmt.Errorf("queue %q: %w", name, rivertype.ErrNotFound)
	}
	return queues[0], nil
}

// QueueListParams says how many queues to list. Make it with NewQueueListParams.
type QueueListParams struct {
	limit int
}

// NewQueueListParams lists 100 queues at most.
func NewQueueListParams() *QueueListParams { return &QueueListParams{limit: 100} }

// First sets the most queues to return, 1 to 10,000. It panics on other values.
func (p *QueueListParams) First(count int) *QueueListParams {
	if count < 1 || count > 10_000 {
		panic("jobs: count must be between 1 and 10,000")
	}
	return &QueueListParams{limit: count}
}

// QueueListResult holds queues by name.
type QueueListResult struct {
	Queues []*rivertype.Queue
}

// QueueList lists the queues that QueueGet knows, by name; while all are paused, "*" is among them.
func (c *Client) QueueList(ctx context.Context, params *QueueListParams) (*QueueListResult, error) {
	return c.queues(ctx, c.pool, params)
}

// QueueListTx is QueueList as seen in the caller's transaction.
func (c *Client) QueueListTx(ctx context.Context, tx pgx.Tx, params *QueueListParams) (*QueueListResult, error) {
	return c.queues(ctx, tx, params)
}

func (c *Client) queues(ctx context.Context, db store.DB, params *QueueListParams) (*QueueListResult, error) {
	if params == nil {
		params = NewQueueListParams()
	}
	queues, err := c.store.Queues(ctx, db, "", params.limit)
	if err != nil {
		return nil, err
	}
	return &QueueListResult{Queues: queues}, nil
}

// QueuePause keeps all executors from taking jobs of a queue, AllQueues of any. Jobs that run go on. Executors that listen
// learn it at once, all by their next heartbeat. A paused queue may be unknown yet.
func (c *Client) QueuePause(ctx context.Context, name string, opts *QueuePauseOpts) error {
	return c.operate(ctx, func(db store.DB) error { return c.pause(ctx, db, name, opts) })
}

// QueuePauseTx pauses a queue when the caller's transaction commits.
func (c *Client) QueuePauseTx(ctx context.Context, tx pgx.Tx, name string, opts *QueuePauseOpts) error {
	return operateTx(ctx, tx, func(db store.DB) error { return c.pause(ctx, db, name, opts) })
}

func (c *Client) pause(ctx context.Context, db store.DB, name string, _ *QueuePauseOpts) error {
	if err := checkQueueOrAll(name); err != nil {
		return err
	}
	return c.store.PauseQueue(ctx, db, name, c.AuditedActor(ctx))
}

// QueueResume ends a pause; AllQueues ends that of every queue. A queue stays paused while all are.
func (c *Client) QueueResume(ctx context.Context, name string, opts *QueuePauseOpts) error {
	return c.operate(ctx, func(db store.DB) error { return c.resume(ctx, db, name, opts) })
}

// QueueResumeTx ends a pause when the caller's transaction commits.
func (c *Client) QueueResumeTx(ctx context.Context, tx pgx.Tx, name string, opts *QueuePauseOpts) error {
	return operateTx(ctx, tx, func(db store.DB) error { return c.resume(ctx, db, name, opts) })
}

func (c *Client) resume(ctx context.Context, db store.DB, name string, _ *QueuePauseOpts) error {
	if err := checkQueueOrAll(name); err != nil {
		return err
	}
	return c.store.ResumeQueue(ctx, db, name, c.AuditedActor(ctx))
}

func checkQueueOrAll(name string) error {
	if name == AllQueues {
		return nil
	}
	return checkQueueName(name)
}

// QueueUpdateParams says what to change of a queue.
type QueueUpdateParams struct {
	// Metadata is the queue's new metadata, a JSON object. Empty: it stays.
	Metadata []byte
}

// QueueUpdate changes a queue, which may be unknown yet, and returns it.
func (c *Client) QueueUpdate(ctx context.Context, name string, params *QueueUpdateParams) (queue *rivertype.Queue, err error) {
	err = c.operate(ctx, func(db store.DB) error {
		queue, err = c.updateQueue(ctx, db, name, params)
		return err
	})
	return queue, err
}

// QueueUpdateTx is QueueUpdate in the caller's transaction.
func (c *Client) QueueUpdateTx(ctx context.Context, tx pgx.Tx, name string, params *QueueUpdateParams) (queue *rivertype.Queue, err error) {
	err = operateTx(ctx, tx, func(db store.DB) error {
		queue, err = c.updateQueue(ctx, db, name, params)
		return err
	})
	return queue, err
}

func (c *Client) updateQueue(ctx context.Context, db store.DB, name string, params *QueueUpdateParams) (*rivertype.Queue, error) {
	if err := checkQueueName(name); err != nil {
		return nil, err
	}
	if params != nil && len(params.Metadata) > 0 {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(params.Metadata, &object); err != nil || object == nil {
			return nil, fmt.Errorf("update queue %q: metadata is not a JSON object", name)
		}
		if err := c.store.UpdateQueue(ctx, db, name, params.Metadata, c.AuditedActor(ctx)); err != nil {
			return nil, err
		}
	}
	return c.queue(ctx, db, name)
}
