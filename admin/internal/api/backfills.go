package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/periodic"
)

func (s *server) addBackfills() {
	add(s, operation{
		id: "backfills-start", method: http.MethodPost, path: "/schedules/{name}/backfills", tag: "backfills", status: http.StatusCreated,
		summary: "Have a schedule's ticks of the past run, in order", errors: []int{http.StatusConflict},
		detail: "A scheduler does it; GET the backfill to see how far it is.",
	}, s.backfillsStart)
	add(s, operation{
		id: "backfills-list", method: http.MethodGet, path: "/schedules/{name}/backfills", tag: "backfills",
		summary: "List the backfills of a schedule, the newest first",
	}, s.backfillsList)
	add(s, operation{
		id: "backfills-get", method: http.MethodGet, path: "/backfills/{id}", tag: "backfills", summary: "Show a backfill, and how far it is",
	}, s.backfillsGet)
	add(s, operation{
		id: "backfills-cancel", method: http.MethodPost, path: "/backfills/{id}/cancel", tag: "backfills", errors: []int{http.StatusConflict},
		summary: "Have a backfill start nothing more; what it has started goes on",
	}, s.backfillsCancel)
}

// StartBackfill says which ticks of the past are to run.
type StartBackfill struct {
	From     time.Time `json:"from" doc:"the first time, included"`
	To       time.Time `json:"to" doc:"the last time, included"`
	All      bool      `json:"all,omitempty" doc:"also ticks that have run"`
	Parallel int       `json:"parallel,omitempty" minimum:"1" maximum:"1000" default:"1" doc:"runs at a time"`
}

type backfillsStartInput struct {
	SchedulePath
	Keyed

	Body StartBackfill
}

func (s *server) backfillsStart(ctx context.Context, in *backfillsStartInput) (*onceAnswer[periodic.Backfill], error) {
	if _, err := s.schedule(ctx, in.Name, access.Operator); err != nil {
		return nil, err
	}
	p := periodic.BackfillParams{From: in.Body.From, To: in.Body.To, All: in.Body.All, Parallel: in.Body.Parallel}
	return doOnce(ctx, s, in.Key, []any{"backfills-start", in.Name, in.Body}, func(ctx context.Context, tx pgx.Tx) (periodic.Backfill, error) {
		b, err := s.Schedules.BackfillTx(ctx, tx, in.Name, p)
		if err != nil {
			return periodic.Backfill{}, err
		}
		return *b, nil
	})
}

type backfillsListInput struct {
	SchedulePath
	Paging
}

func (s *server) backfillsList(ctx context.Context, in *backfillsListInput) (*answer[Page[periodic.Backfill]], error) {
	if _, err := s.schedule(ctx, in.Name, access.Viewer); err != nil {
		return nil, err
	}
	const list = "backfills"
	before, err := positionOf[int64](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	p := periodic.BackfillListParams{Schedule: in.Name, Limit: in.Limit + 1}
	if before != nil {
		p.Before = *before
	}
	backfills, err := s.Schedules.Backfills(ctx, p)
	if err != nil {
		return nil, err
	}
	return &answer[Page[periodic.Backfill]]{pageOf(list, backfills, in.Limit, func(b periodic.Backfill) any { return b.ID })}, nil
}

// BackfillPath names a backfill.
type BackfillPath struct {
	ID int64 `path:"id" minimum:"1" doc:"of the backfill"`
}

// backfill finds a backfill whose schedule the actor has a role for.
func (s *server) backfill(ctx context.Context, id int64, role access.Role) (*periodic.Backfill, error) {
	if actor, _ := access.FromContext(ctx); !actor.Anything() {
		return nil, access.Check(ctx, role, "")
	}
	b, err := s.Schedules.BackfillGet(ctx, id)
	if err == nil {
		_, err = s.schedule(ctx, b.Schedule, role)
	}
	if errors.Is(err, periodic.ErrNotFound) {
		return nil, newProblem("not-found", "there is no backfill %d", id) // without the name of a schedule of others
	}
	return b, err
}

func (s *server) backfillsGet(ctx context.Context, in *BackfillPath) (*answer[periodic.Backfill], error) {
	b, err := s.backfill(ctx, in.ID, access.Viewer)
	if err != nil {
		return nil, err
	}
	return &answer[periodic.Backfill]{*b}, nil
}

func (s *server) backfillsCancel(ctx context.Context, in *BackfillPath) (*answer[periodic.Backfill], error) {
	if _, err := s.backfill(ctx, in.ID, access.Operator); err != nil {
		return nil, err
	}
	b, err := s.Schedules.BackfillCancel(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &answer[periodic.Backfill]{*b}, nil
}
