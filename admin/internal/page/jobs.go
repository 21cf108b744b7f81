package page

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

var jobsRoom = room{Name: "Jobs", Path: "/jobs", Mount: func(p *Page) {
	p.get("/jobs", viewer, p.showJobs)
	p.mountJob()
	p.mountLog()
}}

// jobLine is a job as a list shows it.
type jobLine struct {
	ID          int64
	Kind, Queue string
	Priority    int16
	State       string
	Attempts    int16
	MaxAttempts int16
	Args        string // cut off
	Tags        []string
	CreatedAt   time.Time
	ScheduledAt time.Time
	AttemptedAt *time.Time
	FinalizedAt *time.Time
	Error       string // of the last run that failed, cut off
}

// When is the time that says most of a job in its state.
func (l jobLine) When() time.Time {
	switch {
	case l.FinalizedAt != nil:
		return *l.FinalizedAt
	case l.State == "running" && l.AttemptedAt != nil:
		return *l.AttemptedAt
	}
	return l.ScheduledAt
}

// Did says what happened at When.
func (l jobLine) Did() string {
	switch {
	case l.FinalizedAt != nil:
		return "ended"
	case l.State == "running":
		return "started"
	case l.ScheduledAt.After(time.Now()):
		return "due"
	}
	return "waits since"
}

type jobsPage struct {
	Filter  jobFilter
	Raw     map[string]string // the filter as it was typed
	States  []string
	Jobs    []jobLine
	Pager   pager
	From    time.Time // the jobs made from then on were looked at
	To      time.Time // before then; zero: now
	More    bool
	Further string // where the search goes on
	Full    bool   // a page is full
}

func (p *Page) showJobs(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	f, err := parseJobFilter(query)
	if err != nil {
		return err
	}
	shown := jobsPage{Filter: f, Raw: map[string]string{}, States: jobStates(), To: f.Until}
	for name := range query {
		shown.Raw[name] = query.Get(name)
	}
	ids := f.IDs
	if len(ids) == 0 {
		result, err := p.findJobs(r.Context(), f)
		if err != nil {
			return err
		}
		ids = result.IDs
		shown.From, shown.More, shown.Full = timeOf(result.From), result.More, len(ids) == jobsShown
		if f.After > 0 {
			shown.To = timeOf(f.After).Add(time.Second)
			shown.Pager.First = with(r, "after", "", "further", "")
		}
		if result.More {
			after := strconv.FormatInt(result.From, 10)
			if shown.Full {
				shown.Pager.Next = with(r, "after", after, "further", "")
			} else {
				shown.Further = with(r, "after", after, "further", "1")
			}
		}
	}
	if shown.Jobs, err = p.jobLines(r.Context(), ids); err != nil {
		return err
	}
	return p.render(w, r, "jobs", "Jobs", shown)
}

// jobLines reads jobs by id.
func (p *Page) jobLines(ctx context.Context, ids []int64) (lines []jobLine, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		lines, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[jobLine], "job_lines", ids)
		return err
	})
	return lines, err
}
