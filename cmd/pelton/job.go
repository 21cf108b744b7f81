package main

import (
	"cmp"
	"strconv"
	"time"

	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/span"
)

func (a *app) job() *cobra.Command {
	return parent(&cobra.Command{Use: "job", Short: "Enqueue jobs, look at them, change them", GroupID: groupOperate},
		a.jobEnqueue(), a.jobShow(), a.jobList(), a.jobLogs(), a.jobCancel(), a.jobRetry(), a.jobReschedule(), a.jobDelete(), a.jobErase())
}

// jobHead and jobCells are a job as a line of a table.
const jobHead = "ID KIND QUEUE STATE PRIORITY ATTEMPT CREATED SCHEDULED FINALIZED"

func jobCells(j document.Job) []any {
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

// parseAt reads a time: RFC 3339, or a duration from now. Empty: zero.
func parseAt(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := span.Parse(text); err == nil {
		return time.Now().Add(d), nil
	}
	return time.Time{}, usagef("time %q: want RFC 3339 as 2026-01-02T15:04:05Z, or a duration from now as 10m or 3d", text)
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
