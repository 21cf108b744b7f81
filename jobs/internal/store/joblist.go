package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"
)

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
	Text       string // a part of the args as they are stored; only of lists by id
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
	Bytes      int           // that the jobs of the page take, about, if they are more than one; 0: no bound
	Within     time.Duration // how long to search, about, where that can be stopped; 0: until the end
}

// FoundJobs is a page of a list of jobs.
type FoundJobs struct {
	Jobs    []*rivertype.JobRow
	Cut     bool      // the page ends early, for its bytes
	Stopped *Position // as in FoundIDs
}

// FoundIDs are the jobs of a page of a list.
type FoundIDs struct {
	IDs     []int64
	Reached int64     // the last id looked at, in a list by id
	Ended   bool      // there is nothing after it
	Stopped *Position // the time was up before the page was full: the search goes on after this place; nil: it was not
}

// Position is a place in a list.
type Position struct {
	ID   int64
	Time *time.Time // of the order; nil: the list is by id
}

// ListJobs reads a page of the jobs that match. In a snapshot of its own transaction the jobs are as they were found; in READ
// COMMITTED one may have gone on a step meanwhile, and is shown as it is then.
func (s *Store) ListJobs(ctx context.Context, db DB, filter JobFilter, page JobPage) (FoundJobs, error) {
	found, err := s.FindJobs(ctx, db, filter, page)
	if err != nil {
		return FoundJobs{}, err
	}
	jobs, cut, err := s.jobRows(ctx, db, page.Bytes, found.IDs)
	if cut {
		found.Stopped = nil // it goes on after the last job of the page
	}
	return FoundJobs{Jobs: jobs, Cut: cut, Stopped: found.Stopped}, err
}

// FindJobs is ListJobs that reads no more than the ids.
func (s *Store) FindJobs(ctx context.Context, db DB, filter JobFilter, page JobPage) (found FoundIDs, err error) {
	switch {
	case page.Order == OrderByID:
		found, err = s.searchByID(ctx, db, filter, page)
	case page.Order == OrderByFinalizedAt && allEnded(filter.States) && len(filter.IDs) == 0 && filter.Text == "":
		found, err = s.searchByEnd(ctx, db, filter, page)
	default:
		found.IDs, err = s.listByTime(ctx, db, filter, page)
	}
	if err != nil {
		return FoundIDs{}, fmt.Errorf("list jobs: %w", err)
	}
	return found, nil
}

// listByTime finds the jobs of a list that is read at once, since no index has its order.
func (s *Store) listByTime(ctx context.Context, db DB, filter JobFilter, page JobPage) ([]int64, error) {
	var afterID *int64
	if page.AfterID != 0 {
		afterID = &page.AfterID
	}
	before, err := limitStatement(ctx, db, page.Within)
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, listText(s.sql.Get("list_jobs_by_time"), page),
		pgx.QueryExecModeCacheDescribe, firstID(filter.Since), firstID(filter.Until), nullIfNo(filter.IDs), nullIfNo(filter.Kinds),
		nullIfNo(filter.Queues), nullIfNo(filter.Priorities), nullIfNo(filter.TagsAny), nullIfNo(filter.TagsAll), nullIfEmpty(filter.Args),
		nullIfEmpty(filter.Metadata), stateNames(filter.States), inSmallPlaces(filter.States), afterID, page.AfterTime, page.Limit)
	var ids []int64
	if err == nil {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	switch {
	case page.Within > 0 && SQLState(err) == queryCanceled && ctx.Err() == nil:
		return nil, fmt.Errorf("%w %v", ErrListTooLong, page.Within)
	case err != nil || page.Within == 0:
		return ids, err
	}
	_, err = db.Exec(ctx, "SELECT set_config('statement_timeout', $1, true)", pgx.QueryExecModeExec, before)
	return ids, err
}

// ErrListTooLong says that a list that is read at once took too long.
var ErrListTooLong = errors.New("no index has the order of this list, and sorting it took longer than")

// queryCanceled is the SQLSTATE of a statement that took too long.
const queryCanceled = "57014"

// limitStatement sets how long statements of this transaction may take, unless it is 0, and tells what held before.
func limitStatement(ctx context.Context, db DB, within time.Duration) (before string, err error) {
	if within == 0 {
		return "", nil
	}
	err = db.QueryRow(ctx, "SELECT current_setting('statement_timeout'), set_config('statement_timeout', $1, true)", pgx.QueryExecModeExec, milliseconds(within)).Scan(&before, nil)
	return before, err
}

// listText puts the order into the statement: a row comparison for the cursor, so that a page begins where the last ended.
func listText(text string, page JobPage) string {
	key, order, sign := "coalesce(r."+string(page.Order)+", 'infinity'::timestamptz)", "ASC", ">"
	if page.Descending {
		order, sign = "DESC", "<"
	}
	text = strings.ReplaceAll(text, "$14::timestamptz", "coalesce($14::timestamptz, 'infinity')")
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

// allEnded tells whether only jobs that have ended are asked for.
func allEnded(states []rivertype.JobState) bool {
	return len(states) > 0 && !slices.ContainsFunc(states, func(s rivertype.JobState) bool {
		return s != rivertype.JobStateCompleted && s != rivertype.JobStateCancelled && s != rivertype.JobStateDiscarded
	})
}

// idBits are the bits of an id below the second.
const idBits = 24

// idEpoch is the time whose second has the id 0.
var idEpoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// firstID is the least id that a job made at t can have, rounded down to the second; nil for no time.
func firstID(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	id := max(0, int64(t.Sub(idEpoch)/time.Second)) << idBits
	return &id
}

// TimeOfID is the second in which a job was made.
func TimeOfID(id int64) time.Time { return idEpoch.Add(time.Duration(id>>idBits) * time.Second) }
