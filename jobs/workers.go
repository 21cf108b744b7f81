package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Workers is a bundle of workers by job kind, filled by AddWorker before a client is made of it. Not safe for concurrent use
// while it is being filled.
type Workers struct {
	byKind map[string]*workerEntry
}

// workerEntry is one registered worker; aliases share an entry.
type workerEntry struct {
	args river.JobArgs // an empty value of the args type, asked for its hooks
	unit func(row *rivertype.JobRow) workUnit
}

// workUnit is one job bound to its worker.
type workUnit interface {
	unmarshal() error
	work(ctx context.Context) error
	timeout() time.Duration
	nextRetry() time.Time
	middleware() []rivertype.WorkerMiddleware
}

// NewWorkers makes an empty bundle.
func NewWorkers() *Workers {
	return &Workers{byKind: map[string]*workerEntry{}}
}

// AddWorker registers a worker for the kind of T and its aliases. It panics if one of them has a worker already; use
// AddWorkerSafely for an error instead.
func AddWorker[T river.JobArgs](workers *Workers, worker river.Worker[T]) {
	if err := AddWorkerSafely(workers, worker); err != nil {
		panic(err)
	}
}

// AddWorkerSafely registers a worker for the kind of T and its aliases, or tells which of them has a worker already.
func AddWorkerSafely[T river.JobArgs](workers *Workers, worker river.Worker[T]) error {
	var zero T
	return AddWorkerArgs(workers, zero, worker)
}

// AddWorkerArgs is AddWorkerSafely for an args type whose kind depends on its value: args is asked for it.
func AddWorkerArgs[T river.JobArgs](workers *Workers, args T, worker river.Worker[T]) error {
	kinds := []string{args.Kind()}
	if a, ok := any(args).(river.JobArgsWithKindAliases); ok {
		kinds = append(kinds, a.KindAliases()...)
	}
	for i, kind := range kinds {
		if _, ok := workers.byKind[kind]; ok || slices.Contains(kinds[:i], kind) {
			return fmt.Errorf("worker for kind %q is already registered", kind)
		}
	}
	entry := &workerEntry{args: args, unit: func(row *rivertype.JobRow) workUnit {
		return &typedUnit[T]{worker: worker, job: river.Job[T]{JobRow: row}}
	}}
	for _, kind := range kinds {
		workers.byKind[kind] = entry
	}
	return nil
}

// Kinds lists the kinds that have a worker, sorted.
func (w *Workers) Kinds() []string {
	return slices.Sorted(maps.Keys(w.byKind))
}

// typedUnit is a job with its args' type.
type typedUnit[T river.JobArgs] struct {
	worker river.Worker[T]
	job    river.Job[T]
}

func (u *typedUnit[T]) unmarshal() error {
	if err := json.Unmarshal(u.job.EncodedArgs, &u.job.Args); err != nil {
		return fmt.Errorf("decode args of kind %q: %w", u.job.Kind, err)
	}
	return nil
}

func (u *typedUnit[T]) work(ctx context.Context) error { return u.worker.Work(ctx, &u.job) }
func (u *typedUnit[T]) timeout() time.Duration         { return u.worker.Timeout(&u.job) }
func (u *typedUnit[T]) nextRetry() time.Time           { return u.worker.NextRetry(&u.job) }
func (u *typedUnit[T]) middleware() []rivertype.WorkerMiddleware {
	return u.worker.Middleware(u.job.JobRow)
}
