package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/admin/internal/reach"
	"github.com/peltonq/pelton/periodic"
)

func (s *server) addSchedules() {
	add(s, operation{
		id: "schedules-list", method: http.MethodGet, path: "/schedules", tag: "schedules",
		summary: "List schedules by name",
		detail:  "A schedule that runs a flow belongs to the flow's project, others to none; those are listed that you may see.",
	}, s.schedulesList)
	add(s, operation{
		id: "schedules-get", method: http.MethodGet, path: "/schedules/{name}", tag: "schedules",
		summary: "Show a schedule, where it is, and what is to come",
	}, s.schedulesGet)
	add(s, operation{
		id: "schedules-put", method: http.MethodPut, path: "/schedules/{name}", tag: "schedules", summary: "Store a schedule, or change it",
		detail: "The body is the whole schedule: what is left out is as the defaults say, also of one that is there.", errors: []int{http.StatusConflict, http.StatusPreconditionFailed},
	}, s.schedulesPut)
	add(s, operation{
		id: "schedules-preview", method: http.MethodPost, path: "/schedules/preview", tag: "schedules",
		summary: "Show when an expression's ticks come, and what clock changes do to them",
	}, s.schedulesPreview)
	add(s, operation{
		id: "schedules-ticks", method: http.MethodGet, path: "/schedules/{name}/ticks", tag: "schedules",
		summary: "List what became of a schedule's ticks, the latest first",
	}, s.schedulesTicks)
	add(s, operation{
		id: "schedules-delete", method: http.MethodDelete, path: "/schedules/{name}", tag: "schedules", errors: []int{http.StatusConflict},
		summary: "Delete a schedule, with its backfills; what it started goes on",
	}, s.schedulesDelete)
	add(s, operation{
		id: "schedules-pause", method: http.MethodPost, path: "/schedules/{name}/pause", tag: "schedules", errors: []int{http.StatusConflict},
		summary: "Have no more ticks of a schedule run until it is resumed",
	}, func(ctx context.Context, in *SchedulePath) (*answer[periodic.Entry], error) {
		return s.change(ctx, in.Name, s.Schedules.Pause)
	})
	add(s, operation{
		id: "schedules-resume", method: http.MethodPost, path: "/schedules/{name}/resume", tag: "schedules", errors: []int{http.StatusConflict},
		summary: "End a pause; after_pause of the schedule says what becomes of the ticks in between",
	}, func(ctx context.Context, in *SchedulePath) (*answer[periodic.Entry], error) {
		return s.change(ctx, in.Name, s.Schedules.Resume)
	})
	add(s, operation{
		id: "schedules-trigger", method: http.MethodPost, path: "/schedules/{name}/trigger", tag: "schedules", errors: []int{http.StatusConflict},
		summary: "Have a schedule start a run now, beside its ticks; its rule for overlaps holds",
		detail:  "The tick of the answer says whether a run was started (fired) or why not; without one the run waits.",
	}, s.schedulesTrigger)
}

// SchedulePath names a schedule.
type SchedulePath struct {
	Name string `path:"name" minLength:"1" maxLength:"200" doc:"of the schedule, a / in it written as %2F"`
}

// schedule finds a schedule that the actor has a role for. To others it is as if there were none.
func (s *server) schedule(ctx context.Context, name string, role access.Role) (*periodic.Entry, error) {
	return reach.Schedule(ctx, s.Schedules, name, role)
}

type schedulesListInput struct {
	Paging

	Prefix string `query:"prefix" maxLength:"200" doc:"whose names begin so"`
	Kind   string `query:"kind" maxLength:"200" doc:"that enqueue jobs of this kind"`
	Flow   string `query:"flow" maxLength:"1100" doc:"that run this flow: PROJECT/FLOW, or PROJECT"`
	Owner  string `query:"owner" maxLength:"200" doc:"declared by this service's code"`
	Paused string `query:"paused" enum:"true,false" doc:"true: that are paused; false: that are not"`
}

