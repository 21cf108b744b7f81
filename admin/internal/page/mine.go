package page

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/periodic"
)

const (
	// mineShown is how many rows each list of an overview of single projects has.
	mineShown = 20
	// mineLive is of how many projects such an overview is live: their names are in its address.
	mineLive = 50
)

// mine is the overview of who may see single projects only.
type mine struct {
	Names      []string // of the projects
	Projects   []projectLine
	LiveRuns   []runLine
	FailedRuns []runLine // within a day
	Schedules  []scheduleLine
	Live       string // where it is kept up to date; empty: nowhere

	MoreProjects, MoreLive, MoreFailed, MoreSchedules bool // than are shown
}

// cutTo cuts a list, and tells whether it was longer.
func cutTo[T any](list []T, n int) ([]T, bool) { return list[:min(len(list), n)], len(list) > n }

// mine reads the overview of some projects.
func (p *Page) mine(ctx context.Context, names []string) (mine, error) {
	m := mine{Names: names}
	day := time.Now().Add(-24 * time.Hour)
	err := p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[projectLine], "flow_projects", names, "", "", mineShown+1)
		if err != nil {
			return err
		}
		m.Projects, m.MoreProjects = cutTo(list, mineShown)
		if m.LiveRuns, m.MoreLive, err = p.lastOf(ctx, tx, names, liveStatuses, nil); err != nil {
			return err
		}
		m.FailedRuns, m.MoreFailed, err = p.lastOf(ctx, tx, names, []string{"FAILED"}, &day)
		return err
	})
	if err != nil {
		return m, err
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	schedules, err := p.config.Schedules.List(ctx, periodic.ListParams{Projects: names, Limit: mineShown + 1})
	if err != nil {
		return m, err
	}
	schedules, m.MoreSchedules = cutTo(schedules, mineShown)
	for i := range schedules {
		m.Schedules = append(m.Schedules, scheduleLine{schedules[i], schedulePath(schedules[i].Name)})
	}
	return m, nil
}

// lastOf are the newest runs of projects that have one of some statuses; more: there are others, or may be where the search ended.
func (p *Page) lastOf(ctx context.Context, tx pgx.Tx, names, statuses []string, since *time.Time) (list []runLine, more bool, err error) {
	list, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[runLine], "flow_runs",
		names, "", statuses, since, (*time.Time)(nil), int64(0), runsSearched, mineShown+1)
	if n := len(list); n > 0 && list[n-1].Mark {
		list, more = list[:n-1], since == nil || list[n-1].CreatedAt.After(*since)
	}
	list, longer := cutTo(list, mineShown)
	return list, more || longer, err
}

// showMine shows who may see single projects only what there is of those.
func (p *Page) showMine(w http.ResponseWriter, r *http.Request) error {
	names := visibleProjects(r.Context())
	m, err := p.mine(r.Context(), names)
	if err != nil {
		return err
	}
	if len(names) <= mineLive {
		m.Live = "/live/mine?" + url.Values{"project": names}.Encode()
	}
	return p.render(w, r, "mine", "Overview", m)
}

// minePart is the live part of the projects that its address names: whoever loses the right to one of them loses the part.
func (p *Page) minePart(r *http.Request) (part, error) {
	names := r.URL.Query()["project"]
	if len(names) == 0 || len(names) > mineLive {
		return part{}, notFound("there is no overview of %d projects", len(names))
	}
	for _, name := range names {
		if err := inProject(r.Context(), access.Viewer, name); err != nil {
			return part{}, err
		}
	}
	return part{
		Key: "mine " + url.Values{"project": names}.Encode(), Page: "mine", Name: "mine", Every: 3 * time.Second,
		Load: func(ctx context.Context) (any, error) { return p.mine(ctx, names) },
	}, nil
}
