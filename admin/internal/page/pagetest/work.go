package pagetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Task is a job that does what its args say.
type Task struct {
	Print  string `json:"print,omitempty"`  // to stdout
	Warn   string `json:"warn,omitempty"`   // to stderr
	Output string `json:"output,omitempty"` // recorded
	Fail   string `json:"fail,omitempty"`   // the error it returns
	Panic  string `json:"panic,omitempty"`
	Wait   bool   `json:"wait,omitempty"` // runs until its context ends; prints a line now and then
	Note   string `json:"note,omitempty"` // nothing
}

// Kind implements river.JobArgs.
func (Task) Kind() string { return "task" }

// Working is a configuration that works tasks of the queues default and mail, quickly.
func Working() jobs.Config {
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(work))
	return jobs.Config{
		Queues:  map[string]jobs.QueueConfig{"default": {MaxWorkers: 10}, "mail": {MaxWorkers: 2}},
		Workers: workers, RetryPolicy: hourly{}, Heartbeat: 50 * time.Millisecond, Lease: 30 * time.Second, PollInterval: 100 * time.Millisecond,
	}
}

// hourly retries after an hour: what failed stays as it is for the length of a test.
type hourly struct{}

// NextRetry implements river.ClientRetryPolicy.
func (hourly) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(time.Hour) }

func work(ctx context.Context, job *river.Job[Task]) error {
	log, a := joblog.FromContext(ctx), job.Args
	_, _ = fmt.Fprint(log.Stream(joblog.Stdout), a.Print)
	_, _ = fmt.Fprint(log.Stream(joblog.Stderr), a.Warn)
	if a.Output != "" {
		if err := jobs.RecordOutput(ctx, map[string]string{"result": a.Output}); err != nil {
			return err
		}
	}
	switch {
	case a.Panic != "":
		panic(a.Panic)
	case a.Fail != "":
		return errors.New(a.Fail)
	case a.Wait:
		return wait(ctx, log)
	}
	return nil
}

func wait(ctx context.Context, log *joblog.Run) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			_, _ = fmt.Fprintf(log.Stream(joblog.Stdout), "step %d\n", n)
		}
	}
}

// Insert enqueues a task.
func (s *Site) Insert(task Task, opts *river.InsertOpts) int64 {
	s.t.Helper()
	result, err := s.Jobs.Insert(s.t.Context(), task, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	return result.Job.ID
}

// WaitState waits until a job is in a state.
func (s *Site) WaitState(id int64, state rivertype.JobState) {
	s.t.Helper()
	pgtest.Retry(s.t, Patience, func(ctx context.Context) error {
		job, err := s.Jobs.JobGet(ctx, id)
		if err == nil && job.State != state {
			err = fmt.Errorf("job %d is %s, want %s", id, job.State, state)
		}
		return err
	})
}

// FillTallies writes a day of tallies of some queues, for charts.
func (s *Site) FillTallies() {
	s.t.Helper()
	s.Exec(`INSERT INTO pelton.queue_tally SELECT date_trunc('minute', now()) - n * interval '1 minute', q.name,
			(q.rate * (1.2 + sin(n / 90.0) + (n * 7919 % 13) / 13.0))::integer, CASE WHEN n % 17 < 3 THEN q.rate / 20 ELSE 0 END, n % 2, CASE WHEN n % 53 = 0 THEN q.rate / 30 ELSE 0 END,
			ARRAY(SELECT (q.rate * exp(-((i - 6 - q.slow) ^ 2) / 8.0))::integer FROM generate_series(1, 26) i)
		FROM generate_series(0, 1439) n, (VALUES ('default', 400, 0), ('mail', 60, 4), ('reports', 20, 8)) q(name, rate, slow)`)
}
