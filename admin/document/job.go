package document

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Job is a job as everything shows it.
type Job struct {
	ID          int64           `json:"id"`
	Kind        string          `json:"kind"`
	Queue       string          `json:"queue"`
	State       string          `json:"state" doc:"available, cancelled, completed, discarded, pending, retryable, running or scheduled"`
	Priority    int             `json:"priority" doc:"1 (first) to 4"`
	Attempt     int             `json:"attempt"`
	MaxAttempts int             `json:"max_attempts"`
	CreatedAt   time.Time       `json:"created_at"`
	ScheduledAt time.Time       `json:"scheduled_at"`
	AttemptedAt *time.Time      `json:"attempted_at"`
	FinalizedAt *time.Time      `json:"finalized_at"`
	AttemptedBy []string        `json:"attempted_by"`
	Args        json.RawMessage `json:"args"`
	Metadata    json.RawMessage `json:"metadata"`
	Output      json.RawMessage `json:"output"`
	Tags        []string        `json:"tags"`
	Errors      []JobError      `json:"errors"`
}

// JobError is why an attempt failed.
type JobError struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	Error   string    `json:"error"`
	Trace   string    `json:"trace"`
}

// NewJob shows a job.
func NewJob(row *rivertype.JobRow) Job {
	j := Job{
		ID: row.ID, Kind: row.Kind, Queue: row.Queue, State: string(row.State), Priority: row.Priority,
		Attempt: row.Attempt, MaxAttempts: row.MaxAttempts,
		CreatedAt: row.CreatedAt.UTC(), ScheduledAt: row.ScheduledAt.UTC(), AttemptedAt: UTC(row.AttemptedAt),
		FinalizedAt: UTC(row.FinalizedAt), AttemptedBy: Texts(row.AttemptedBy), Args: row.EncodedArgs, Metadata: row.Metadata,
		Tags: Texts(row.Tags), Errors: make([]JobError, 0, len(row.Errors)),
	}
	if output := row.Output(); len(output) > 0 {
		j.Output = output
	}
	for _, e := range row.Errors {
		j.Errors = append(j.Errors, JobError{e.At.UTC(), e.Attempt, e.Error, e.Trace})
	}
	return j
}

// NewJobs shows jobs.
func NewJobs(rows []*rivertype.JobRow) []Job {
	list := make([]Job, len(rows))
	for i, row := range rows {
		list[i] = NewJob(row)
	}
	return list
}

// EnqueuedJob is the answer to one enqueued job.
type EnqueuedJob struct {
	Job

	Duplicate bool `json:"duplicate" doc:"nothing was enqueued: id is the job that holds the unique key"`
}

// A JobDetail has so many runs, and of these so many bytes, about.
const (
	runsShown = 100
	runsBytes = 4 << 20
)

// JobDetail is a job with its runs.
type JobDetail struct {
	Job

	Waits        string  `json:"waits" doc:"what keeps it waiting beside its time and its turn; empty: nothing does, or it does not wait"`
	RedrivenFrom int64   `json:"redriven_from,omitempty" doc:"the job whose dead letter this job was made of"`
	RedrivenAs   []int64 `json:"redriven_as" doc:"the jobs that redrives made of this job's dead letters, the newest first, at most 10; known for as long as the audit is kept"`

	Runs        []Run     `json:"runs" doc:"the last 100, in order; of large ones fewer"`
	RunsLeftOut int       `json:"runs_left_out" doc:"how many there were before these"`
	Logs        []LogSize `json:"logs" doc:"of the last 100 runs that printed something, in order"`
}

// ReadJobDetail reads a job, its last runs and how much they printed.
func ReadJobDetail(ctx context.Context, db joblog.DB, client *jobs.Client, id int64) (JobDetail, error) {
	row, err := client.JobGet(ctx, id)
	if err != nil {
		return JobDetail{}, err
	}
	waits, err := client.JobWaits(ctx, row)
	if err != nil {
		return JobDetail{}, err
	}
	runs, _, err := client.JobRunsPart(ctx, id, jobs.JobRunsParams{Limit: runsShown, Bytes: runsBytes})
	if err != nil {
		return JobDetail{}, err
	}
	slices.Reverse(runs)
	logs, err := ReadLogSizes(ctx, db, client.Schema(), id)
	if err != nil {
		return JobDetail{}, err
	}
	redriven, err := client.RedrivenAs(ctx, id)
	if err != nil {
		return JobDetail{}, err
	}
	d := JobDetail{Job: NewJob(row), Waits: waits, RedrivenFrom: jobs.RedrivenFrom(row), RedrivenAs: redriven, Runs: NewRuns(runs), Logs: logs}
	if len(runs) > 0 {
		d.RunsLeftOut = runs[0].Run - 1 // they are numbered from 1 on
	}
	return d, nil
}

// Run is a run of a job.
type Run struct {
	Run       int             `json:"run"`
	Attempt   int             `json:"attempt"`
	Outcome   string          `json:"outcome" doc:"how it ended, or running"`
	StartedAt *time.Time      `json:"started_at"`
	EndedAt   *time.Time      `json:"ended_at"`
	NextDue   *time.Time      `json:"next_due"`
	Executor  string          `json:"executor"`
	Host      string          `json:"host"`
	Error     string          `json:"error"`
	Trace     string          `json:"trace"`
	Output    json.RawMessage `json:"output"`
}

// NewRuns shows runs.
func NewRuns(runs []jobs.JobRun) []Run {
	list := make([]Run, len(runs))
	for i, r := range runs {
		list[i] = Run{
			r.Run, r.Attempt, r.Outcome, UTC(r.StartedAt), UTC(r.EndedAt), UTC(r.NextDue), r.Executor, r.Host, r.Error, r.Trace, r.Output,
		}
	}
	return list
}

// UTC makes times of documents UTC.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// Texts is a list that JSON shows as one even if it is empty.
func Texts(list []string) []string { return append([]string{}, list...) }

// NextRun says when a job that waits runs, as far as it is up to the job; empty: it does not wait.
func NextRun(job *rivertype.JobRow) string {
	switch job.State { //nolint:exhaustive // the others do not wait
	case rivertype.JobStateAvailable:
		return fmt.Sprintf("is in the line of queue %s since %s, and runs when it is its turn", job.Queue, job.ScheduledAt.UTC().Format(time.RFC3339))
	case rivertype.JobStateScheduled:
		return fmt.Sprintf("is scheduled for %s", job.ScheduledAt.UTC().Format(time.RFC3339))
	case rivertype.JobStateRetryable:
		return fmt.Sprintf("has failed and runs again at %s", job.ScheduledAt.UTC().Format(time.RFC3339))
	case rivertype.JobStatePending:
		return fmt.Sprintf("is pending: it waits to be released, as by \"Run now\" on its page or pelton job retry %d", job.ID)
	}
	return ""
}
