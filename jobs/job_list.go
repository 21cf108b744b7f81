package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// SortOrder is the direction of a list.
type SortOrder int

// Directions of lists.
const (
	SortOrderAsc SortOrder = iota
	SortOrderDesc
)

// JobListOrderByField is what a list of jobs is ordered by.
type JobListOrderByField string

// Orders of lists of jobs.
const (
	// JobListOrderByID is roughly the order of creation, and the one that large tables answer quickly.
	JobListOrderByID JobListOrderByField = "id"

	// JobListOrderByFinalizedAt needs States to hold ended states only; without States it is all of them.
	JobListOrderByFinalizedAt JobListOrderByField = "finalized_at"

	JobListOrderByScheduledAt JobListOrderByField = "scheduled_at"

	// JobListOrderByTime is the time that fits the first of States: scheduled_at for jobs that wait, attempted_at for running
	// ones, finalized_at for those that have ended. Jobs without it count as latest.
	JobListOrderByTime JobListOrderByField = "time"
)

// searchWindow is how far back a search looks that no index can answer, unless Since says otherwise.
const searchWindow = 24 * time.Hour

// JobListParams says which jobs to list. Make it with NewJobListParams; each method returns a changed copy.
type JobListParams struct {
	filter store.JobFilter
	limit  int
	bytes  int
	field  JobListOrderByField
	order  SortOrder
	after  *JobListCursor
	within time.Duration
}

// NewJobListParams lists jobs in all states by id, ascending, 100 at most.
func NewJobListParams() *JobListParams {
	return &JobListParams{limit: 100, field: JobListOrderByID}
}

func (p *JobListParams) with(change func(*JobListParams)) *JobListParams {
	params := *p
	change(&params)
	return &params
}

// After continues a list after a cursor, which must come from a list with the same order.
func (p *JobListParams) After(cursor *JobListCursor) *JobListParams {
	return p.with(func(p *JobListParams) { p.after = cursor })
}

// First sets the most jobs to return, 1 to 10,000. It panics on other values.
func (p *JobListParams) First(count int) *JobListParams {
	if count < 1 || count > 10_000 {
		panic("jobs: count must be between 1 and 10,000")
	}
	return p.with(func(p *JobListParams) { p.limit = count })
}

// Bytes ends the list early when its jobs take about so many bytes: args, metadata, outputs, errors. There is one at least. 0: no bound.
func (p *JobListParams) Bytes(count int) *JobListParams {
	return p.with(func(p *JobListParams) { p.bytes = count })
}

// IDs selects jobs by id.
func (p *JobListParams) IDs(ids ...int64) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.IDs = slices.Clone(ids) })
}

// Kinds selects jobs of these kinds.
func (p *JobListParams) Kinds(kinds ...string) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.Kinds = slices.Clone(kinds) })
}

// Queues selects jobs of these queues.
func (p *JobListParams) Queues(queues ...string) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.Queues = slices.Clone(queues) })
}

// Priorities selects jobs of these priorities.
func (p *JobListParams) Priorities(priorities ...int16) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.Priorities = slices.Clone(priorities) })
}

// States selects jobs in these states.
func (p *JobListParams) States(states ...rivertype.JobState) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.States = slices.Clone(states) })
}

// TagsAny selects jobs that have at least one of these tags.
func (p *JobListParams) TagsAny(tags ...string) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.TagsAny = slices.Clone(tags) })
}

// TagsAll selects jobs that have all of these tags.
func (p *JobListParams) TagsAll(tags ...string) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.TagsAll = slices.Clone(tags) })
}

// Metadata selects jobs whose metadata contains a JSON fragment. No index helps: without Since it looks at the jobs of the last
// 24 hours.
func (p *JobListParams) Metadata(fragment string) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.Metadata = fragment })
}

// Args selects jobs whose args contain a JSON fragment, looking as far back as Metadata does.
func (p *JobListParams) Args(fragment string) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.Args = fragment })
}

