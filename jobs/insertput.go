package jobs

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// stored is what became of jobs.
type stored struct {
	jobs    []store.Inserted
	holders map[int64]*rivertype.JobRow // the jobs that hold the unique keys of those skipped; may lack some, or all
}

// put stores jobs in a transaction and reads in it who holds the unique keys of those that were skipped, if its role may read jobs.
func (c *Client) put(ctx context.Context, tx pgx.Tx, jobs []store.NewJob) (s stored, err error) {
	if s.jobs, err = c.store.Insert(ctx, tx, jobs, c.hints(ctx)); err != nil {
		return stored{}, err
	}
	var ids []int64
	for _, in := range s.jobs {
		if in.Skipped {
			ids = append(ids, in.ID)
		}
	}
	if len(ids) == 0 {
		return s, nil
	}
	if may, err := c.store.MayReadJobs(ctx, tx); err != nil || !may {
		return s, err
	}
	slices.Sort(ids)
	rows, err := c.store.JobRows(ctx, tx, slices.Compact(ids)...)
	if err != nil {
		return stored{}, fmt.Errorf("read the jobs that hold unique keys: %w", err)
	}
	s.holders = make(map[int64]*rivertype.JobRow, len(rows))
	for _, row := range rows {
		s.holders[row.ID] = row
	}
	return s, nil
}

// putOwn stores jobs in a transaction of their own. Unique ones need READ COMMITTED, whatever the session's default; the others
// are one statement.
func (c *Client) putOwn(ctx context.Context, jobs []store.NewJob) (s stored, err error) {
	err = c.onceMore(func() (err error) {
		if !slices.ContainsFunc(jobs, func(j store.NewJob) bool { return j.UniqueKey != nil }) {
			s.jobs, err = c.store.Insert(ctx, c.pool, jobs, c.hints(ctx))
			return err
		}
		return c.store.ReadCommitted(ctx, func(tx pgx.Tx) (err error) {
			s, err = c.put(ctx, tx, jobs)
			return err
		})
	})
	if err != nil {
		return stored{}, err
	}
	return s, c.hintInserted(ctx, c.pool, jobs)
}

// putIn is put in a caller's transaction.
func (c *Client) putIn(ctx context.Context, tx pgx.Tx, jobs []store.NewJob) (stored, error) {
	s, err := c.put(ctx, tx, jobs)
	if err != nil {
		return stored{}, err
	}
	return s, c.hintInserted(ctx, tx, jobs)
}

// onceMore runs a transaction that inserts jobs, and runs it again if it failed because their ids were taken: another attempt
// draws others.
func (c *Client) onceMore(insert func() error) error {
	err := insert()
	if c.store.IDTaken(err) {
		err = insert()
	}
	return err
}
