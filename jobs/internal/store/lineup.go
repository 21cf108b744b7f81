package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Entry is a run on its way into a line.
type Entry struct {
	JobID    int64
	Run      int32
	Attempts int16 // counted before
	Line     string
	Priority int16
}

// LineUp appends tickets of at most maxTicket jobs each, in order, and hints at the work unless hint is false.
func (s *Store) LineUp(ctx context.Context, db DB, entries []Entry, maxTicket int, hint bool) error {
	n := len(entries)
	if n == 0 {
		return nil
	}
	lines, priorities, ids := make([]string, n), make([]int16, n), make([]int64, n)
	runs, attempts := make([]int32, n), make([]int16, n)
	for i, e := range entries {
		lines[i], priorities[i], ids[i], runs[i], attempts[i] = e.Line, e.Priority, e.JobID, e.Run, e.Attempts
	}
	if _, err := db.Exec(ctx, s.sql.Get("line_up"), lines, priorities, ids, runs, attempts, maxTicket); err != nil {
		return fmt.Errorf("put %d runs into the line: %w", n, err)
	}
	if !hint {
		return nil
	}
	if _, err := db.Exec(ctx, s.sql.Get("wake"), lines); err != nil {
		return fmt.Errorf("hint at work: %w", err)
	}
	return nil
}

// Delayed is a run that waits for a retry.
type Delayed struct {
	JobID    int64
	Run      int32
	Attempts int16
	Delay    time.Duration
}

// PutOff puts runs into job_scheduled, by the database's clock.
func (s *Store) PutOff(ctx context.Context, db DB, list []Delayed) error {
	n := len(list)
	if n == 0 {
		return nil
	}
	ids, runs, attempts, delays := make([]int64, n), make([]int32, n), make([]int16, n), make([]float64, n)
	for i, d := range list {
		ids[i], runs[i], attempts[i], delays[i] = d.JobID, d.Run, d.Attempts, d.Delay.Seconds()
	}
	if _, err := db.Exec(ctx, s.sql.Get("put_off"), ids, runs, attempts, delays); err != nil {
		return fmt.Errorf("put off %d runs: %w", n, err)
	}
	return nil
}

// Ended is a run that a duty ends.
type Ended struct {
	JobID     int64
	Run       int32
	Attempt   int16 // counted, this run included
	Outcome   string
	StartedAt *time.Time
	Delay     *time.Duration // until the further run; nil: at once, or none
	Error     string
}

// EndRuns records runs as ended and returns those that were not ended by somebody else before. executor is who had them, 0 if
// nobody had.
func (s *Store) EndRuns(ctx context.Context, db DB, executor int64, list []Ended) (map[RunKey]bool, error) {
	n := len(list)
	ids, runs, attempts, outcomes := make([]int64, n), make([]int32, n), make([]int16, n), make([]string, n)
	started, delays, errs := make([]*time.Time, n), make([]*float64, n), make([]*string, n)
	for i := range list {
		e := &list[i]
		ids[i], runs[i], attempts[i], outcomes[i], started[i] = e.JobID, e.Run, e.Attempt, e.Outcome, e.StartedAt
		if e.Delay != nil {
			seconds := e.Delay.Seconds()
			delays[i] = &seconds
		}
		if e.Error != "" {
			errs[i] = &e.Error
		}
	}
	var owner *int64
	if executor != 0 {
		owner = &executor
	}
	rows, err := db.Query(ctx, s.sql.Get("end_runs"), owner, ids, runs, attempts, outcomes, started, delays, errs)
	if err != nil {
		return nil, fmt.Errorf("end %d runs: %w", n, err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[RunKey])
	if err != nil {
		return nil, fmt.Errorf("end %d runs: %w", n, err)
	}
	ended := make(map[RunKey]bool, len(keys))
	for _, key := range keys {
		ended[key] = true
	}
	return ended, nil
}

// Facts are what decides where a job's next run goes.
type Facts struct {
	JobID        int64
	Queue        string
	Priority     int16
	MaxAttempts  int16
	UniqueKey    []byte
	UniqueStates int16
	Node         bool // it is of a node of a flow
}

// ReadFacts reads the facts of jobs; a job without a row is missing from the result.
func (s *Store) ReadFacts(ctx context.Context, db DB, ids []int64) (map[int64]Facts, error) {
	rows, err := s.byIDs(ctx, db, "facts", ids)
	if err != nil {
		return nil, fmt.Errorf("read %d jobs: %w", len(ids), err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Facts])
	if err != nil {
		return nil, fmt.Errorf("read %d jobs: %w", len(ids), err)
	}
	facts := make(map[int64]Facts, len(list))
	for _, f := range list {
		facts[f.JobID] = f
	}
	return facts, nil
}