// ArgsText selects jobs whose args, as they are stored, hold a text, looking as far back as Since says. Only lists by id can be asked for it.
func (p *JobListParams) ArgsText(text string) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.Text = text })
}

// Since selects jobs made at or after a time, to the second.
func (p *JobListParams) Since(t time.Time) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.Since = &t })
}

// Until selects jobs made before a time, to the second.
func (p *JobListParams) Until(t time.Time) *JobListParams {
	return p.with(func(p *JobListParams) { p.filter.Until = &t })
}

// Within bounds the time that a list takes, about. A list by id, or by finalized_at, ends its search then with what was found, which may be nothing: the result's Stopped,
// SearchedTo and LastCursor tell how far it came and how it goes on. Other lists must be sorted as a whole, and fail with [ErrListTooLong] then. 0, which is the
// default: no bound.
func (p *JobListParams) Within(d time.Duration) *JobListParams {
	return p.with(func(p *JobListParams) { p.within = d })
}

// OrderBy orders the list.
func (p *JobListParams) OrderBy(field JobListOrderByField, order SortOrder) *JobListParams {
	return p.with(func(p *JobListParams) { p.field, p.order = field, order })
}

func (p *JobListParams) filtered() bool {
	f := p.filter
	return len(f.IDs)+len(f.Kinds)+len(f.Queues)+len(f.Priorities)+len(f.States)+len(f.TagsAny)+len(f.TagsAll) > 0
}

var endedStates = []rivertype.JobState{rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded}

// query turns the params into what the store asks. The database's clock made the ids, so a window of hours may use Go's.
func (p *JobListParams) query(now time.Time) (store.JobFilter, store.JobPage, error) {
	filter := p.filter
	if filter.Since == nil && (filter.Metadata != "" || filter.Args != "") {
		since := now.Add(-searchWindow)
		filter.Since = &since
	}
	if p.field == JobListOrderByFinalizedAt {
		if len(filter.States) == 0 {
			filter.States = endedStates
		}
		for _, s := range filter.States {
			if !slices.Contains(endedStates, s) {
				return filter, store.JobPage{}, errors.New("list jobs: order by finalized_at needs states that have ended, not " + string(s))
			}
		}
	}
	column, err := p.column(filter.States)
	if err != nil {
		return filter, store.JobPage{}, err
	}
	if filter.Text != "" && column != store.OrderByID {
		return filter, store.JobPage{}, errors.New("list jobs: a text in the args is searched for by id only, not by " + string(column))
	}
	page := store.JobPage{Order: column, Descending: p.order == SortOrderDesc, Limit: p.limit, Bytes: p.bytes, Within: p.within}
	if p.after != nil {
		page.AfterID, page.AfterTime, err = p.after.position(column)
	}
	return filter, page, err
}

func (p *JobListParams) column(states []rivertype.JobState) (store.JobOrder, error) {
	switch p.field {
	case JobListOrderByID:
		return store.OrderByID, nil
	case JobListOrderByFinalizedAt:
		return store.OrderByFinalizedAt, nil
	case JobListOrderByScheduledAt:
		return store.OrderByScheduledAt, nil
	case JobListOrderByTime:
		if len(states) == 0 {
			return store.OrderByScheduledAt, nil
		}
		switch states[0] {
		case rivertype.JobStateRunning:
			return store.OrderByAttemptedAt, nil
		case rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded:
			return store.OrderByFinalizedAt, nil
		case rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateScheduled:
			return store.OrderByScheduledAt, nil
		}
	}
	return "", errors.New("list jobs: cannot order by " + string(p.field))
}

// ErrListTooLong says that a list, in an order that no index has, took longer than Within allows. Ask for fewer jobs, as by Since, or order by id.
var ErrListTooLong = store.ErrListTooLong

