package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/reach"
	"github.com/peltonq/pelton/periodic"
)

var schedulesRoom = room{Name: "Schedules", Path: "/schedules", Sees: access.Actor.Anything, Mount: func(p *Page) {
	p.get("/schedules", checksItself, p.showSchedules)
	p.get("/schedules/{name}", checksItself, p.showSchedule)
	p.get("/schedules/{name}/delete", checksItself, p.askDeleteSchedule)
	p.live("/live/schedules/{name}", checksItself, func(r *http.Request) (part, error) {
		e, err := p.schedule(r.Context(), r.PathValue("name"), access.Viewer)
		if err != nil {
			return part{}, err
		}
		return part{Page: "schedule", Name: "scheduleNow", Load: func(ctx context.Context) (any, error) { return p.scheduleNow(ctx, e.Name) }}, nil
	})
	for verb, do := range map[string]scheduleVerb{
		"pause": {"Paused: no more ticks run until it is resumed.", func(ctx context.Context, name string) error {
			_, err := p.config.Schedules.Pause(ctx, name)
			return err
		}},
		"resume": {"Resumed.", func(ctx context.Context, name string) error {
			_, err := p.config.Schedules.Resume(ctx, name)
			return err
		}},
	} {
		p.post("/schedules/{name}/"+verb, operatorSomewhere, func(w http.ResponseWriter, r *http.Request) error { return p.changeSchedule(w, r, do) })
	}
	p.post("/schedules/{name}/trigger", operatorSomewhere, p.triggerSchedule)
	p.post("/schedules/{name}/delete", adminSomewhere, p.deleteSchedule)
	p.post("/schedules/{name}/backfill", operatorSomewhere, p.backfillSchedule)
	p.post("/schedules/{name}/backfill/cancel", operatorSomewhere, p.cancelBackfill)
	p.mountScheduleForm()
}}

const (
	// schedulesShown are on a page.
	schedulesShown = 100
	// ticksShown are on a page of a schedule.
	ticksShown = 50
	// ticksToCome is how many ticks are foreseen.
	ticksToCome = 10
	// backfillsShown is how many backfills of a schedule are shown.
	backfillsShown = 20
)

// schedulePath is where a schedule is shown.
func schedulePath(name string) string { return "/schedules/" + url.PathEscape(name) }

// schedule finds a schedule that the actor has a role for. To who may not see it, it is as if there were none.
func (p *Page) schedule(ctx context.Context, name string, role access.Role) (*periodic.Entry, error) {
	limited, cancel := p.limit(ctx)
	defer cancel()
	e, err := reach.Schedule(limited, p.config.Schedules, name, role)
	if errors.Is(err, periodic.ErrNotFound) {
		return nil, notFound("there is no schedule %q", name)
	}
	return e, err
}

// scheduleFault is what is shown of an error of a schedule's verb.
func scheduleFault(err error) error {
	_, invalid := errors.AsType[*periodic.InvalidScheduleError](err)
	_, interval := errors.AsType[*periodic.InvalidBackfillError](err)
	switch {
	case errors.Is(err, periodic.ErrNotFound):
		return notFound("%v", err)
	case errors.Is(err, periodic.ErrOwned), errors.Is(err, periodic.ErrRefused):
		return refused(err)
	case invalid, interval:
		return badInput("%v", err)
	}
	return err
}

type schedulesPage struct {
	Raw       map[string]string
	Schedules []scheduleLine
	Pager     pager
	New       bool // the reader may make some
}

// scheduleLine is a schedule as a list shows it.
type scheduleLine struct {
	periodic.Entry

	Path string
}

// State says how it stands, in a word.
func (l scheduleLine) State() string { return scheduleState(&l.Entry) }

func scheduleState(e *periodic.Entry) string {
	switch {
	case e.PausedAt != nil && e.PausedWhy == periodic.PausedRemoved:
		return "removed"
	case e.PausedAt != nil:
		return "paused"
	case e.Failures > 0:
		return "failing"
	case e.Waiting != nil:
		return "waiting"
	case e.Over():
		return "over"
	}
	return "active"
}

