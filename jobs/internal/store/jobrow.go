package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// JobRows reads jobs by id, each from one snapshot, in id order. Jobs that do not exist are left out.
func (s *Store) JobRows(ctx context.Context, db DB, ids ...int64) ([]*rivertype.JobRow, error) {
	rows, err := db.Query(ctx, s.sql.Get("job_rows"), pgx.QueryExecModeCacheDescribe, ids)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	jobs, err := pgx.CollectRows(rows, scanJobRow)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	return jobs, nil
}

// JobRow reads one job, or returns rivertype.ErrNotFound.
func (s *Store) JobRow(ctx context.Context, db DB, id int64) (*rivertype.JobRow, error) {
	jobs, err := s.JobRows(ctx, db, id)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("job %d: %w", id, rivertype.ErrNotFound)
	}
	return jobs[0], nil
}

// scanJobRow reads a row of the view job_row. The output goes into the metadata, where River's JobRow.Output looks for it.
func scanJobRow(row pgx.CollectableRow) (*rivertype.JobRow, error) {
	var (
		job            rivertype.JobRow
		run            int32
		args, metadata string
		output         *string
		failures       []byte
		unique         int16
	)
	err := row.Scan(&job.ID, &job.Kind, &job.Queue, &job.Priority, &job.State, &run, &job.Attempt, &job.MaxAttempts, &args, &metadata,
		&output, &job.Tags, &job.CreatedAt, &job.ScheduledAt, &job.AttemptedAt, &job.AttemptedBy, &job.FinalizedAt, &failures,
		&job.UniqueKey, &unique)
	if err != nil {
		return nil, err
	}
	if job.State == rivertype.JobStateRunning {
		job.Attempt++
	}
	job.EncodedArgs = []byte(args)
	if job.Metadata, err = withOutput(metadata, output); err != nil {
		return nil, fmt.Errorf("metadata of job %d: %w", job.ID, err)
	}
	if len(failures) > 0 {
		if err := json.Unmarshal(failures, &job.Errors); err != nil {
			return nil, fmt.Errorf("errors of job %d: %w", job.ID, err)
		}
	}
	job.UniqueStates = state.FromBits(byte(unique)) //nolint:gosec // eight states, eight bits
	return &job, nil
}

func withOutput(metadata string, output *string) ([]byte, error) {
	if output == nil {
		return []byte(metadata), nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(metadata), &fields); err != nil {
		return nil, err
	}
	fields[rivertype.MetadataKeyOutput] = json.RawMessage(*output)
	return json.Marshal(fields)
}

// JobFilter says which jobs to list. Zero fields filter nothing.
type JobFilter struct {
	IDs        []int64
	Kinds      []string
	Queues     []string
	Priorities []int16
	States     []rivertype.JobState
	TagsAny    []string
	TagsAll    []string
	Metadata   string // a JSON fragment that the metadata contains
	Args       string // a JSON fragment that the args contain
	Since      *time.Time
	Until      *time.Time // of creation
}

// JobOrder is the time that a list is ordered by, then by id.
type JobOrder string

// Orders of lists of jobs. A time that a job does not have counts as later than all others.
const (
	OrderByID          JobOrder = ""
	OrderByScheduledAt JobOrder = "scheduled_at"
	OrderByAttemptedAt JobOrder = "attempted_at"
	OrderByFinalizedAt JobOrder = "finalized_at"
)

// JobPage says which part of a list to read.
type JobPage struct {
	Order      JobOrder
	Descending bool
	AfterID    int64      // 0: from the start
	AfterTime  *time.Time // of the order; nil: none
	Limit      int
}

// ListJobs reads a page of the jobs that match.
func (s *Store) ListJobs(ctx context.Context, db DB, filter JobFilter, page JobPage) ([]*rivertype.JobRow, error) {
	var afterID *int64
	if page.AfterID != 0 {
		afterID = &page.AfterID
	}
	rows, err := db.Query(ctx, listText(s.sql.Get("list_jobs"), page), pgx.QueryExecModeCacheDescribe,
		firstID(filter.Since), firstID(filter.Until), nullIfNo(filter.IDs), nullIfNo(filter.Kinds), nullIfNo(filter.Queues),
		nullIfNo(filter.Priorities), nullIfNo(filter.TagsAny), nullIfNo(filter.TagsAll), nullIfEmpty(filter.Metadata),
		nullIfEmpty(filter.Args), stateNames(filter.States), inSmallPlaces(filter.States), afterID, page.AfterTime, page.Limit)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	jobs, err := pgx.CollectRows(rows, scanJobRow)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return jobs, nil
}

// listText puts the order into the statement: a row comparison for the cursor, so that a page begins where the last ended.
func listText(text string, page JobPage) string {
	key, order, sign := "coalesce(r."+string(page.Order)+", 'infinity'::timestamptz)", "ASC", ">"
	if page.Descending {
		order, sign = "DESC", "<"
	}
	if page.Order == OrderByID {
		text = strings.ReplaceAll(text, "({key}, r.id) {sign} ($14::timestamptz, $13)",
			"r.id {sign} $13 AND ($14::timestamptz IS NULL OR true)")
		text = strings.ReplaceAll(text, "ORDER BY {key} {order}, ", "ORDER BY ")
	} else {
		text = strings.ReplaceAll(text, "$14::timestamptz", "coalesce($14::timestamptz, 'infinity')")
	}
	return strings.NewReplacer("{key}", key, "{order}", order, "{sign}", sign).Replace(text)
}

// inSmallPlaces returns the states if all of them are read from places that stay small, else nil.
func inSmallPlaces(states []rivertype.JobState) []string {
	for _, s := range states {
		switch s {
		case rivertype.JobStateRunning, rivertype.JobStateScheduled, rivertype.JobStateRetryable, rivertype.JobStatePending:
		case rivertype.JobStateAvailable, rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded:
			return nil
		}
	}
	return stateNames(states)
}

func stateNames(states []rivertype.JobState) []string {
	if len(states) == 0 || len(states) == len(rivertype.JobStates()) {
		return nil
	}
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = string(s)
	}
	return names
}

// idEpoch is the time whose second has the id 0.
var idEpoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// firstID is the least id that a job made at t can have, rounded down to the second; nil for no time.
func firstID(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	id := max(0, int64(t.Sub(idEpoch)/time.Second)) << 24
	return &id
}

// WaitingCount is how many jobs of a queue wait or run in one state.
type WaitingCount struct {
	Queue string
	State rivertype.JobState
	Jobs  int64
}

// CountWaiting counts the jobs that wait or run, by queue and state.
func (s *Store) CountWaiting(ctx context.Context, db DB) ([]WaitingCount, error) {
	rows, err := db.Query(ctx, s.sql.Get("count_waiting"), pgx.QueryExecModeCacheDescribe)
	if err != nil {
		return nil, fmt.Errorf("count waiting jobs: %w", err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[WaitingCount])
	if err != nil {
		return nil, fmt.Errorf("count waiting jobs: %w", err)
	}
	return counts, nil
}
