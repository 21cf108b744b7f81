package jobs

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// JobRun is one run of a job, ended or going on.
type JobRun = store.Run

// JobRuns lists the runs of a job in order, all of them: JobRunsPart is for jobs that may have run very often. A job that waits for its first run, or does not
// exist, has none.
func (c *Client) JobRuns(ctx context.Context, id int64) ([]JobRun, error) {
	return c.store.Runs(ctx, c.pool, id)
}

// JobRunsParams says which runs of a job to list; the zero value: the newest 100.
type JobRunsParams struct {
	Before int // continue a list: only runs with smaller numbers
	Limit  int // 1 to 10,000; defaults to 100
	Bytes  int // end early when the runs take about so many bytes; 0: no bound
}

// JobRunsPart lists runs of a job, ended or going on, the newest first, and tells whether more follow.
func (c *Client) JobRunsPart(ctx context.Context, id int64, params JobRunsParams) (runs []JobRun, more bool, err error) {
	limit, err := reportLimit(params.Limit)
	if err != nil {
		return nil, false, err
	}
	before := int64(params.Before)
	if before == 0 {
		before = math.MaxInt64
	}
	return c.store.RunsBefore(ctx, c.pool, id, before, limit, params.Bytes)
}

// AuditEntry says who changed what.
type AuditEntry = store.AuditEntry

// AuditListParams says which entries of the audit table to list; the zero value: the newest 100.
type AuditListParams struct {
	Target string // job id, queue name, ...
	Action string // job.cancel, queue.pause, dead.redrive, ...
	Actor  string
	Since  time.Time // including
	Before int64     // continue a list: only entries with smaller ids
	Limit  int       // 1 to 10,000; defaults to 100
	Bytes  int       // end early when the entries take about so many bytes; 0: no bound
}

// AuditList lists who changed what, newest first.
func (c *Client) AuditList(ctx context.Context, params *AuditListParams) ([]AuditEntry, error) {
	entries, _, err := c.AuditPart(ctx, params)
	return entries, err
}

// AuditPart is AuditList that also tells whether more entries follow.
func (c *Client) AuditPart(ctx context.Context, params *AuditListParams) (entries []AuditEntry, more bool, err error) {
	if params == nil {
		params = &AuditListParams{}
	}
	limit, err := reportLimit(params.Limit)
	if err != nil {
		return nil, false, err
	}
	f := store.AuditFilter{Target: params.Target, Action: params.Action, Actor: params.Actor}
	if !params.Since.IsZero() {
		f.Since = &params.Since
	}
	if params.Before > 0 {
		f.Before = &params.Before
	}
	return c.store.ListAudit(ctx, c.pool, f, limit, params.Bytes)
}

// Executor is a process that works jobs, or did lately.
type Executor = store.ExecutorReport

// ExecutorListParams says which processes to list; the zero value: the 100 newest of those that have not ended.
type ExecutorListParams struct {
	Ended  bool  // also those that have stopped or died
	Before int64 // continue a list: only processes with smaller ids
	Limit  int   // 1 to 10,000; defaults to 100
}

// ExecutorList lists processes, the newest first.
func (c *Client) ExecutorList(ctx context.Context, params *ExecutorListParams) ([]Executor, error) {
	if params == nil {
		params = &ExecutorListParams{}
	}
	limit, err := reportLimit(params.Limit)
	if err != nil {
		return nil, err
	}
	var before *int64
	if params.Before > 0 {
		before = &params.Before
	}
	return c.store.Executors(ctx, c.pool, params.Ended, before, limit)
}

func reportLimit(limit int) (int, error) {
	switch {
	case limit == 0:
		return 100, nil
	case limit < 0 || limit > 10_000:
		return 0, fmt.Errorf("limit is %d, want 1 to 10,000", limit)
	}
	return limit, nil
}
