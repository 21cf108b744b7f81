package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs/flow"
)

var flowsRoom = room{Name: "Flows", Path: "/flows", Sees: access.Actor.Anything, Mount: func(p *Page) {
	p.get("/flows", checksItself, p.showProjects)
	p.upload("/flows/push", adminSomewhere, p.pushProject)
	p.get("/flows/{project}", checksItself, p.showProject)
	p.upload("/flows/{project}/push", adminSomewhere, p.pushProject)
	p.get("/versions/{project}/{version}", checksItself, p.showNotes)
	p.get("/flows/{project}/{flow}", checksItself, p.showFlow)
	p.post("/flows/{project}/{flow}/run", operatorSomewhere, p.runFlow)
	p.get("/flows/{project}/{flow}/picture", checksItself, p.flowPicture)
	p.get("/flows/{project}/{flow}/picture.svg", checksItself, p.flowFile)
}}

// Needs of what is done to things of a project: who may do it nowhere is refused before anything is looked up.
var (
	operatorSomewhere = somewhere(access.Operator)
	adminSomewhere    = somewhere(access.Admin)
)

func somewhere(role access.Role) need {
	return func(ctx context.Context) error {
		if all, names := actor(ctx).Projects(role); !all && len(names) == 0 {
			return fmt.Errorf("%w: %s is %s of no project", access.ErrForbidden, actor(ctx).Name, role)
		}
		return nil
	}
}

// inProject refuses who has not the role in a project: who may not even see it gets the same answer as if there were none.
func inProject(ctx context.Context, role access.Role, project string) error {
	if !actor(ctx).May(access.Viewer, project) {
		return noProject(project)
	}
	return access.Check(ctx, role, project)
}

func noProject(name string) error { return notFound("there is no project %s", name) }

// visibleProjects are those that the actor sees; nil: all.
func visibleProjects(ctx context.Context) []string {
	all, names := actor(ctx).Projects(access.Viewer)
	if all {
		return nil
	}
	return append([]string{}, names...)
}

// flowFault makes an answer of an error of the flow client.
func flowFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, flow.ErrNotFound):
		return notFound("%v", err)
	case errors.Is(err, flow.ErrEnded), errors.Is(err, flow.ErrLive), errors.Is(err, flow.ErrRefused), errors.Is(err, flow.ErrRunning):
		return refused(err)
	case errors.Is(err, flow.ErrTooLarge):
		return notFound("%v", err)
	}
	if input, ok := errors.AsType[*flow.InputError](err); ok {
		return badInput("%v", input)
	}
	return err
}

// flowPath is the address of a flow's page.
func flowPath(project, name string) string {
	return "/flows/" + url.PathEscape(project) + "/" + url.PathEscape(name)
}

const (
	projectsShown = 100
	flowsShown    = 100
	versionsShown = 20
	stripRuns     = 20
	lastRuns      = 50
)

type projectLine struct {
	Name     string
	Version  int
	PushedAt time.Time
	PushedBy string
	Flows    int
	Live     int
	Run      *int64
	Flow     *string
	Status   *string
	RunBegan *time.Time
}

type projectsPage struct {
	Projects []projectLine
	Search   string
	Pager    pager
	MayPush  bool
}

func (p *Page) showProjects(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	data := projectsPage{Search: r.URL.Query().Get("q")}
	all, names := actor(ctx).Projects(access.Admin)
	data.MayPush = all || len(names) > 0
	err := p.read(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		data.Projects, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[projectLine], "flow_projects",
			visibleProjects(ctx), r.URL.Query().Get("after"), data.Search, projectsShown+1)
		return err
	})
	if err != nil {
		return err
	}
	next := ""
	if len(data.Projects) > projectsShown {
		data.Projects = data.Projects[:projectsShown]
		next = data.Projects[projectsShown-1].Name
	}
	data.Pager = page(r, next)
	return p.render(w, r, "flows", "Flows", data)
}

type versionLine struct {
	ID       int64
	No       int
	PushedAt time.Time
	PushedBy string
	Format   string
	Files    int
	Bytes    int64
	Flows    int
	Notes    int
}

type flowLine struct {
	Name     string
	Nodes    int
	Runs     []int64
	Statuses []string
	Began    *time.Time
}

// Strip are a flow's last runs, the oldest first.
func (f flowLine) Strip() []stripRun {
	list := make([]stripRun, 0, len(f.Runs))
	for i, id := range slices.Backward(f.Runs) {
		list = append(list, stripRun{id, f.Statuses[i]})
	}
	return list
}

type stripRun struct {
	ID     int64
	Status string
}

type projectPage struct {
	Project  string
	Newest   versionLine
	Versions []versionLine
	Older    string // address of older versions
	Flows    []flowLine
	Pager    pager
	MayPush  bool
}

func (p *Page) showProject(w http.ResponseWriter, r *http.Request) error {
	ctx, project := r.Context(), r.PathValue("project")
	if err := inProject(ctx, access.Viewer, project); err != nil {
		return err
	}
	data := projectPage{Project: project, MayPush: actor(ctx).May(access.Admin, project)}
	below, err := small("0" + r.URL.Query().Get("versions"))
	if err != nil {
		return badInput("versions: %q is no number", r.URL.Query().Get("versions"))
	}
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[versionLine], "flow_versions", project, 1, 0)
		if err != nil || len(list) == 0 {
			return err
		}
		data.Newest = list[0]
		if data.Versions, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[versionLine], "flow_versions", project, versionsShown+1, below); err != nil {
			return err
		}
		data.Flows, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[flowLine], "flow_strips", data.Newest.ID, r.URL.Query().Get("after"), flowsShown+1, stripRuns)
		return err
	})
	if err != nil {
		return err
	}
	if data.Newest.No == 0 {
		return noProject(project)
	}
	if len(data.Versions) > versionsShown {
		data.Versions = data.Versions[:versionsShown]
		data.Older = with(r, "versions", strconv.Itoa(data.Versions[versionsShown-1].No))
	}
	next := ""
	if len(data.Flows) > flowsShown {
		data.Flows = data.Flows[:flowsShown]
		next = data.Flows[flowsShown-1].Name
	}
	data.Pager = page(r, next)
	return p.render(w, r, "project", "Project "+project, data)
}

type notesPage struct {
	Project string
	Version flow.Version
}

// notesShown bounds the notes of a version.
const notesShown = 1000

func (p *Page) showNotes(w http.ResponseWriter, r *http.Request) error {
	ctx, project := r.Context(), r.PathValue("project")
	if err := inProject(ctx, access.Viewer, project); err != nil {
		return err
	}
	no, err := small(r.PathValue("version"))
	if err != nil || no < 1 {
		return notFound("there is no version %s", r.PathValue("version"))
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	v, err := p.config.Flows.Version(ctx, project, no)
	if err != nil {
		return flowFault(err)
	}
	v.Notes = v.Notes[:min(len(v.Notes), notesShown)]
	return p.render(w, r, "flow_notes", fmt.Sprintf("Notes on version %d of %s", v.No, project), notesPage{project, v})
}