func (p *Page) showSchedules(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	params := periodic.ListParams{
		Prefix: strings.TrimSpace(query.Get("prefix")), Kind: strings.TrimSpace(query.Get("kind")), Flow: strings.TrimSpace(query.Get("flow")),
		After: query.Get("after"), Limit: schedulesShown + 1,
	}
	switch state := query.Get("state"); state {
	case "paused", "active":
		paused := state == "paused"
		params.Paused = &paused
	case "":
	default:
		return badInput("state: %q is not paused or active", state)
	}
	all, projects := actor(r.Context()).Projects(access.Viewer)
	if !all {
		params.Projects = append([]string{}, projects...)
	}
	shown := schedulesPage{Raw: map[string]string{}}
	for name := range query {
		shown.Raw[name] = query.Get(name)
	}
	every, some := actor(r.Context()).Projects(access.Admin)
	shown.New = every || len(some) > 0
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	list, err := p.config.Schedules.List(ctx, params)
	if err != nil {
		return err
	}
	next := ""
	if len(list) > schedulesShown {
		list = list[:schedulesShown]
		next = list[schedulesShown-1].Name
	}
	for i := range list {
		shown.Schedules = append(shown.Schedules, scheduleLine{list[i], schedulePath(list[i].Name)})
	}
	shown.Pager = page(r, next)
	return p.render(w, r, "schedules", "Schedules", shown)
}

// foreseen is a tick to come, as it is shown.
type foreseen struct {
	At   string // on the wall, with the offset
	UTC  time.Time
	Note periodic.Note
	Wall string // the time on the wall that the expression names, where it is another
	More int
}

// foresee shows ticks to come.
func foresee(s *periodic.Schedule, from time.Time) ([]foreseen, error) {
	ticks, err := periodic.Preview(*s, from, ticksToCome)
	if err != nil {
		return nil, err
	}
	list := make([]foreseen, len(ticks))
	for i, t := range ticks {
		list[i] = foreseen{At: t.At.Format("Mon " + zonedLayout), UTC: t.At, Note: t.Note, More: t.More}
		if t.Note != periodic.NoteNone && !t.Wall.IsZero() {
			list[i].Wall = t.Wall.Format("15:04:05")
		}
	}
	return list, nil
}

// scheduleNow is the part of a schedule's page that changes by itself.
type scheduleNow struct {
	periodic.Entry

	ToCome    []foreseen
	Ticks     []tickLine
	Backfills []periodic.Backfill
	Path      string
}

// State says how it stands, in a word.
func (s *scheduleNow) State() string { return scheduleState(&s.Entry) }

// Zone is the time zone by name.
func (s *scheduleNow) Zone() string { return cmp.Or(s.TimeZone, "UTC") }

// Local is a time in the schedule's zone.
func (s *scheduleNow) Local(t time.Time) string { return zoned(t, s.TimeZone) }

// zonedLayout is how pages of schedules show times.
const zonedLayout = "2006-01-02 15:04:05 -07:00"

// zoned shows a time in a zone, with its offset.
func zoned(t time.Time, zone string) string {
	in, err := time.Parse(time.RFC3339, periodic.InZone(t, zone))
	if err != nil {
		return t.UTC().Format(zonedLayout)
	}
	return in.Format(zonedLayout)
}

// RunOptions are those of the flow's runs, as JSON; empty: none.
func (s *scheduleNow) RunOptions() string {
	if s.Flow == nil {
		return ""
	}
	if text, err := json.Marshal(s.Flow.Options); err == nil && string(text) != "{}" {
		return string(text)
	}
	return ""
}

// MissedRule is what becomes of ticks that nobody fired in time.
func (s *scheduleNow) MissedRule() string {
	if s.Missed == (periodic.Missed{}) {
		return periodic.MissedLatest.String()
	}
	return s.Missed.String()
}

