package page

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/sqlfile"
)

var jobsRoom = room{Name: "Jobs", Path: "/jobs", Mount: func(p *Page) {
	p.get("/jobs", viewer, p.showJobs)
	p.post("/jobs/cancel", operator, p.cancelJobs)
	p.post("/jobs/retry", operator, p.retryJobs)
	p.mountNewJob()
	p.mountJob()
	p.mountChangeJob()
	p.mountReschedule()
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
	return "waits"
}

// Attempt is the number of the attempt that goes on, or was the last.
func (l jobLine) Attempt() int16 {
	if l.State == "running" {
		return l.Attempts + 1
	}
	return l.Attempts
}

// Waits tells whether it has been due for a time that is told by its length.
func (l jobLine) Waits() bool {
	return l.FinalizedAt == nil && l.State != "running" && !l.ScheduledAt.After(time.Now())
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
	Fault   string // of the filter; empty: none
}

// FullAt is how many jobs fill a page.
func (jobsPage) FullAt() int { return jobsShown }

func (p *Page) showJobs(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	f, err := parseJobFilter(query)
	shown := jobsPage{Filter: f, Raw: map[string]string{}, States: jobStates(), To: f.Until, Fault: filterFault(err)}
	for name := range query {
		shown.Raw[name] = query.Get(name)
	}
	if shown.Fault != "" {
		return p.renderStatus(w, r, http.StatusBadRequest, "jobs", "Jobs", shown)
	}
	if err != nil {
		return err
	}
	var result found
	err = p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		if result = (found{IDs: f.IDs}); len(f.IDs) == 0 {
			if result, err = p.findJobs(ctx, tx, f); err != nil {
				return err
			}
		}
		shown.Jobs, err = p.jobLines(ctx, tx, result.IDs)
		return err
	})
	if err != nil {
		return err
	}
	if len(f.IDs) == 0 {
		shown.From, shown.More, shown.Full = timeOf(result.From), result.More, len(result.IDs) == jobsShown
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
	return p.render(w, r, "jobs", "Jobs", shown)
}

// jobLines reads jobs by id.
func (p *Page) jobLines(ctx context.Context, tx pgx.Tx, ids []int64) ([]jobLine, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[jobLine], "job_lines", ids)
}

// jobsTicked is how many jobs a form changes.
const jobsTicked = 100

// chosenJobs are the jobs that are ticked.
func chosenJobs(r *http.Request) (ids []int64, err error) {
	for _, text := range r.PostForm["id"] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 0 {
			return nil, badInput("id: %q is no job's number", text)
		}
		ids = append(ids, id)
	}
	switch {
	case len(ids) == 0:
		return nil, badInput("tick some jobs first")
	case len(ids) > jobsTicked:
		return nil, badInput("%d jobs are ticked, want at most %d", len(ids), jobsTicked)
	}
	return ids, nil
}

// cancelJobs cancels those that are ticked.
func (p *Page) cancelJobs(w http.ResponseWriter, r *http.Request) error {
	return p.changeJobs(w, r, p.config.Jobs.JobCancel, func(job *rivertype.JobRow, n map[string]int) {
		switch job.State {
		case rivertype.JobStateCancelled:
			n["Cancelled %s."]++
		case rivertype.JobStateRunning:
			n["Told %s to end."]++
		default:
			n["Left out %s that had ended."]++
		}
	})
}

// retryJobs runs those that are ticked again, or now.
func (p *Page) retryJobs(w http.ResponseWriter, r *http.Request) error {
	return p.changeJobs(w, r, p.config.Jobs.JobRetry, func(job *rivertype.JobRow, n map[string]int) {
		if job.State == rivertype.JobStateAvailable {
			n["Put %s in line."]++
		} else {
			n["Left out %s that did not wait for it."]++
		}
	})
}

// changeJobs does something to each job that is ticked; what refuses one keeps no other from it.
func (p *Page) changeJobs(w http.ResponseWriter, r *http.Request, change func(context.Context, int64) (*rivertype.JobRow, error), tell func(*rivertype.JobRow, map[string]int)) error {
	ids, err := chosenJobs(r)
	if err != nil {
		return err
	}
	said, refusals := map[string]int{}, []string{}
	for _, id := range ids {
		job, err := change(r.Context(), id)
		if err == nil {
			tell(job, said)
			continue
		}
		if r.Context().Err() != nil {
			return err
		}
		refusals = append(refusals, fmt.Sprintf("job %d: %v", id, err))
	}
	var parts []string
	for _, text := range sortedKeys(said) {
		parts = append(parts, fmt.Sprintf(text, plural(said[text], "a job", "%d jobs")))
	}
	if n := len(refusals); n > 0 {
		parts = append(parts, fmt.Sprintf("Left out %s: %s.", plural(n, "a job", "%d jobs, the first is"), refusals[0]))
	}
	return p.done(w, r, back(r, "/jobs"), "%s", strings.Join(parts, " "))
}