// JobListResult is a page of jobs.
type JobListResult struct {
	Jobs       []*rivertype.JobRow
	LastCursor *JobListCursor // continues after the last of Jobs, or where the search was if it was Stopped; nil if there are none
	Cut        bool           // it ends early, because of Bytes
	Stopped    bool           // the time of Within was up before all was searched: also without Jobs the list goes on at LastCursor
	SearchedTo *time.Time     // if it was Stopped, how far it came: a time of making, or of the order
	Since      *time.Time     // the time from which on jobs were looked at; nil: all
}

// JobSearchResult is a page of ids of jobs.
type JobSearchResult struct {
	IDs     []int64
	Reached int64 // the id up to which jobs were looked at, in the order of the list
	Ended   bool  // no job follows
}

// listSnapshot begins the transaction of a list. Its statements read little of large tables, which the planner takes for much: compiling them would take longer.
var listSnapshot = pgx.TxOptions{BeginQuery: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off"}

// JobList lists jobs; nil params list all by id. Each page is read from one snapshot, with each job's state at that moment.
func (c *Client) JobList(ctx context.Context, params *JobListParams) (result *JobListResult, err error) {
	err = pgx.BeginTxFunc(ctx, c.pool, listSnapshot, func(tx pgx.Tx) error {
		result, err = c.list(ctx, tx, params)
		return err
	})
	return result, err
}

// JobListTx is JobList as seen in the caller's transaction. In READ COMMITTED a job that goes on in this very moment may show in
// a state that was not asked for.
func (c *Client) JobListTx(ctx context.Context, tx pgx.Tx, params *JobListParams) (*JobListResult, error) {
	return c.list(ctx, tx, params)
}

func (c *Client) list(ctx context.Context, db store.DB, params *JobListParams) (*JobListResult, error) {
	if params == nil {
		params = NewJobListParams()
	}
	filter, page, err := params.query(time.Now())
	if err != nil {
		return nil, err
	}
	found, err := c.store.ListJobs(ctx, db, filter, page)
	if err != nil {
		return nil, err
	}
	result := &JobListResult{Jobs: found.Jobs, Cut: found.Cut, Stopped: found.Stopped != nil, Since: filter.Since}
	switch {
	case found.Stopped != nil:
		result.LastCursor = &JobListCursor{id: found.Stopped.ID, order: page.Order, time: found.Stopped.Time}
		result.SearchedTo = found.Stopped.Time
		if result.SearchedTo == nil {
			made := store.TimeOfID(found.Stopped.ID)
			result.SearchedTo = &made
		}
	case len(found.Jobs) > 0:
		result.LastCursor = cursorAt(found.Jobs[len(found.Jobs)-1], page.Order)
	}
	return result, nil
}

// JobSearchTx finds the ids of jobs as a list by id has them, without reading the jobs.
func (c *Client) JobSearchTx(ctx context.Context, tx pgx.Tx, params *JobListParams) (*JobSearchResult, error) {
	filter, page, err := params.query(time.Now())
	if err != nil {
		return nil, err
	}
	if page.Order != store.OrderByID {
		return nil, errors.New("search jobs: only lists by id can be searched, not by " + string(page.Order))
	}
	found, err := c.store.FindJobs(ctx, tx, filter, page)
	return &JobSearchResult{IDs: found.IDs, Reached: found.Reached, Ended: found.Ended}, err
}

// QueueCounts is how many jobs of a queue wait or run, by state.
type QueueCounts struct {
	Queue  string
	States map[rivertype.JobState]int64
}

// JobCounts counts the jobs that wait or run, by queue. A job that was cancelled or moved in the line counts where it was until
// its ticket is met.
func (c *Client) JobCounts(ctx context.Context) ([]QueueCounts, error) {
	rows, err := c.store.CountWaiting(ctx, c.pool)
	if err != nil {
		return nil, err
	}
	var counts []QueueCounts // rows come by queue
	for _, r := range rows {
		if len(counts) == 0 || counts[len(counts)-1].Queue != r.Queue {
			counts = append(counts, QueueCounts{Queue: r.Queue, States: map[rivertype.JobState]int64{}})
		}
		counts[len(counts)-1].States[r.State] = r.Jobs
	}
	return counts, nil
}