// tickLine is a tick as a list shows it.
type tickLine struct {
	periodic.TickState

	Local, Decided string // At and DecidedAt in the schedule's zone
}

// Shown names its run.
func (l tickLine) Shown() string {
	switch {
	case l.JobID != nil:
		return "job " + strconv.FormatInt(*l.JobID, 10)
	case l.RunID != nil:
		return "run " + strconv.FormatInt(*l.RunID, 10)
	}
	return ""
}

// Started is where its run is shown; empty: none was started.
func (l tickLine) Started() string {
	switch {
	case l.JobID != nil:
		return "/jobs/" + strconv.FormatInt(*l.JobID, 10)
	case l.RunID != nil:
		return "/runs/" + strconv.FormatInt(*l.RunID, 10)
	}
	return ""
}

func (p *Page) scheduleNow(ctx context.Context, name string) (*scheduleNow, error) {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	e, err := p.config.Schedules.Get(ctx, name)
	if err != nil {
		return nil, scheduleFault(err)
	}
	now := &scheduleNow{Entry: *e, Path: schedulePath(name)}
	if !e.Code && e.PausedAt == nil && e.NextAt != nil {
		if now.ToCome, err = foresee(&e.Schedule, *e.NextAt); err != nil {
			now.ToCome = nil // a delay: the next one alone is known
		}
	}
	if now.Ticks, _, err = p.ticks(ctx, e, periodic.TicksParams{Limit: ticksShown}); err != nil {
		return nil, err
	}
	now.Backfills, err = p.config.Schedules.Backfills(ctx, periodic.BackfillListParams{Schedule: name, Limit: backfillsShown})
	return now, err
}

func (p *Page) ticks(ctx context.Context, e *periodic.Entry, params periodic.TicksParams) ([]tickLine, string, error) {
	result, err := p.config.Schedules.Ticks(ctx, e.Name, params)
	if errors.Is(err, periodic.ErrBadCursor) {
		return nil, "", badInput("after: %v", err)
	}
	if err != nil {
		return nil, "", scheduleFault(err)
	}
	states, err := p.config.Schedules.TickStates(ctx, result.Ticks)
	if err != nil {
		return nil, "", err
	}
	lines := make([]tickLine, len(states))
	for i := range states {
		lines[i] = tickLine{states[i], zoned(states[i].At, e.TimeZone), zoned(states[i].DecidedAt, e.TimeZone)}
	}
	return lines, result.Cursor, nil
}

type schedulePage struct {
	*scheduleNow

	Project string
	Raw     map[string]string
	Older   []tickLine // a filtered or further page of ticks; the part that is live is not shown then
	Listed  bool
	Pager   pager
	Spec    periodic.Schedule

	Backfill backfillForm
}

// backfillForm is the form of a backfill as it was sent, and what is wrong with it; empty: none was.
type backfillForm struct {
	From, To, Parallel string
	All                bool
	Fault              string
}

// Now is the part that changes by itself.
func (s schedulePage) Now() *scheduleNow { return s.scheduleNow }

func (p *Page) showSchedule(w http.ResponseWriter, r *http.Request) error {
	e, err := p.schedule(r.Context(), r.PathValue("name"), access.Viewer)
	if err != nil {
		return err
	}
	shown := schedulePage{Project: e.Project(), Raw: map[string]string{}, Spec: e.Schedule}
	query := r.URL.Query()
	for name := range query {
		shown.Raw[name] = query.Get(name)
	}
	if shown.scheduleNow, err = p.scheduleNow(r.Context(), e.Name); err != nil {
		return err
	}
	if shown.Listed = query.Get("after") != "" || query.Get("outcome") != "" || query.Get("since") != "" || query.Get("until") != ""; shown.Listed {
		params := periodic.TicksParams{Outcome: periodic.Outcome(query.Get("outcome")), After: query.Get("after"), Limit: ticksShown}
		if params.Outcome != "" && !slices.Contains(periodic.Outcomes(), params.Outcome) {
			return badInput("outcome: %q is not fired, skipped or failed", params.Outcome)
		}
		if params.Since, err = momentIn("since", query.Get("since"), e.TimeZone); err != nil {
			return err
		}
		if params.Until, err = momentIn("until", query.Get("until"), e.TimeZone); err != nil {
			return err
		}
		ctx, cancel := p.limit(r.Context())
		defer cancel()
		var next string
		if shown.Older, next, err = p.ticks(ctx, e, params); err != nil {
			return err
		}
		shown.Pager = page(r, next)
	} else if len(shown.Ticks) == ticksShown {
		last := shown.Ticks[ticksShown-1]
		shown.Pager.Next = with(r, "until", last.At.UTC().Add(time.Microsecond).Format(time.RFC3339Nano))
	}
	return p.render(w, r, "schedule", "Schedule "+e.Name, shown)
}

