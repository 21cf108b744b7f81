package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// JobDelete removes a job with its attempts and returns what it was. A running job is not deleted: the error is
// rivertype.ErrJobRunning. rivertype.ErrNotFound if there is none. A dead letter and the log outlive the job.
//
// The run of a job whose ticket is being taken in this very moment may still happen once; it is recorded nowhere.
func (c *Client) JobDelete(ctx context.Context, id int64) (job *rivertype.JobRow, err error) {
	err = c.operate(ctx, func(db store.DB) error {
		job, err = c.deleteOne(ctx, db, id)
		return err
	})
	return job, err
}

// JobDeleteTx is JobDelete in the caller's transaction.
func (c *Client) JobDeleteTx(ctx context.Context, tx pgx.Tx, id int64) (job *rivertype.JobRow, err error) {
	err = operateTx(ctx, tx, func(db store.DB) error {
		job, err = c.deleteOne(ctx, db, id)
		return err
	})
	return job, err
}

func (c *Client) deleteOne(ctx context.Context, db store.DB, id int64) (*rivertype.JobRow, error) {
	job, err := c.store.JobRow(ctx, db, id)
	if err != nil {
		return nil, err
	}
	states, err := c.store.Delete(ctx, db, []int64{id}, c.AuditedActor(ctx))
	if err != nil {
		return nil, err
	}
	switch was, found := states[id]; {
	case !found:
		return nil, fmt.Errorf("job %d: %w", id, rivertype.ErrNotFound)
	case was == rivertype.JobStateRunning:
		return nil, fmt.Errorf("job %d: %w", id, rivertype.ErrJobRunning)
	}
	return job, nil
}

// JobDeleteManyParams says which jobs to delete. Make it with NewJobDeleteManyParams.
type JobDeleteManyParams struct {
	list JobListParams
	all  bool
}

// NewJobDeleteManyParams deletes at most 100 jobs, oldest first, once a filter says which.
func NewJobDeleteManyParams() *JobDeleteManyParams {
	return &JobDeleteManyParams{list: *NewJobListParams()}
}

// First sets the most jobs to delete, 1 to 10,000. It panics on other values.
func (p *JobDeleteManyParams) First(count int) *JobDeleteManyParams {
	return p.with(p.list.First(count))
}

// IDs selects jobs by id.
func (p *JobDeleteManyParams) IDs(ids ...int64) *JobDeleteManyParams {
	return p.with(p.list.IDs(ids...))
}

// Kinds selects jobs of these kinds.
func (p *JobDeleteManyParams) Kinds(kinds ...string) *JobDeleteManyParams {
	return p.with(p.list.Kinds(kinds...))
}

// Priorities selects jobs of these priorities.
func (p *JobDeleteManyParams) Priorities(priorities ...int16) *JobDeleteManyParams {
	return p.with(p.list.Priorities(priorities...))
}

// Queues selects jobs of these queues.
func (p *JobDeleteManyParams) Queues(queues ...string) *JobDeleteManyParams {
	return p.with(p.list.Queues(queues...))
}

// States selects jobs in these states.
func (p *JobDeleteManyParams) States(states ...rivertype.JobState) *JobDeleteManyParams {
	return p.with(p.list.States(states...))
}

// UnsafeAll allows a call without any filter: every job that does not run.
func (p *JobDeleteManyParams) UnsafeAll() *JobDeleteManyParams {
	params := *p
	params.all = true
	return &params
}

func (p *JobDeleteManyParams) with(list *JobListParams) *JobDeleteManyParams {
	return &JobDeleteManyParams{list: *list, all: p.all}
}

// JobDeleteManyResult holds what was deleted.
type JobDeleteManyResult struct {
	Jobs []*rivertype.JobRow
}

// errDeleteAll guards against deleting everything by leaving out the filters.
var errDeleteAll = errors.New("delete many jobs: no filter is set; set one (IDs, Kinds, ...) or call UnsafeAll")

// JobDeleteMany deletes jobs that match, oldest first, at most as many as First says; running jobs are passed over. Call it
// again until it deletes none.
func (c *Client) JobDeleteMany(ctx context.Context, params *JobDeleteManyParams) (result *JobDeleteManyResult, err error) {
	err = c.operate(ctx, func(db store.DB) error {
		result, err = c.deleteMany(ctx, db, params)
		return err
	})
	return result, err
}

// JobDeleteManyTx is JobDeleteMany in the caller's transaction.
func (c *Client) JobDeleteManyTx(ctx context.Context, tx pgx.Tx, params *JobDeleteManyParams) (result *JobDeleteManyResult, err error) {
	err = operateTx(ctx, tx, func(db store.DB) error {
		result, err = c.deleteMany(ctx, db, params)
		return err
	})
	return result, err
}

func (c *Client) deleteMany(ctx context.Context, db store.DB, params *JobDeleteManyParams) (*JobDeleteManyResult, error) {
	if params == nil || !params.all && !params.list.filtered() {
		return nil, errDeleteAll
	}
	filter := params.list.filter
	filter.States = withoutRunning(filter.States)
	found, err := c.store.ListJobs(ctx, db, filter, store.JobPage{Limit: params.list.limit})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(found.Jobs))
	for i, job := range found.Jobs {
		ids[i] = job.ID
	}
	states, err := c.store.Delete(ctx, db, ids, c.AuditedActor(ctx))
	if err != nil {
		return nil, err
	}
	result := &JobDeleteManyResult{Jobs: []*rivertype.JobRow{}}
	for _, job := range found.Jobs {
		if was, ok := states[job.ID]; ok && was != rivertype.JobStateRunning {
			result.Jobs = append(result.Jobs, job)
		}
	}
	return result, nil
}

// withoutRunning leaves running jobs out of the states asked for, so that they do not fill the page.
func withoutRunning(states []rivertype.JobState) []rivertype.JobState {
	if len(states) == 0 {
		states = rivertype.JobStates()
	}
	kept := make([]rivertype.JobState, 0, len(states))
	for _, s := range states {
		if s != rivertype.JobStateRunning {
			kept = append(kept, s)
		}
	}
	return kept
}