func (s *server) schedulesList(ctx context.Context, in *schedulesListInput) (*answer[Page[periodic.Entry]], error) {
	projects, err := viewed(ctx, "")
	if err != nil {
		return nil, err
	}
	const list = "schedules"
	after, err := positionOf[string](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	p := periodic.ListParams{Prefix: in.Prefix, Kind: in.Kind, Flow: in.Flow, Projects: projects}
	if after != nil {
		p.After = *after
	}
	if in.Owner != "" {
		p.Owner = &in.Owner
	}
	if in.Paused != "" {
		paused := in.Paused == "true"
		p.Paused = &paused
	}
	return answered(readPage(list, in.Limit, func(e periodic.Entry) any { return e.Name }, func(last *periodic.Entry, limit int) ([]periodic.Entry, error) {
		if last != nil {
			p.After = last.Name
		}
		p.Limit = limit
		return s.Schedules.List(ctx, p)
	}))
}

func (s *server) schedulesGet(ctx context.Context, in *SchedulePath) (*tagged[periodic.Entry], error) {
	e, err := s.schedule(ctx, in.Name, access.Viewer)
	if err != nil {
		return nil, err
	}
	return &tagged[periodic.Entry]{scheduleTag(e), *e}, nil
}

// scheduleTag is the entity tag of a schedule as it was read.
func scheduleTag(e *periodic.Entry) string { return strconv.Quote(e.Edition().String()) }

type schedulesPutInput struct {
	SchedulePath

	IfMatch string `header:"If-Match" pattern:"^\"[0-9]{1,19}[.][0-9]{1,9}\"$" doc:"only if this is its ETag, as a GET or PUT gave it: of its id and version, as \"12.7\""`
	Body    periodic.Schedule
}

func (s *server) schedulesPut(ctx context.Context, in *schedulesPutInput) (*tagged[periodic.PutResult], error) {
	if err := access.Check(ctx, access.Admin, in.Body.Project()); err != nil {
		return nil, err
	}
	if in.Body.Name != in.Name {
		return nil, invalid("body.name", "%q is not the name in the path, %q", in.Body.Name, in.Name)
	}
	seen, err := in.seen()
	if err != nil {
		return nil, err
	}
	if job := in.Body.Job; job != nil {
		if err := document.CheckBuiltIn(job.Kind, job.Args); err != nil {
			return nil, newProblem("invalid-schedule", "body.job.args: %v", err)
		}
	}
	result, err := reach.PutSchedule(ctx, s.Schedules, in.Body, seen)
	if errors.Is(err, reach.ErrTaken) {
		return nil, newProblem("exists", "body.name: the name %q is taken", in.Name)
	}
	if changed, is := errors.AsType[*periodic.EditionError](err); is {
		return nil, newProblem("changed-meanwhile", "%v", changed)
	}
	if err != nil {
		return nil, err
	}
	return &tagged[periodic.PutResult]{scheduleTag(&result.Schedule), *result}, nil
}

// seen is the edition that a put may change; nil: whichever there is.
func (in *schedulesPutInput) seen() (*periodic.Edition, error) {
	if in.IfMatch == "" {
		return nil, nil
	}
	var seen periodic.Edition
	if err := seen.UnmarshalText([]byte(strings.Trim(in.IfMatch, `"`))); err != nil {
		return nil, invalid("header.If-Match", "%v", err)
	}
	return &seen, nil
}

// PreviewRequest says which ticks to show.
type PreviewRequest struct {
	Cron       string              `json:"cron,omitempty" maxLength:"1000" doc:"as of a schedule; this or every"`
	Every      periodic.Duration   `json:"every,omitempty"`
	Phase      *time.Time          `json:"phase,omitempty"`
	TimeZone   string              `json:"time_zone,omitempty" maxLength:"100"`
	StartAt    *time.Time          `json:"start_at,omitempty"`
	EndAt      *time.Time          `json:"end_at,omitempty"`
	DSTGap     periodic.Gap        `json:"dst_gap,omitzero"`
	DSTOverlap periodic.DSTOverlap `json:"dst_overlap,omitzero"`
	From       *time.Time          `json:"from,omitempty" doc:"the first time to show (default: now)"`
	Number     int                 `json:"number,omitempty" minimum:"1" maximum:"1000" default:"20" doc:"how many ticks"`
}

type schedulesPreviewInput struct {
	Body PreviewRequest
}

func (s *server) schedulesPreview(ctx context.Context, in *schedulesPreviewInput) (*answer[document.Preview], error) {
	if actor, _ := access.FromContext(ctx); !actor.Anything() {
		return nil, access.Check(ctx, access.Viewer, "")
	}
	b := in.Body
	from := time.Now()
	if b.From != nil {
		from = *b.From
	}
	ticks, err := periodic.Preview(periodic.Schedule{
		Cron: b.Cron, Every: b.Every, Phase: b.Phase, TimeZone: b.TimeZone, StartAt: b.StartAt, EndAt: b.EndAt, DSTGap: b.DSTGap, DSTOverlap: b.DSTOverlap,
	}, from, b.Number)
	if err != nil {
		return nil, newProblem("invalid-schedule", "%v", err)
	}
	return &answer[document.Preview]{document.NewPreview(ticks)}, nil
}

type schedulesTicksInput struct {
	SchedulePath
	Paging

	Outcome  string    `query:"outcome" enum:"fired,skipped,failed" doc:"that ended so"`
	Source   string    `query:"source" enum:"clock,trigger,backfill" doc:"that came so"`
	Since    time.Time `query:"since" doc:"at or after, RFC 3339"`
	Until    time.Time `query:"until" doc:"before, RFC 3339"`
	Backfill int64     `query:"backfill" minimum:"1" doc:"of this backfill"`
}

func (s *server) schedulesTicks(ctx context.Context, in *schedulesTicksInput) (*answer[Page[periodic.TickState]], error) {
	if _, err := s.schedule(ctx, in.Name, access.Viewer); err != nil {
		return nil, err
	}
	const list = "ticks"
	after, err := positionOf[string](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	p := periodic.TicksParams{
		Outcome: periodic.Outcome(in.Outcome), Source: periodic.Source(in.Source), Since: in.Since, Until: in.Until, Backfill: in.Backfill, Limit: in.Limit,
	}
	if after != nil {
		p.After = *after
	}
	result, err := s.Schedules.Ticks(ctx, in.Name, p)
	if errors.Is(err, periodic.ErrBadCursor) {
		return nil, newProblem("bad-cursor", "query.cursor: %v", err)
	}
	if err != nil {
		return nil, err
	}
	ticks, err := s.Schedules.TickStates(ctx, result.Ticks)
	if err != nil {
		return nil, err
	}
	page := Page[periodic.TickState]{Items: ticks}
	if result.Cursor != "" {
		page.NextCursor = cursorTo(list, result.Cursor)
	}
	return &answer[Page[periodic.TickState]]{page}, nil
}

func (s *server) schedulesDelete(ctx context.Context, in *SchedulePath) (*answer[periodic.Deleted], error) {
	if _, err := s.schedule(ctx, in.Name, access.Admin); err != nil {
		return nil, err
	}
	deleted, err := s.Schedules.Delete(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &answer[periodic.Deleted]{*deleted}, nil
}

// change does something to a schedule and shows it.
func (s *server) change(ctx context.Context, name string, do func(ctx context.Context, name string) (*periodic.Entry, error)) (*answer[periodic.Entry], error) {
	if _, err := s.schedule(ctx, name, access.Operator); err != nil {
		return nil, err
	}
	e, err := do(ctx, name)
	if err != nil {
		return nil, err
	}
	return &answer[periodic.Entry]{*e}, nil
}

type schedulesTriggerInput struct {
	SchedulePath
	Keyed
}

func (s *server) schedulesTrigger(ctx context.Context, in *schedulesTriggerInput) (*onceAnswer[periodic.Triggered], error) {
	e, err := s.schedule(ctx, in.Name, access.Operator)
	if err != nil {
		return nil, err
	}
	out, err := doOnce(ctx, s, in.Key, []any{"schedules-trigger", in.Name}, func(ctx context.Context, tx pgx.Tx) (periodic.Triggered, error) {
		t, err := s.Schedules.TriggerTx(ctx, tx, in.Name)
		if err != nil {
			return periodic.Triggered{}, err
		}
		return *t, nil
	})
	if err == nil && e.Flow != nil {
		s.Flows.Hint(ctx)
	}
	return out, err
}
