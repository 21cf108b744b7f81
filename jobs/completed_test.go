package jobs_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// ends collects how runs are told to have ended.
type ends struct {
	refusals

	mu       sync.Mutex
	outcomes []string
}

func (e *ends) Finished(runs []jobs.RunStats, _ time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, run := range runs {
		e.outcomes = append(e.outcomes, run.Outcome)
	}
}

// complaints counts calls of an error handler.
type complaints struct{ n atomic.Int32 }

func (c *complaints) HandleError(context.Context, *rivertype.JobRow, error) *river.ErrorHandlerResult {
	c.n.Add(1)
	return nil
}

func (c *complaints) HandlePanic(context.Context, *rivertype.JobRow, any, string) *river.ErrorHandlerResult {
	c.n.Add(1)
	return nil
}

// What a worker returns after its CompleteTx has committed does not count: not in the database, and not in what is told.
func TestReturnAfterCommittedCompleteTx(t *testing.T) {
	t.Parallel()
	for name, returned := range map[string]error{"error": errors.New("too late"), "snooze": river.JobSnooze(time.Hour)} {
		for _, when := range []string{"before", "after"} {
			t.Run(name+", committed "+when, func(t *testing.T) {
				t.Parallel()
				pool := schematest.Pool(t)
				open := make(chan pgx.Tx, 1)
				c := config(func(ctx context.Context, job *river.Job[taskArgs]) error {
					tx, err := pool.Begin(context.WithoutCancel(ctx))
					if err != nil {
						return err
					}
					if _, err := jobs.CompleteTx(ctx, tx, job); err != nil {
						return err
					}
					if when == "after" {
						open <- tx
					} else if err := tx.Commit(ctx); err != nil {
						return err
					}
					return returned
				})
				seen, handler := &ends{}, &complaints{}
				c.Observer, c.ErrorHandler = seen, handler
				client := start(t, pool, c)
				told, stop := client.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobSnoozed)
				defer stop()
				id := insert(t, client, 1, nil)
				if when == "after" {
					if err := (<-open).Commit(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				var event *river.Event
				select {
				case event = <-told:
				case <-time.After(patience):
					t.Fatal("nothing is told of the run's end")
				}
				if event.Kind != river.EventKindJobCompleted || event.Job.State != rivertype.JobStateCompleted || len(event.Job.Errors) > 0 {
					t.Errorf("told %s of a job that is %s, errors %v", event.Kind, event.Job.State, event.Job.Errors)
				}
				seen.mu.Lock()
				defer seen.mu.Unlock()
				if got := outcomes(t, pool, id); got != "completed" || len(seen.outcomes) != 1 || seen.outcomes[0] != "completed" {
					t.Errorf("the run ended %q, statistics say %v", got, seen.outcomes)
				}
				if when == "before" && handler.n.Load() > 0 {
					t.Error("the error handler was called for a completed job")
				}
			})
		}
	}
}
