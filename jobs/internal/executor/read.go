package executor

import (
	"context"
	"slices"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// readTries is how often the rows of claimed jobs are asked for before the jobs are handed back.
const readTries = 5

// read makes tasks of claimed tickets. Runs that must not start are ended here, and are not among the tasks.
func (q *queue) read(ctx context.Context, executor int64, tickets []store.Ticket, jobs int) ([]*Task, error) {
	tasks := makeTasks(executor, tickets, jobs)
	ids := make([]int64, len(tasks))
	var again []store.RunKey
	for i, t := range tasks {
		ids[i] = t.ID
		if t.Run > 1 {
			again = append(again, store.RunKey{JobID: t.ID, Run: t.Run})
		}
	}
	claimed, err := q.readClaimed(ctx, ids, again)
	if err != nil {
		q.handBack(tasks)
		return nil, err
	}
	return q.sortOut(tasks, claimed), nil
}

func (q *queue) readClaimed(ctx context.Context, ids []int64, again []store.RunKey) (*store.Claimed, error) {
	for try := 1; ; try++ {
		claimed, err := q.e.store.ReadClaimed(ctx, ids, again)
		if err == nil || try == readTries || !service.Sleep(ctx, backoff(try)) {
			return claimed, err
		}
	}
}

// unread stands for a job whose row is not read yet, or missing.
var unread = &store.Job{Priority: 1}

func makeTasks(executor int64, tickets []store.Ticket, jobs int) []*Task {
	slab := make([]Task, jobs)
	clock := &claimTime{database: tickets[0].ClaimedAt, local: time.Now()}
	tasks := make([]*Task, 0, jobs)
	for i := range tickets {
		ticket := &tickets[i]
		for k, id := range ticket.JobIDs {
			n := len(tasks)
			t := &slab[n]
			t.ID, t.Run, t.Attempts, t.Executor = id, ticket.Run(k), ticket.Attempt(k), executor
			t.Job = unread
			t.Line, t.EnteredAt, t.claim = ticket.Line, ticket.EnteredAt, clock
			t.lease = leaseKey{executor, ticket.Lease}
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// sortOut gives tasks their jobs and ends those that cannot be worked: voided, of an unknown kind, or without a row.
func (q *queue) sortOut(tasks []*Task, claimed *store.Claimed) []*Task {
	tasks = slices.DeleteFunc(tasks, func(t *Task) bool {
		job, found := claimed.Jobs[t.ID]
		if found {
			t.Job = job
		}
		switch {
		case claimed.Voids.Applies(t.ID, t.Run) != "":
			q.e.finish.addVoided(t)
		case !found:
			q.end(t, state.Discarded, missingJob(t))
		case !q.e.knows(job.Kind):
			t.Line = job.Queue + kindLine + job.Kind
			q.end(t, state.Parked, "")
		default:
			t.Earlier = claimed.Attempts[job.ID]
			return false
		}
		return true
	})
	return tasks
}

// end ends a task that no worker saw.
func (q *queue) end(t *Task, outcome state.Outcome, fault string) {
	t.Result = store.Result{
		JobID: t.ID, Run: t.Run, Attempt: t.Attempts, Outcome: outcome, EndedAt: t.Now(), Error: fault,
		Line: t.Line, Priority: t.Job.Priority,
	}
	q.e.finish.add(t)
}

func (e *Executor) knows(kind string) bool {
	_, known := slices.BinarySearch(e.config.Kinds, kind)
	return known
}
