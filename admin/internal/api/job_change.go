package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

func (s *server) addJobChanges() {
	change := func(id, method, path, summary, detail string, role access.Role, do func(context.Context, int64) (*rivertype.JobRow, error)) {
		add(s, operation{
			id: id, method: method, path: path, tag: "jobs", role: role, summary: summary, detail: detail, errors: []int{http.StatusConflict},
		}, func(ctx context.Context, in *JobPath) (*answer[document.Job], error) {
			row, err := do(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			return &answer[document.Job]{document.NewJob(row)}, nil
		})
	}
	change("jobs-cancel", http.MethodPost, "/jobs/{id}/cancel", "Cancel a job",
		"One that waits never runs; a running one's context is cancelled, within a heartbeat at the latest. A job that has ended stays as it is.",
		access.Operator, s.Jobs.JobCancel)
	change("jobs-retry", http.MethodPost, "/jobs/{id}/retry", "Make a job available now, whether ended, scheduled or pending",
		"One that has ended runs once more under its id. A running one is left alone.", access.Operator, s.Jobs.JobRetry)
	add(s, operation{
		id: "jobs-reschedule", method: http.MethodPost, path: "/jobs/{id}/reschedule", tag: "jobs", role: access.Operator, errors: []int{http.StatusConflict},
		summary: "Give a job that is scheduled or retryable another time",
		detail: "One that is available, running or pending, or has ended, is refused (`job-not-scheduled`), and so is one of a flow's node, whose run decides when it " +
			"runs (`flow-node`).",
	}, func(ctx context.Context, in *rescheduleInput) (*answer[document.Job], error) {
		row, err := s.Jobs.JobReschedule(ctx, in.ID, in.Body.At, nil)
		if err != nil {
			return nil, err
		}
		return &answer[document.Job]{document.NewJob(row)}, nil
	})
	change("jobs-delete", http.MethodDelete, "/jobs/{id}", "Delete a job that does not run, with its attempts",
		"Its logs and its dead letter stay until their retention.", access.Admin, s.Jobs.JobDelete)
	add(s, operation{
		id: "jobs-erase", method: http.MethodPost, path: "/jobs/{id}/erase", tag: "jobs", role: access.Admin, errors: []int{http.StatusConflict},
		summary: "Blank what a job that has ended held, for privacy",
		detail: "Args, tags, metadata, outputs, errors, logs, dead letters; of a flow's node also its outputs and its run's parameters. It cannot be undone, " +
			"and an erased job does not run again. Erasing twice does no harm.",
	}, func(ctx context.Context, in *JobPath) (*answer[document.Erased], error) {
		done, err := s.Jobs.JobErase(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return &answer[document.Erased]{document.NewErased(in.ID, done)}, nil
	})
	add(s, operation{
		id: "jobs-update", method: http.MethodPatch, path: "/jobs/{id}", tag: "jobs", role: access.Operator, body: 3 << 20,
		summary: "Change a job", detail: "What is left out stays. Nothing that a run has begun with changes.",
	}, s.jobsUpdate)
}

// JobReschedule is when a job is to run.
type JobReschedule struct {
	At time.Time `json:"at" doc:"when it is to run; a time gone by: at once"`
}

type rescheduleInput struct {
	JobPath

	Body JobReschedule
}

// JobUpdate is what to change of a job.
type JobUpdate struct {
	Queue       string                     `json:"queue,omitempty" minLength:"1"`
	Priority    int                        `json:"priority,omitempty" minimum:"1" maximum:"4" doc:"1 (first) to 4"`
	MaxAttempts int                        `json:"max_attempts,omitempty" minimum:"1" maximum:"32767" doc:"counts from the next end of a run on"`
	Args        json.RawMessage            `json:"args,omitempty" doc:"count from the next run on"`
	Metadata    map[string]json.RawMessage `json:"metadata,omitempty" doc:"merged into the job's, key by key"`
	Output      json.RawMessage            `json:"output,omitempty"`
}

type updateInput struct {
	JobPath

	Body JobUpdate
}

func (s *server) jobsUpdate(ctx context.Context, in *updateInput) (*answer[document.Job], error) {
	b := in.Body
	p := &jobs.JobUpdateParams{Queue: b.Queue, Priority: b.Priority, MaxAttempts: b.MaxAttempts}
	if len(b.Args) > 0 {
		p.Args = b.Args
	}
	if len(b.Output) > 0 {
		p.Output = b.Output
	}
	if len(b.Metadata) > 0 {
		p.Metadata = map[string]any{}
		for key, value := range b.Metadata {
			p.Metadata[key] = value
		}
	}
	if p.Queue == "" && p.Priority == 0 && p.MaxAttempts == 0 && p.Args == nil && p.Output == nil && p.Metadata == nil {
		return nil, invalid("body", "nothing to change: name queue, priority, max_attempts, args, metadata or output")
	}
	row, err := s.Jobs.JobUpdate(ctx, in.ID, p)
	if err != nil {
		return nil, err
	}
	return &answer[document.Job]{document.NewJob(row)}, nil
}
