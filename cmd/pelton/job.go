package main

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"
)

func (a *app) job() *cobra.Command {
	return parent(&cobra.Command{Use: "job", Short: "Enqueue jobs, look at them, change them", GroupID: groupOperate},
		a.jobEnqueue(), a.jobShow(), a.jobList(), a.jobLogs(), a.jobCancel(), a.jobRetry(), a.jobDelete())
}

// jobJSON is a job as all commands print it.
type jobJSON struct {
	ID          int64           `json:"id"`
	Kind        string          `json:"kind"`
	Queue       string          `json:"queue"`
	State       string          `json:"state"`
	Priority    int             `json:"priority"`
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
	Errors      []errorOfJob    `json:"errors"`
}

// errorOfJob is why an attempt failed.
type errorOfJob struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	Error   string    `json:"error"`
	Trace   string    `json:"trace"`
}

func newJobJSON(row *rivertype.JobRow) jobJSON {
	j := jobJSON{
		ID: row.ID, Kind: row.Kind, Queue: row.Queue, State: string(row.State), Priority: row.Priority,
		Attempt: row.Attempt, MaxAttempts: row.MaxAttempts,
		CreatedAt: row.CreatedAt.UTC(), ScheduledAt: row.ScheduledAt.UTC(), AttemptedAt: utc(row.AttemptedAt),
		FinalizedAt: utc(row.FinalizedAt), AttemptedBy: row.AttemptedBy, Args: row.EncodedArgs, Metadata: row.Metadata,
		Tags: row.Tags, Errors: make([]errorOfJob, 0, len(row.Errors)),
	}
	if output := row.Output(); len(output) > 0 {
		j.Output = output
	}
	if j.AttemptedBy == nil {
		j.AttemptedBy = []string{}
	}
	if j.Tags == nil {
		j.Tags = []string{}
	}
	for _, e := range row.Errors {
		j.Errors = append(j.Errors, errorOfJob{e.At.UTC(), e.Attempt, e.Error, e.Trace})
	}
	return j
}

// jobHead and jobCells are a job as a line of a table.
const jobHead = "ID KIND QUEUE STATE PRIORITY ATTEMPT CREATED SCHEDULED FINALIZED"

func jobCells(j jobJSON) []any {
	return []any{
		j.ID, j.Kind, j.Queue, j.State, j.Priority, strconv.Itoa(j.Attempt) + "/" + strconv.Itoa(j.MaxAttempts),
		moment(j.CreatedAt), moment(j.ScheduledAt), optionalMoment(j.FinalizedAt),
	}
}

// parseIDs reads job ids.
func parseIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return nil, usagef("%q is not a job id: want a number, as job enqueue and job list print it", arg)
		}
		ids[i] = id
	}
	return ids, nil
}

// parseAt reads a time: RFC 3339, or a duration from now.
func parseAt(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(d), nil
	}
	return time.Time{}, usagef("time %q: want RFC 3339 as 2026-01-02T15:04:05Z, or a duration from now as 10m", text)
}

func states() []string {
	var names []string
	for _, s := range rivertype.JobStates() {
		names = append(names, string(s))
	}
	return names
}

func parseStates(texts []string) ([]rivertype.JobState, error) {
	var list []rivertype.JobState
	for _, text := range texts {
		if err := oneOf("state", text, states()); err != nil {
			return nil, err
		}
		list = append(list, rivertype.JobState(text))
	}
	return list, nil
}

func orDash(s string) string { return cmp.Or(s, "-") }
