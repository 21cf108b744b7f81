package page

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs/flow"
)

var runsRoom = room{Name: "Runs", Path: "/runs", Sees: access.Actor.Anything, Mount: func(p *Page) {
	p.get("/runs", checksItself, p.showRuns)
	p.get("/runs/{id}", checksItself, p.showRun)
	p.get("/runs/{id}/picture.svg", checksItself, p.runFile)
	p.get("/runs/{id}/gantt", checksItself, p.showGantt)
	p.get("/runs/{id}/logs", checksItself, p.showRunLogs)
	p.get("/runs/{id}/confirm/{action}", operatorSomewhere, p.confirmRun)
	p.post("/runs/{id}/confirm/{action}", operatorSomewhere, p.confirmRun)
	p.post("/runs/{id}/{action}", operatorSomewhere, p.changeRun)
	p.get("/runs/{id}/nodes/{no}", checksItself, p.showNode)
	p.get("/runs/{id}/nodes/{no}/log", checksItself, p.showNodeLog)
	p.get("/runs/{id}/nodes/{no}/log/follow", checksItself, p.followNodeLog)
	p.get("/runs/{id}/nodes/{no}/log/download", checksItself, p.downloadNodeLog)
	p.live("/live/runs/{id}/head", checksItself, p.runHeadPart)
	p.live("/live/runs/{id}/statuses", checksItself, p.runStatusesPart)
	p.live("/live/runs/{id}/nodes", checksItself, p.runNodesPart)
	p.live("/live/runs/{id}/nodes/{no}", checksItself, p.nodePart)
	p.live("/live/runs/{id}/gantt", checksItself, p.ganttPart)
}}

// liveStatuses are those of runs that have not ended.
var liveStatuses = []string{"PREPARING", "QUEUED", "RUNNING", "PAUSED", "FAILED_FINISHING", "KILLING"}

const (
	runsListed = 50
	// runsSearched is how many runs a filtered list looks at, at a time.
	runsSearched = 5000
)

type runsPage struct {
	Runs                  []runLine
	Projects              []string // that the actor may see, if not all
	Project, Flow, Status string
	From, To              string
	Statuses              []string
	SearchedTo            *time.Time // how far back it looked; nil: all the way
	Pager                 pager
	Filtered              bool
	Fault                 string // of the filter; empty: none
}

func (p *Page) showRuns(w http.ResponseWriter, r *http.Request) error {
	ctx, query := r.Context(), r.URL.Query()
	data := runsPage{
		Project: query.Get("project"), Flow: query.Get("flow"), Status: query.Get("status"), From: query.Get("from"), To: query.Get("to"),
		Statuses: append([]string{"live"}, flow.RunStatuses()...),
	}
	data.Filtered = data.Project+data.Flow+data.Status+data.From+data.To != ""
	projects := visibleProjects(ctx)
	if data.Project != "" {
		if err := inProject(ctx, access.Viewer, data.Project); err != nil {
			return err
		}
		projects = []string{data.Project}
	}
	if data.Projects = projects; data.Project != "" {
		data.Projects = nil
	}
	statuses := []string{}
	switch {
	case data.Status == "live":
		statuses = liveStatuses
	case data.Status != "" && !slices.Contains(flow.RunStatuses(), data.Status):
		return p.badRuns(w, r, data, badInput("%q is no status of a run", data.Status))
	case data.Status != "":
		statuses = []string{data.Status}
	}
	from, err := momentOrNone("from", data.From)
	if err != nil {
		return p.badRuns(w, r, data, err)
	}
	to, err := momentOrNone("before", data.To)
	if err != nil {
		return p.badRuns(w, r, data, err)
	}
	below, err := strconv.ParseInt("0"+query.Get("after"), 10, 64)
	if err != nil {
		return badInput("%q is no place in the list", query.Get("after"))
	}
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		data.Runs, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[runLine], "flow_runs",
			projects, data.Flow, statuses, from, to, below, runsSearched, runsListed)
		return err
	})
	if err != nil {
		return err
	}
	next := ""
	if n := len(data.Runs); n > 0 && data.Runs[n-1].Mark { // the search ended there, and goes on from there
		end := data.Runs[n-1]
		data.Runs, next = data.Runs[:n-1], strconv.FormatInt(end.ID, 10)
		if len(data.Runs) < runsListed {
			data.SearchedTo = &end.CreatedAt
		}
	}
	if len(data.Runs) == runsListed {
		next = strconv.FormatInt(data.Runs[runsListed-1].ID, 10)
	}
	data.Pager = page(r, next)
	return p.render(w, r, "runs", "Runs", data)
}

// badRuns shows the form again with what is wrong with it.
func (p *Page) badRuns(w http.ResponseWriter, r *http.Request, data runsPage, err error) error {
	if data.Fault = filterFault(err); data.Fault == "" {
		return err
	}
	return p.renderStatus(w, r, http.StatusBadRequest, "runs", "Runs", data)
}

// momentOrNone reads a time; nil: none was given.
func momentOrNone(name, text string) (*time.Time, error) {
	t, err := parseMoment(name, text, time.Now())
	if err != nil || t.IsZero() {
		return nil, err
	}
	return &t, nil
}
