package jobs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// Insert enqueues one job in a transaction of its own. opts may be nil. Errors: *InvalidJobError for bad input.
func (c *Client) Insert(ctx context.Context, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error) {
	return first(c.insertBy(ctx, []river.InsertManyParams{{Args: args, InsertOpts: opts}}, c.putOwn))
}

// InsertTx enqueues one job in the caller's transaction: it exists if and when that commits. A unique job in a transaction
// stricter than READ COMMITTED may fail with SQLSTATE 40001, if another with its key is just being inserted.
func (c *Client) InsertTx(
	ctx context.Context, tx pgx.Tx, args river.JobArgs, opts *river.InsertOpts,
) (*rivertype.JobInsertResult, error) {
	return first(c.InsertManyTx(ctx, tx, []river.InsertManyParams{{Args: args, InsertOpts: opts}}))
}

// InsertMany enqueues jobs in one transaction of its own: all or none. Results are in the order of params.
func (c *Client) InsertMany(ctx context.Context, params []river.InsertManyParams) ([]*rivertype.JobInsertResult, error) {
	return c.insertBy(ctx, params, c.putOwn)
}

// InsertManyTx enqueues jobs in the caller's transaction.
func (c *Client) InsertManyTx(
	ctx context.Context, tx pgx.Tx, params []river.InsertManyParams,
) ([]*rivertype.JobInsertResult, error) {
	return c.insertBy(ctx, params, func(ctx context.Context, jobs []store.NewJob) (stored, error) { return c.putIn(ctx, tx, jobs) })
}

// InsertSQLTx enqueues one job in a database/sql transaction, of any driver.
func (c *Client) InsertSQLTx(
	ctx context.Context, tx *sql.Tx, args river.JobArgs, opts *river.InsertOpts,
) (*rivertype.JobInsertResult, error) {
	return first(c.InsertManySQLTx(ctx, tx, []river.InsertManyParams{{Args: args, InsertOpts: opts}}))
}

// InsertManySQLTx enqueues jobs in a database/sql transaction, of any driver.
func (c *Client) InsertManySQLTx(
	ctx context.Context, tx *sql.Tx, params []river.InsertManyParams,
) ([]*rivertype.JobInsertResult, error) {
	return c.insertBy(ctx, params, func(ctx context.Context, jobs []store.NewJob) (stored, error) {
		in, err := c.store.InsertSQL(ctx, tx, jobs, c.hints(ctx)) // which hints at jobs due soon, too
		return stored{jobs: in}, err
	})
}

// CheckInsert tells what Insert would refuse before anything is stored, a *InvalidJobError; hooks and middleware have no say.
func (c *Client) CheckInsert(args river.JobArgs, opts *river.InsertOpts) error {
	prepared, err := c.prepare([]river.InsertManyParams{{Args: args, InsertOpts: opts}})
	if err == nil {
		_, err = newJobs(prepared)
	}
	if invalid, ok := errors.AsType[*InvalidJobError](err); ok {
		invalid.alone = true
	}
	return err
}

// insertBy takes jobs through hooks and middleware to put.
func (c *Client) insertBy(
	ctx context.Context, params []river.InsertManyParams, put func(context.Context, []store.NewJob) (stored, error),
) ([]*rivertype.JobInsertResult, error) {
	if len(params) == 0 {
		return nil, nil
	}
	prepared, err := c.prepare(params)
	if err != nil {
		return nil, err
	}
	return c.plugins.insert(ctx, prepared, func(ctx context.Context) ([]*rivertype.JobInsertResult, error) {
		jobs, err := newJobs(prepared)
		if err != nil {
			return nil, err
		}
		s, err := put(ctx, jobs)
		if err != nil {
			return nil, err
		}
		return c.insertResults(prepared, s), nil
	})
}

// prepare checks every job before any is stored.
func (c *Client) prepare(params []river.InsertManyParams) ([]*rivertype.JobInsertParams, error) {
	prepared := make([]*rivertype.JobInsertParams, len(params))
	for i := range params {
		p, err := c.insertParams(params[i].Args, params[i].InsertOpts)
		if err != nil {
			return nil, &InvalidJobError{Index: i, Kind: kindOf(params[i].Args), Err: err}
		}
		prepared[i] = p
	}
	return prepared, nil
}

func kindOf(args river.JobArgs) string {
	if args == nil {
		return ""
	}
	return args.Kind()
}

func newJobs(prepared []*rivertype.JobInsertParams) ([]store.NewJob, error) {
	jobs := make([]store.NewJob, len(prepared))
	for i, p := range prepared {
		if err := checkParams(p); err != nil {
			return nil, &InvalidJobError{Index: i, Kind: p.Kind, Err: err}
		}
		jobs[i] = newJob(p)
	}
	return jobs, nil
}

func (c *Client) insertResults(prepared []*rivertype.JobInsertParams, s stored) []*rivertype.JobInsertResult {
	results := make([]*rivertype.JobInsertResult, len(prepared))
	for i, p := range prepared {
		in := s.jobs[i]
		row, known := s.holders[in.ID]
		if !known {
			row = insertedRow(p, in)
		}
		results[i] = &rivertype.JobInsertResult{Job: row, UniqueSkippedAsDuplicate: in.Skipped}
	}
	c.enqueued(prepared, func(i int) bool { return !s.jobs[i].Skipped })
	return results
}

// enqueued tells the observer what went in, once per queue and kind.
func (c *Client) enqueued(prepared []*rivertype.JobInsertParams, in func(i int) bool) {
	c.hintScheduled(prepared)
	if len(prepared) == 1 && in(0) {
		c.config.Observer.Enqueued(prepared[0].Queue, prepared[0].Kind, 1)
		return
	}
	counts := map[[2]string]int{}
	for i, p := range prepared {
		if in(i) {
			counts[[2]string{p.Queue, p.Kind}]++
		}
	}
	for key, n := range counts {
		c.config.Observer.Enqueued(key[0], key[1], n)
	}
}

func first(results []*rivertype.JobInsertResult, err error) (*rivertype.JobInsertResult, error) {
	if err != nil {
		if invalid, ok := errors.AsType[*InvalidJobError](err); ok {
			invalid.alone = true
		}
		return nil, err
	}
	return results[0], nil
}

type withoutHintKey struct{}

// WithoutHint makes inserts under ctx send no NOTIFY, which a transaction prepared for two-phase commit must not hold. The jobs
// are found by the next poll.
func WithoutHint(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutHintKey{}, true)
}

func (c *Client) hints(ctx context.Context) bool {
	return !c.config.NotifyOff && ctx.Value(withoutHintKey{}) == nil
}

// RawArgs are args whose kind and JSON are known only at run time, for tools and other languages. They are stored byte for byte.
type RawArgs struct {
	JobKind string
	JSON    json.RawMessage

	// UniqueKey, if not empty, makes the job unique: while another job of its kind and key is in one of the states in which
	// unique jobs hold their keys by default, it is skipped as a duplicate. Not together with UniqueOpts.
	UniqueKey string
}

// Kind is the job's kind.
func (a RawArgs) Kind() string { return a.JobKind }

// MarshalJSON returns the JSON as it is.
func (a RawArgs) MarshalJSON() ([]byte, error) {
	if len(a.JSON) == 0 {
		return []byte("{}"), nil
	}
	return a.JSON, nil
}
