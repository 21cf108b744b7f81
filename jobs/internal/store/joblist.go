package store

import (
	"context"
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
	Within     time.Duration // how long to search, about; 0: until the end
}

// FoundJobs is a page of a list of jobs.
type FoundJobs struct {
	Jobs    []*rivertype.JobRow
	Cut     bool  // the page ends early, for its bytes
	Stopped int64 // not 0: the time was up before the page was full; the search goes on after this id
}

// ListJobs reads a page of the jobs that match. In a snapshot of its own transaction the jobs are as they were found; in READ
// COMMITTED one may have gone on a step meanwhile, and is shown as it is then.
func (s *Store) ListJobs(ctx context.Context, db DB, filter JobFilter, page JobPage) (found FoundJobs, err error) {
	var ids []int64
	if statement := searchOf(filter, page); statement != "" {
		ids, found.Stopped, err = s.search(ctx, db, statement, filter, page)
	} else {
		ids, err = s.listIDs(ctx, db, filter, page)
	}
	if err != nil {
		return FoundJobs{}, fmt.Errorf("list jobs: %w", err)
	}
	found.Jobs, found.Cut, err = s.jobRows(ctx, db, page.Bytes, ids)
	if found.Cut {
		found.Stopped = 0 // it goes on after the last job of the page
	}
	return found, err
}

// searchOf is the statement that searches in pieces, or "" for a list that is read at once.
func searchOf(filter JobFilter, page JobPage) string {
	badly := func(s rivertype.JobState) bool {
		return s == rivertype.JobStateCancelled || s == rivertype.JobStateDiscarded
	}
	switch {
	case page.Order != OrderByID || filter.Metadata != "" || len(filter.IDs) > 0:
		return ""
	case stateNames(filter.States) == nil:
		return "search_jobs"
	case !slices.ContainsFunc(filter.States, func(s rivertype.JobState) bool { return !badly(s) }):
		return "search_ended"
	}
	return ""
}

const (
	// leastPiece and largestPiece are how many jobs a piece of a search looks at, and pieceTime is how long that should take.
	leastPiece, largestPiece = 100, 50_000
	pieceTime                = 100 * time.Millisecond
)

// search finds jobs in pieces that grow while they are quick.
func (s *Store) search(ctx context.Context, db DB, statement string, filter JobFilter, page JobPage) (ids []int64, stopped int64, err error) {
	order, end, low, high := "ASC", "max", firstID(filter.Since), firstID(filter.Until)
	if page.Descending {
		order, end = "DESC", "min"
	}
	goOn := func(after int64) {
		if page.Descending && (high == nil || after < *high) {
			high = &after
		}
		if next := after + 1; !page.Descending && (low == nil || next > *low) {
			low = &next
		}
	}
	if page.AfterID != 0 {
		goOn(page.AfterID)
	}
	text := strings.NewReplacer("{order}", order, "{end}", end).Replace(s.sql.Get(statement))
	rows := max(leastPiece, page.Limit)
	for began := time.Now(); ; {
		args := []any{
			pgx.QueryExecModeCacheDescribe, low, high, nullIfNo(filter.Kinds), nullIfNo(filter.Queues), nullIfNo(filter.Priorities), nullIfNo(filter.TagsAny),
			nullIfNo(filter.TagsAll), nullIfEmpty(filter.Args),
		}
		if statement == "search_ended" {
			args = append(args, stateNames(filter.States))
		}
		var piece []int64
		var last *int64
		var looked int
		start := time.Now()
		if err := db.QueryRow(ctx, text, append(args, rows)...).Scan(&piece, &last, &looked); err != nil {
			return nil, 0, err
		}
		ids = append(ids, piece...)
		switch {
		case len(ids) >= page.Limit:
			return ids[:page.Limit], 0, nil
		case looked < rows:
			return ids, 0, nil
		case page.Within > 0 && time.Since(began) >= page.Within:
			return ids, *last, nil
		}
		goOn(*last)
		rows = int(float64(rows) * min(8, max(0.25, float64(pieceTime)/float64(time.Since(start)+1))))
		rows = min(max(rows, leastPiece), largestPiece)
	}
}

// listIDs finds the jobs. Without a filter or an order that asks where a job is, it does not look there.
func (s *Store) listIDs(ctx context.Context, db DB, filter JobFilter, page JobPage) ([]int64, error) {
	states := stateNames(filter.States)
	var afterID *int64
	if page.AfterID != 0 {
		afterID = &page.AfterID
	}
	args := []any{
		pgx.QueryExecModeCacheDescribe, firstID(filter.Since), firstID(filter.Until), nullIfNo(filter.IDs), nullIfNo(filter.Kinds),
		nullIfNo(filter.Queues), nullIfNo(filter.Priorities), nullIfNo(filter.TagsAny), nullIfNo(filter.TagsAll), nullIfEmpty(filter.Args),
	}
	name := "list_jobs"
	if states == nil && page.Order == OrderByID && filter.Metadata == "" {
		args = append(args, afterID, page.Limit)
	} else {
		name = "list_jobs_by_state"
		args = append(args, nullIfEmpty(filter.Metadata), states, inSmallPlaces(filter.States), afterID, page.AfterTime, page.Limit)
	}
	rows, err := db.Query(ctx, listText(s.sql.Get(name), page), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// listText puts the order into the statement: a row comparison for the cursor, so that a page begins where the last ended.
func listText(text string, page JobPage) string {
	key, order, sign := "coalesce(r."+string(page.Order)+", 'infinity'::timestamptz)", "ASC", ">"
	if page.Descending {
		order, sign = "DESC", "<"
	}
	if page.Order == OrderByID {
		key = "'infinity'::timestamptz"
		text = strings.ReplaceAll(text, "ORDER BY {key} {order}, ", "ORDER BY ")
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
