package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

// manyBytes bounds the body of many jobs.
const manyBytes = 16 << 20

func (s *server) addEnqueue() {
	add(s, operation{
		id: "jobs-enqueue", method: http.MethodPost, path: "/jobs", tag: "jobs", role: access.Operator, status: http.StatusCreated,
		summary: "Enqueue a job", errors: []int{http.StatusConflict}, body: 3 << 20,
	}, s.jobsEnqueue)
	add(s, operation{
		id: "jobs-enqueue-many", method: http.MethodPost, path: "/jobs/many", tag: "jobs", role: access.Operator, status: http.StatusCreated,
		summary: "Enqueue up to 10,000 jobs, all or none", errors: []int{http.StatusConflict}, body: manyBytes, time: time.Minute,
	}, s.jobsEnqueueMany)
}

type enqueueInput struct {
	Keyed

	Body document.NewJobSpec
}

func (s *server) jobsEnqueue(ctx context.Context, in *enqueueInput) (*onceAnswer[document.EnqueuedJob], error) {
	params, err := in.Body.Params()
	if err != nil {
		return nil, newProblem("invalid-job", "job of kind %q: %v", in.Body.Kind, err)
	}
	return doOnce(ctx, s, in.Key, []any{"jobs-enqueue", in.Body}, func(ctx context.Context, tx pgx.Tx) (document.EnqueuedJob, error) {
		result, err := s.Jobs.InsertTx(ctx, tx, params.Args, params.InsertOpts)
		if err != nil {
			return document.EnqueuedJob{}, err
		}
		if err := s.Jobs.AuditInsertTx(ctx, tx, jobs.EnqueuedResults(result)); err != nil {
			return document.EnqueuedJob{}, err
		}
		return document.EnqueuedJob{Job: document.NewJob(result.Job), Duplicate: result.UniqueSkippedAsDuplicate}, nil
	})
}

// EnqueueMany are jobs to enqueue.
type EnqueueMany struct {
	Jobs []document.NewJobSpec `json:"jobs" minItems:"1" maxItems:"10000"`
}

type enqueueManyInput struct {
	Keyed

	Body EnqueueMany
}

// EnqueuedMany is the answer to many enqueued jobs.
type EnqueuedMany struct {
	Enqueued   int          `json:"enqueued"`
	Duplicates int          `json:"duplicates" doc:"not enqueued: another job held the unique key"`
	Jobs       []EnqueuedID `json:"jobs" doc:"in the order of the request"`
}

// EnqueuedID is one of many enqueued jobs.
type EnqueuedID struct {
	ID        int64 `json:"id"`
	Duplicate bool  `json:"duplicate" doc:"nothing was enqueued: id is the job that holds the unique key"`
}

func (s *server) jobsEnqueueMany(ctx context.Context, in *enqueueManyInput) (*onceAnswer[EnqueuedMany], error) {
	params := make([]river.InsertManyParams, len(in.Body.Jobs))
	for i, spec := range in.Body.Jobs {
		var err error
		if params[i], err = spec.Params(); err != nil {
			return nil, invalidJob(i, err)
		}
	}
	return doOnce(ctx, s, in.Key, []any{"jobs-enqueue-many", in.Body}, func(ctx context.Context, tx pgx.Tx) (EnqueuedMany, error) {
		results, err := s.Jobs.InsertManyTx(ctx, tx, params)
		if refused, is := errors.AsType[*jobs.InvalidJobError](err); is {
			return EnqueuedMany{}, invalidJob(refused.Index, refused.Err)
		}
		if err != nil {
			return EnqueuedMany{}, err
		}
		many := EnqueuedMany{Jobs: make([]EnqueuedID, len(results))}
		for i, r := range results {
			many.Jobs[i] = EnqueuedID{r.Job.ID, r.UniqueSkippedAsDuplicate}
			if r.UniqueSkippedAsDuplicate {
				many.Duplicates++
			} else {
				many.Enqueued++
			}
		}
		return many, s.Jobs.AuditInsertTx(ctx, tx, jobs.EnqueuedResults(results...))
	})
}

// invalidJob says which of many jobs is wrong.
func invalidJob(index int, err error) *problem {
	at := fmt.Sprintf("body.jobs[%d]", index)
	p := newProblem("invalid-job", "%s: %v; nothing was enqueued", at, err)
	p.Errors = []fault{{at, err.Error()}}
	return p
}
