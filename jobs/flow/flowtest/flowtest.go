// Package flowtest is a kit for testing flows: the job kind "test", which Azkaban's own examples use, whose jobs sleep, fail, pass
// after some retries, or end as a test decides.
package flowtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

// Kind is the kind of test jobs.
const Kind = "test"

// Args are the parameters of a node of type test, resolved.
type Args map[string]string

// Kind implements river.JobArgs.
func (Args) Kind() string { return Kind }

// Job is a test job that a test decides on.
type Job struct {
	Node    flow.NodeRef
	Attempt int // from 0
	Args    Args
}

// Worker works test jobs:
//
//	seconds=N    sleeps so long, fractions allowed
//	fail=true    fails, but with passRetry=N passes when the attempt, counted from 0, is above N
//	fail=false   passes
//
// Without fail, Decide decides.
type Worker struct {
	river.WorkerDefaults[Args]

	// Decide works a job without fail: it returns the outputs, or why the job fails. nil: it passes at once.
	Decide func(ctx context.Context, job Job) (outputs map[string]string, err error)
}

// ErrFailed is why a job with fail=true fails.
var ErrFailed = errors.New("this job was to fail")

// Work implements river.Worker.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	node, _ := flow.NodeOf(job.JobRow)
	j := Job{Node: node, Attempt: job.Attempt - 1, Args: job.Args}
	if err := j.sleep(ctx); err != nil {
		return err
	}
	if fail, given := j.Args["fail"]; given {
		return j.failOrPass(fail)
	}
	if w.Decide == nil {
		return nil
	}
	outputs, err := w.Decide(ctx, j)
	if err != nil || outputs == nil {
		return err
	}
	return jobs.RecordOutput(ctx, outputs)
}

func (j Job) sleep(ctx context.Context) error {
	text := j.Args["seconds"]
	if text == "" {
		return nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return river.JobCancel(fmt.Errorf("seconds=%s is no number", text))
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return nil
	}
}

func (j Job) failOrPass(fail string) error {
	failing, err := strconv.ParseBool(fail)
	if err != nil {
		return river.JobCancel(fmt.Errorf("fail=%s is neither true nor false", fail))
	}
	if !failing {
		return nil
	}
	if text, given := j.Args["passRetry"]; given {
		passes, err := strconv.Atoi(text)
		if err != nil {
			return river.JobCancel(fmt.Errorf("passRetry=%s is no number", text))
		}
		if j.Attempt > passes {
			return nil
		}
	}
	return ErrFailed
}
