package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/jobs/joblog"
)

// ErrNotInWorker is returned by functions that only make sense under a worker's context.
var ErrNotInWorker = errors.New("not called under a worker's context")

// ErrJobLost is returned by CompleteTx when somebody else has ended the run: roll the transaction back.
var ErrJobLost = errors.New("this run of the job was ended by somebody else")

type workKey struct{}

// workContext is a worker's context: it carries the work, and its log for package joblog. It is part of the work itself.
type workContext struct {
	lazyContext

	work *work
}

// Value implements context.Context.
func (c *workContext) Value(key any) any {
	switch {
	case key == workKey{}:
		return c.work
	case joblog.IsContextKey(key):
		return c.work.log
	}
	return c.made().Value(key)
}

func workOf(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}

// ClientFromContext returns the client that works the job whose context this is. It panics outside a worker; see
// ClientFromContextSafely.
func ClientFromContext(ctx context.Context) *Client {
	c, err := ClientFromContextSafely(ctx)
	if err != nil {
		panic(err)
	}
	return c
}

// ClientFromContextSafely is ClientFromContext with ErrNotInWorker instead of a panic.
func ClientFromContextSafely(ctx context.Context) (*Client, error) {
	if w := workOf(ctx); w != nil {
		return w.client, nil
	}
	return nil, fmt.Errorf("client from context: %w", ErrNotInWorker)
}

// Logger returns a logger whose lines, from Info on, go to the log of the job whose context this is. Outside a worker it discards.
func Logger(ctx context.Context) *slog.Logger { return joblog.Logger(ctx) }

// Progress notes how far the job has come, in percent from 0 to 100, with a message; both can be seen at once. At most about
// one note a second is kept, the newest.
func Progress(ctx context.Context, percent float64, message string) error {
	if workOf(ctx) == nil {
		return fmt.Errorf("progress: %w", ErrNotInWorker)
	}
	return joblog.FromContext(ctx).Progress(percent, message)
}

// recorded is what a worker wants kept with its run.
type recorded struct {
	mu       sync.Mutex
	output   []byte
	metadata map[string]json.RawMessage // by key
	size     int                        // of metadata, encoded
}

// set keeps a value if all metadata of the run stay within the limit.
func (r *recorded) set(key string, name, encoded []byte) error {
	size := r.size + len(name) + len(":,") + len(encoded)
	if old, ok := r.metadata[key]; ok {
		size = r.size + len(encoded) - len(old)
	}
	if size+1 > MaxArgsBytes { // two braces, one comma less
		return fmt.Errorf("metadata of this run would be %d bytes, over the limit of %d for all its keys together", size, MaxArgsBytes)
	}
	if r.metadata == nil {
		r.metadata = map[string]json.RawMessage{}
	}
	r.metadata[key], r.size = encoded, size
	return nil
}

func (r *recorded) take() (output, metadata []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.metadata != nil {
		metadata, _ = json.Marshal(r.metadata) // every value was encoded before
	}
	return r.output, metadata
}

// RecordOutput keeps a value, encoded as JSON, as the run's output: River's RecordOutput. The last call counts; kept also when
// the run fails. At most 1 MiB.
func RecordOutput(ctx context.Context, output any) error {
	return record(ctx, "output", output, func(r *recorded, encoded []byte) error {
		r.output = encoded
		return nil
	})
}

// MetadataSet sets a key of the job's metadata when the run ends, whatever its outcome: River's MetadataSet. All keys and
// values of a run together are at most 1 MiB: a value that would exceed it is refused, those before it stay.
func MetadataSet(ctx context.Context, key string, value any) error {
	if key == "" {
		return errors.New("metadata: key is empty")
	}
	name, err := json.Marshal(key)
	if err == nil {
		err = checkEncoded("metadata key", name, MaxArgsBytes)
	}
	if err != nil {
		return err
	}
	return record(ctx, "metadata", value, func(r *recorded, encoded []byte) error { return r.set(key, name, encoded) })
}

func record(ctx context.Context, what string, value any, keep func(*recorded, []byte) error) error {
	w := workOf(ctx)
	if w == nil {
		return fmt.Errorf("record %s: %w", what, ErrNotInWorker)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("record %s: %w", what, err)
	}
	if err := checkEncoded(what, encoded, MaxArgsBytes); err != nil {
		return err
	}
	w.record.mu.Lock()
	defer w.record.mu.Unlock()
	return keep(&w.record, encoded)
}

// CompleteTx records the job as completed in the worker's own transaction: River's JobCompleteTx. The job's effect and its
// completion commit together, so the effect happens once. Return nil from Work afterwards. ErrJobLost: somebody else ended this
// run; roll back. If the transaction is rolled back, what Work returns counts; once it has committed, that no longer does. A worker
// that fails after all while the transaction is open has its error handler called, though the job may still complete.
func CompleteTx[T river.JobArgs](ctx context.Context, tx pgx.Tx, job *river.Job[T]) (*river.Job[T], error) {
	w := workOf(ctx)
	if w == nil || w.row.ID != job.ID {
		return nil, fmt.Errorf("complete job %d: %w", job.ID, ErrNotInWorker)
	}
	t := w.task
	now := t.Now()
	r := &store.Result{
		JobID: job.ID, Run: t.Run, Attempt: t.Attempts + 1, Outcome: state.Completed, StartedAt: &t.StartedAt, EndedAt: now,
	}
	r.Output, r.Metadata = w.record.take()
	r.Carried = carried(t)
	if w.mark != nil {
		r.FlowRun, r.FlowNode = w.mark.Run, w.mark.Node
	}
	t.Completed.Store(r)
	ours, err := w.client.store.InsertAttemptTx(ctx, tx, t.Executor, r)
	if err != nil {
		return nil, fmt.Errorf("complete job %d: %w", job.ID, err)
	}
	if !ours {
		return nil, fmt.Errorf("complete job %d: %w", job.ID, ErrJobLost)
	}
	row := *job.JobRow
	row.State, row.FinalizedAt = rivertype.JobStateCompleted, new(now)
	return &river.Job[T]{JobRow: &row, Args: job.Args}, nil
}
