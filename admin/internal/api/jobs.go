package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

func (s *server) addJobs() {
	add(s, operation{
		id: "jobs-list", method: http.MethodGet, path: "/jobs", tag: "jobs", role: access.Viewer,
		summary: "List jobs, oldest first",
		detail: "Filters are joined by and; a filter that is given several times is joined by or, but for tag. A search in args or metadata " +
			"without since looks at the last 24 hours: searched_since says from when on. A search ends after about within milliseconds: a page may have few items, or none, " +
			"and a next_cursor with which it goes on; searched_to says how far it came. The last page may be empty. A list by scheduled_at, or by time of jobs that " +
			"have not ended, must be sorted as a whole: where that takes longer it is refused as too-slow.",
	}, s.jobsList)
	add(s, operation{
		id: "jobs-get", method: http.MethodGet, path: "/jobs/{id}", tag: "jobs", role: access.Viewer,
		summary: "Show a job, its last runs and how much they printed", detail: "jobs-runs and jobs-log-sizes have all of them.",
	}, s.jobsGet)
	add(s, operation{
		id: "jobs-runs", method: http.MethodGet, path: "/jobs/{id}/runs", tag: "jobs", role: access.Viewer,
		summary: "List the runs of a job, the newest first",
	}, s.jobsRuns)
}

// JobFilter says which jobs are meant.
type JobFilter struct {
	State    []string  `query:"state,explode" enum:"available,cancelled,completed,discarded,pending,retryable,running,scheduled" doc:"in these states"`
	Kind     []string  `query:"kind,explode" maxItems:"100" doc:"of these kinds"`
	Queue    []string  `query:"queue,explode" maxItems:"100" doc:"of these queues"`
	Tag      []string  `query:"tag,explode" maxItems:"100" doc:"with all of these tags"`
	TagAny   []string  `query:"tag_any,explode" maxItems:"100" doc:"with at least one of these tags"`
	Priority []int16   `query:"priority,explode" minimum:"1" maximum:"4" doc:"of these priorities"`
	ID       []int64   `query:"id,explode" maxItems:"1000" doc:"of these ids"`
	Since    time.Time `query:"since" doc:"made at or after, RFC 3339"`
	Until    time.Time `query:"until" doc:"made before, RFC 3339"`
	Args     string    `query:"args" maxLength:"10000" doc:"whose args contain this JSON"`
	Metadata string    `query:"metadata" maxLength:"10000" doc:"whose metadata contain this JSON"`
}

type jobsListInput struct {
	Paging
	JobFilter

	Order string `query:"order" enum:"id,scheduled_at,finalized_at,time" default:"id" doc:"finalized_at: only states that have ended; time: what fits the first state. id and finalized_at are quick on large tables"`
	Desc  bool   `query:"desc" doc:"the last first"`

	Within int `query:"within" minimum:"1" maximum:"10000" default:"1000" doc:"how long to search for a page, about, in milliseconds"`
}

// JobPage is a page of jobs.
type JobPage struct {
	Page[document.Job]

	SearchedSince *time.Time `json:"searched_since" doc:"jobs were looked at from then on; null: all"`
	SearchedTo    *time.Time `json:"searched_to,omitempty" doc:"the time was up: jobs made up to then were looked at, or in a list by the time of the end those that ended up to then; with desc, down to then"`
}

// list names the list for its cursors, which do not fit another order.
func (in *jobsListInput) list() string {
	list := fmt.Sprintf("jobs by %s, %t", in.Order, in.Desc)
	if len(in.State) > 0 && in.Order == string(jobs.JobListOrderByTime) {
		list += ", " + in.State[0]
	}
	return list
}

func (s *server) jobsList(ctx context.Context, in *jobsListInput) (*answer[JobPage], error) {
	params, err := in.params()
	if err != nil {
		return nil, err
	}
	result, err := s.Jobs.JobList(ctx, params)
	if errors.Is(err, jobs.ErrBadCursor) {
		return nil, newProblem("bad-cursor", "query.cursor: %v", err)
	}
	if errors.Is(err, jobs.ErrListTooLong) {
		return nil, newProblem("too-slow", "query.order: sorting the jobs by %s took longer than %d ms: ask for fewer, as by state or since, or order by id", in.Order, in.Within)
	}
	if err != nil {
		return nil, err
	}
	page := JobPage{Page[document.Job]{Items: document.NewJobs(result.Jobs)}, document.UTC(result.Since), document.UTC(result.SearchedTo)}
	if len(result.Jobs) == in.Limit || result.Cut || result.Stopped {
		at, err := result.LastCursor.MarshalText()
		if err != nil {
			return nil, err
		}
		page.NextCursor = cursorTo(in.list(), string(at))
	}
	return &answer[JobPage]{page}, nil
}

func (in *jobsListInput) params() (*jobs.JobListParams, error) {
	for at, fragment := range map[string]string{"query.args": in.Args, "query.metadata": in.Metadata} {
		if fragment != "" && !json.Valid([]byte(fragment)) {
			return nil, invalid(at, `not JSON; want a part of it, as {"customer": 7}`)
		}
	}
	if in.Order == string(jobs.JobListOrderByFinalizedAt) {
		for _, state := range in.State {
			switch rivertype.JobState(state) {
			case rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded:
			default:
				return nil, invalid("query.order", "finalized_at needs states that have ended, not %s", state)
			}
		}
	}
	direction := jobs.SortOrderAsc
	if in.Desc {
		direction = jobs.SortOrderDesc
	}
	states := make([]rivertype.JobState, len(in.State))
	for i, state := range in.State {
		states[i] = rivertype.JobState(state)
	}
	p := jobs.NewJobListParams().First(in.Limit).Bytes(pageBytes).Within(time.Duration(in.Within)*time.Millisecond).OrderBy(jobs.JobListOrderByField(in.Order), direction).
		States(states...).Kinds(in.Kind...).Queues(in.Queue...).TagsAll(in.Tag...).TagsAny(in.TagAny...).
		Priorities(in.Priority...).IDs(in.ID...).Args(in.Args).Metadata(in.Metadata)
	if !in.Since.IsZero() {
		p = p.Since(in.Since)
	}
	if !in.Until.IsZero() {
		p = p.Until(in.Until)
	}
	at, err := positionOf[string](in.list(), in.Cursor)
	if err != nil || at == nil {
		return p, err
	}
	var cursor jobs.JobListCursor
	if err := cursor.UnmarshalText([]byte(*at)); err != nil {
		return nil, newProblem("bad-cursor", "query.cursor: %v", err)
	}
	return p.After(&cursor), nil
}

func (s *server) jobsGet(ctx context.Context, in *JobPath) (*answer[document.JobDetail], error) {
	return answered(document.ReadJobDetail(ctx, s.Pool, s.Jobs, in.ID))
}

type jobsRunsInput struct {
	JobPath
	Paging
}

func (s *server) jobsRuns(ctx context.Context, in *jobsRunsInput) (*answer[Page[document.Run]], error) {
	const list = "runs of a job"
	before, err := positionOf[int](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	if _, err := s.Jobs.JobGet(ctx, in.ID); err != nil {
		return nil, err
	}
	params := jobs.JobRunsParams{Limit: in.Limit, Bytes: pageBytes}
	if before != nil {
		params.Before = *before
	}
	runs, more, err := s.Jobs.JobRunsPart(ctx, in.ID, params)
	if err != nil {
		return nil, err
	}
	return &answer[Page[document.Run]]{partOf(list, document.NewRuns(runs), more, func(r document.Run) any { return r.Run })}, nil
}
