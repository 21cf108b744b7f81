package page

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
)

var executorsRoom = room{Name: "Executors", Path: "/executors", Mount: func(p *Page) {
	p.get("/executors", viewer, p.showExecutors)
	p.live("/live/executors", viewer, func(r *http.Request) (part, error) {
		asked, err := parseExecutorsAsked(r)
		if err != nil {
			return part{}, err
		}
		return part{Key: r.URL.RequestURI(), Page: "executors", Name: "executorList", Load: func(ctx context.Context) (any, error) { return p.executors(ctx, asked) }}, nil
	})
	p.get("/executors/{id}", viewer, p.showExecutor)
	p.live("/live/executors/{id}", viewer, func(r *http.Request) (part, error) {
		id, err := pathID(r, "id")
		if err != nil {
			return part{}, err
		}
		return part{Page: "executor", Name: "executorNow", Load: func(ctx context.Context) (any, error) { return p.executor(ctx, id) }}, nil
	})
}}

const (
	// executorsShown are on a page.
	executorsShown = 100
	// takenShown is how many of what an executor runs are shown.
	takenShown = 200
)

// executorsAsked say which executors to list.
type executorsAsked struct {
	Ended  bool
	Before int64
}

func parseExecutorsAsked(r *http.Request) (a executorsAsked, err error) {
	query := r.URL.Query()
	a.Ended = query.Get("ended") != ""
	if text := query.Get("after"); text != "" {
		if a.Before, err = strconv.ParseInt(text, 10, 64); err != nil || a.Before < 1 {
			return a, badInput("after: %q is no executor's number", text)
		}
	}
	return a, nil
}

type executorsPage struct {
	executorsAsked

	Executors []jobs.Executor
	Labels    map[int64][]string
	Next      string // cursor; empty: no more
	Pager     pager
	Live      string
}

func (p *Page) showExecutors(w http.ResponseWriter, r *http.Request) error {
	asked, err := parseExecutorsAsked(r)
	if err != nil {
		return err
	}
	shown, err := p.executors(r.Context(), asked)
	if err != nil {
		return err
	}
	shown.Pager = page(r, shown.Next)
	shown.Live = "/live/executors"
	if r.URL.RawQuery != "" {
		shown.Live += "?" + r.URL.RawQuery
	}
	return p.render(w, r, "executors", "Executors", shown)
}

func (p *Page) executors(ctx context.Context, asked executorsAsked) (*executorsPage, error) {
	limited, cancel := p.limit(ctx)
	defer cancel()
	list, err := p.config.Jobs.ExecutorList(limited, &jobs.ExecutorListParams{Ended: asked.Ended, Before: asked.Before, Limit: executorsShown + 1})
	if err != nil {
		return nil, err
	}
	shown := &executorsPage{executorsAsked: asked, Executors: list, Labels: map[int64][]string{}}
	if len(list) > executorsShown {
		shown.Executors = list[:executorsShown]
		shown.Next = strconv.FormatInt(shown.Executors[executorsShown-1].ID, 10)
	}
	return shown, p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		ids := make([]int64, len(shown.Executors))
		for i, x := range shown.Executors {
			ids[i] = x.ID
		}
		labels, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[executorLabels], "executor_labels", ids)
		for _, l := range labels {
			shown.Labels[l.ID] = l.Labels
		}
		return err
	})
}

type executorLabels struct {
	ID     int64
	Labels []string
}

// executorRun is a run that an executor has taken.
type executorRun struct {
	JobID     int64
	Run       int32
	Kind      string
	Queue     string
	ClaimedAt time.Time
}

type executorPage struct {
	jobs.Executor

	Labels []string
	Runs   []executorRun
	More   bool
}

func (p *Page) showExecutor(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	shown, err := p.executor(r.Context(), id)
	if err != nil {
		return err
	}
	return p.render(w, r, "executor", "Executor "+shown.Name, shown)
}

func (p *Page) executor(ctx context.Context, id int64) (*executorPage, error) {
	limited, cancel := p.limit(ctx)
	defer cancel()
	list, err := p.config.Jobs.ExecutorList(limited, &jobs.ExecutorListParams{Ended: true, Before: id + 1, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].ID != id {
		return nil, notFound("there is no executor %d; those that ended long ago are forgotten", id)
	}
	shown := &executorPage{Executor: list[0]}
	return shown, p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		labels, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[executorLabels], "executor_labels", []int64{id})
		if err != nil {
			return err
		}
		for _, l := range labels {
			shown.Labels = l.Labels
		}
		shown.Runs, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[executorRun], "executor_runs", id, takenShown+1)
		if len(shown.Runs) > takenShown {
			shown.Runs, shown.More = shown.Runs[:takenShown], true
		}
		return err
	})
}