// momentIn reads a time that a person typed: in a zone, or how long ago. Empty: the zero time.
func momentIn(name, text, zone string) (time.Time, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc = time.UTC
	}
	text = strings.TrimSpace(text)
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, loc); err == nil {
			return t, nil
		}
	}
	return parseMomentIn(name, text, cmp.Or(zone, "UTC"), time.Now())
}

// lastIn is momentIn for the end of a range: a date is the end of that day, but of today what has passed of it.
func lastIn(name, text, zone string) (time.Time, error) {
	at, err := momentIn(name, text, zone)
	if _, dated := time.Parse(time.DateOnly, strings.TrimSpace(text)); err != nil || dated != nil {
		return at, err
	}
	end := at.AddDate(0, 0, 1).Add(-time.Microsecond)
	if passed := time.Now().Add(-time.Second); at.Before(passed) && end.After(passed) { // clocks differ by a little
		end = passed
	}
	return end, nil
}

// scheduleVerb does something to a schedule, and says so.
type scheduleVerb struct {
	done string
	do   func(ctx context.Context, name string) error
}

func (p *Page) changeSchedule(w http.ResponseWriter, r *http.Request, verb scheduleVerb) error {
	e, err := p.schedule(r.Context(), r.PathValue("name"), access.Operator)
	if err != nil {
		return err
	}
	if err := verb.do(r.Context(), e.Name); err != nil {
		return scheduleFault(err)
	}
	return p.done(w, r, back(r, schedulePath(e.Name)), "%s", verb.done)
}

func (p *Page) triggerSchedule(w http.ResponseWriter, r *http.Request) error {
	e, err := p.schedule(r.Context(), r.PathValue("name"), access.Operator)
	if err != nil {
		return err
	}
	t, err := doOnce(p, r, func(ctx context.Context, tx pgx.Tx) (*periodic.Triggered, error) {
		return p.config.Schedules.TriggerTx(ctx, tx, e.Name)
	})
	if err != nil {
		return scheduleFault(err)
	}
	if e.Flow != nil {
		p.config.Flows.Hint(r.Context())
	}
	to := schedulePath(e.Name)
	switch {
	case t.Waits && t.Owner != "":
		return p.done(w, r, to, "The run waits for a process of %s.", t.Owner)
	case t.Waits:
		return p.done(w, r, to, "The run waits for the end of the last one.")
	case t.Tick.JobID != nil:
		return p.done(w, r, to, "Job %d was started.", *t.Tick.JobID)
	case t.Tick.RunID != nil:
		return p.done(w, r, to, "Run %d was started.", *t.Tick.RunID)
	}
	return p.done(w, r, to, "No run was started: %s (%s). %s", t.Tick.Outcome, t.Tick.Reason, t.Tick.Note)
}

func (p *Page) askDeleteSchedule(w http.ResponseWriter, r *http.Request) error {
	e, err := p.schedule(r.Context(), r.PathValue("name"), access.Admin)
	if err != nil {
		return err
	}
	return p.confirm(w, r, "Delete schedule "+e.Name+"?", confirmation{
		Text:   "The schedule is removed, and its backfills end. What it has started goes on. What became of its ticks is not shown any more.",
		Action: schedulePath(e.Name) + "/delete", Button: "Delete", Back: schedulePath(e.Name),
	})
}

