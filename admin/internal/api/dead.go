package api

import (
	"context"
	"net/http"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

func (s *server) addDead() {
	add(s, operation{
		id: "dead-list", method: http.MethodGet, path: "/dead", tag: "dead", role: access.Viewer,
		summary: "List dead letters, newest death first",
	}, s.deadList)
	add(s, operation{
		id: "dead-get", method: http.MethodGet, path: "/dead/{id}", tag: "dead", role: access.Viewer,
		summary: "Show a dead letter with all its attempts",
	}, s.deadGet)
	add(s, operation{
		id: "dead-redrive", method: http.MethodPost, path: "/dead/{id}/redrive", tag: "dead", role: access.Operator,
		summary: "Make a new job of a dead letter", errors: []int{http.StatusConflict},
		detail: "One of a flow's node is refused: its run decides when it runs again.",
	}, s.deadRedrive)
	add(s, operation{
		id: "dead-discard", method: http.MethodPost, path: "/dead/{id}/discard", tag: "dead", role: access.Admin,
		summary: "Remove a dead letter for good",
	}, s.deadDiscard)
	add(s, operation{
		id: "dead-redrive-many", method: http.MethodPost, path: "/dead/redrive", tag: "dead", role: access.Operator,
		summary: "Make new jobs of the dead letters that match, the oldest death first",
		detail:  "Repeat it until it does none. Those of flows' nodes are left out: left_out says how many.",
	}, s.deadRedriveMany)
	add(s, operation{
		id: "dead-discard-many", method: http.MethodPost, path: "/dead/discard", tag: "dead", role: access.Admin,
		summary: "Remove the dead letters that match for good, the oldest death first", detail: "Repeat it until it does none.",
	}, s.deadDiscardMany)
}

type deadListInput struct {
	Paging

	Kind   []string  `query:"kind,explode" maxItems:"100" doc:"of these kinds"`
	Queue  []string  `query:"queue,explode" maxItems:"100" doc:"of these queues"`
	ID     []int64   `query:"id,explode" maxItems:"1000" doc:"of these jobs"`
	Reason string    `query:"reason" enum:"exhausted,poison,conflict" doc:"out of attempts; lost with its process again and again; its unique key was taken"`
	Since  time.Time `query:"since" doc:"died at or after, RFC 3339"`
	Until  time.Time `query:"until" doc:"died before, RFC 3339"`
}

// deadPlace is where a page of dead letters ends.
type deadPlace struct {
	DiedAt time.Time `json:"t"`
	JobID  int64     `json:"id"`
}

func (s *server) deadList(ctx context.Context, in *deadListInput) (*answer[Page[document.Dead]], error) {
	params := &jobs.DeadListParams{Limit: in.Limit, Bytes: pageBytes, DeadFilter: jobs.DeadFilter{
		IDs: in.ID, Kinds: in.Kind, Queues: in.Queue, Reason: in.Reason, Since: in.Since, Until: in.Until,
	}}
	after, err := positionOf[deadPlace]("dead", in.Cursor)
	if err != nil {
		return nil, err
	}
	if after != nil {
		params.After = &jobs.DeadLetter{DiedAt: after.DiedAt, JobID: after.JobID}
	}
	letters, more, err := s.Jobs.DeadPart(ctx, params)
	if err != nil {
		return nil, err
	}
	list := make([]document.Dead, len(letters))
	for i, l := range letters {
		list[i] = document.NewDead(l)
	}
	page := partOf("dead", list, more, func(d document.Dead) any { return deadPlace{d.DiedAt, d.JobID} })
	return &answer[Page[document.Dead]]{page}, nil
}

func (s *server) deadGet(ctx context.Context, in *JobPath) (*answer[document.Dead], error) {
	letter, err := s.Jobs.DeadGet(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &answer[document.Dead]{document.NewDead(letter)}, nil
}

func (s *server) deadRedrive(ctx context.Context, in *JobPath) (*answer[document.DeadChanged], error) {
	job, err := s.Jobs.DeadRedrive(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &answer[document.DeadChanged]{document.DeadChanged{JobID: in.ID, Done: document.Redriven, NewJobID: job.ID}}, nil
}

func (s *server) deadDiscard(ctx context.Context, in *JobPath) (*answer[document.DeadChanged], error) {
	return answered(document.DeadChanged{JobID: in.ID, Done: document.Discarded}, s.Jobs.DeadDiscard(ctx, in.ID))
}

// DeadSelection says which dead letters are meant: by a filter, or all.
type DeadSelection struct {
	IDs    []int64    `json:"ids,omitempty" maxItems:"1000"`
	Kinds  []string   `json:"kinds,omitempty" maxItems:"100"`
	Queues []string   `json:"queues,omitempty" maxItems:"100"`
	Reason string     `json:"reason,omitempty" enum:"exhausted,poison,conflict"`
	Since  *time.Time `json:"since,omitempty" doc:"died at or after"`
	Until  *time.Time `json:"until,omitempty" doc:"died before"`
	All    bool       `json:"all,omitempty" doc:"all dead letters; without a filter, this must be said"`
	Limit  int        `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"100" doc:"at most so many"`
}

// DeadChanges is what became of dead letters.
type DeadChanges struct {
	Letters []document.DeadChanged `json:"letters"`
	LeftOut int                    `json:"left_out" doc:"that match and are of flows' nodes: retry their runs"`
}

type deadManyInput struct{ Body DeadSelection }

// filter says which letters are meant.
func (d DeadSelection) filter() (*jobs.DeadFilter, error) {
	f := &jobs.DeadFilter{IDs: d.IDs, Kinds: d.Kinds, Queues: d.Queues, Reason: d.Reason}
	if d.Since != nil {
		f.Since = *d.Since
	}
	if d.Until != nil {
		f.Until = *d.Until
	}
	filtered := len(f.IDs)+len(f.Kinds)+len(f.Queues) > 0 || f.Reason != "" || !f.Since.IsZero() || !f.Until.IsZero()
	switch {
	case filtered && d.All:
		return nil, invalid("body.all", "a filter, and all: want one of them")
	case !filtered && !d.All:
		return nil, invalid("body", `which dead letters? Give a filter, or say "all": true`)
	}
	return f, nil
}

func (s *server) deadRedriveMany(ctx context.Context, in *deadManyInput) (*answer[DeadChanges], error) {
	filter, err := in.Body.filter()
	if err != nil {
		return nil, err
	}
	made, err := s.Jobs.DeadRedriveMany(ctx, filter, in.Body.Limit)
	if err != nil {
		return nil, err
	}
	changes := DeadChanges{Letters: document.NewRedriven(made)}
	changes.LeftOut, err = s.Jobs.DeadFlowNodes(ctx, filter)
	return answered(changes, err)
}

func (s *server) deadDiscardMany(ctx context.Context, in *deadManyInput) (*answer[DeadChanges], error) {
	filter, err := in.Body.filter()
	if err != nil {
		return nil, err
	}
	ids, err := s.Jobs.DeadDiscardMany(ctx, filter, in.Body.Limit)
	return answered(DeadChanges{Letters: document.NewDiscarded(ids)}, err)
}