func (p *Page) deleteSchedule(w http.ResponseWriter, r *http.Request) error {
	e, err := p.schedule(r.Context(), r.PathValue("name"), access.Admin)
	if err != nil {
		return err
	}
	if _, err := p.config.Schedules.Delete(r.Context(), e.Name); err != nil {
		return scheduleFault(err)
	}
	return p.done(w, r, "/schedules", "Deleted schedule %s.", e.Name)
}

func (p *Page) backfillSchedule(w http.ResponseWriter, r *http.Request) error {
	e, err := p.schedule(r.Context(), r.PathValue("name"), access.Operator)
	if err != nil {
		return err
	}
	params, err := backfillParams(r, e.TimeZone)
	var b *periodic.Backfill
	if err == nil {
		b, err = doOnce(p, r, func(ctx context.Context, tx pgx.Tx) (*periodic.Backfill, error) {
			return p.config.Schedules.BackfillTx(ctx, tx, e.Name, params)
		})
		err = scheduleFault(err)
	}
	if fault := filterFault(err); fault != "" {
		return p.badBackfill(w, r, e, fault)
	}
	if err != nil {
		return err
	}
	return p.done(w, r, schedulePath(e.Name), "Backfill %d has begun: %s.", b.ID, plural(b.Total, "1 tick", "%d ticks"))
}

// badBackfill shows the schedule with the form again as it was, and what is wrong with it.
func (p *Page) badBackfill(w http.ResponseWriter, r *http.Request, e *periodic.Entry, fault string) (err error) {
	shown := schedulePage{Project: e.Project(), Raw: map[string]string{}, Spec: e.Schedule, Backfill: backfillForm{Parallel: r.PostFormValue("parallel"), Fault: fault}}
	shown.Backfill.From, shown.Backfill.To, shown.Backfill.All = r.PostFormValue("from"), r.PostFormValue("to"), r.PostFormValue("all") != ""
	if shown.scheduleNow, err = p.scheduleNow(r.Context(), e.Name); err != nil {
		return err
	}
	return p.renderStatus(w, r, http.StatusBadRequest, "schedule", "Schedule "+e.Name, shown)
}

// backfillParams are what the form says.
func backfillParams(r *http.Request, zone string) (params periodic.BackfillParams, err error) {
	params = periodic.BackfillParams{All: r.PostFormValue("all") != "", Parallel: 1}
	if params.From, err = momentIn("from", r.PostFormValue("from"), zone); err != nil {
		return params, err
	}
	if params.To, err = lastIn("to", r.PostFormValue("to"), zone); err != nil {
		return params, err
	}
	if params.From.IsZero() || params.To.IsZero() {
		return params, badInput("from and to: want the first and the last time whose ticks are to run")
	}
	if text := r.PostFormValue("parallel"); text != "" {
		if params.Parallel, err = small(text); err != nil {
			return params, badInput("at a time: %q is no number", text)
		}
	}
	return params, nil
}

func (p *Page) cancelBackfill(w http.ResponseWriter, r *http.Request) error {
	e, err := p.schedule(r.Context(), r.PathValue("name"), access.Operator)
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(r.PostFormValue("backfill"), 10, 64)
	if err != nil {
		return badInput("%q is no backfill's number", r.PostFormValue("backfill"))
	}
	b, err := p.config.Schedules.BackfillGet(r.Context(), id)
	if err != nil || b.Schedule != e.Name {
		return notFound("schedule %s has no backfill %d", e.Name, id)
	}
	if _, err := p.config.Schedules.BackfillCancel(r.Context(), id); err != nil {
		return scheduleFault(err)
	}
	return p.done(w, r, schedulePath(e.Name), "Backfill %d starts nothing more; what it has started goes on.", id)
}
