package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

const (
	// textShown is how many characters of args, outputs and errors a page shows; the rest is a page of its own.
	textShown = 20_000
	// runsShown is how many runs a page shows.
	runsShown = 20
)

func (p *Page) mountJob() {
	p.get("/jobs/{id}", viewer, p.showJob)
	p.get("/jobs/{id}/text/{what}", viewer, p.showJobText)
	p.get("/jobs/{id}/delete", admin, p.askDelete)
	p.get("/jobs/{id}/erase", admin, p.askErase)
	p.post("/jobs/{id}/cancel", operator, p.cancelJob)
	p.post("/jobs/{id}/retry", operator, p.retryJob)
	p.post("/jobs/{id}/delete", admin, p.deleteJob)
	p.post("/jobs/{id}/erase", admin, p.eraseJob)
	p.live("/live/jobs/{id}", viewer, func(r *http.Request) (part, error) {
		id, err := pathID(r, "id")
		return part{Page: "job", Name: "jobNow", Load: func(ctx context.Context) (any, error) { return p.job(ctx, id, math.MaxInt32) }}, err
	})
}

// jobFacts is a job as its page shows it.
type jobFacts struct {
	Kind, Queue           string
	Priority              int16
	State                 string
	Run                   int32
	Attempts, MaxAttempts int16
	Args                  string
	ArgsLength            int
	Metadata              string
	MetadataLength        int
	Output                string
	OutputLength          int
	Tags                  []string
	CreatedAt             time.Time
	ScheduledAt           time.Time
	AttemptedAt           *time.Time
	FinalizedAt           *time.Time
	UniqueKey             string
	FlowMark              *string
	Letter                bool // there is a dead letter of it
	RedrivenFrom          *int64
}

// jobRun is a run of a job, ended or going on.
type jobRun struct {
	Run                  int32
	Attempt              int16
	Outcome              string
	BeforeEnded          *time.Time // of the run before
	BeforeDue            *time.Time // when this run was due by it, or by a person since
	StartedAt            *time.Time
	EndedAt              *time.Time // nil: it goes on
	Due                  *time.Time
	Error, Trace, Output string
	Executor, Host       string
}

// Took is how long it ran.
func (r jobRun) Took() string {
	switch {
	case r.StartedAt == nil:
		return "-"
	case r.EndedAt == nil:
		return "goes on"
	}
	return duration(r.EndedAt.Sub(*r.StartedAt))
}

// ready is when the run could have started.
func (r jobRun) ready(j jobFacts) time.Time {
	ready := j.CreatedAt
	if r.BeforeEnded != nil {
		ready = *r.BeforeEnded
	}
	due := r.BeforeDue
	if due == nil && r.BeforeEnded == nil {
		due = &j.ScheduledAt
		if r.Run == 1 && j.ScheduledAt.After(time.Now()) || r.StartedAt != nil && j.ScheduledAt.After(*r.StartedAt) {
			due = nil // it is that of a later run
		}
	}
	if due != nil && due.After(ready) {
		ready = *due
	}
	return ready
}

// jobView is what the page of a job shows.
type jobView struct {
	jobFacts

	ID         int64
	Runs       []jobRun // the newest first
	Older      string   // where older runs are
	Timeline   template.HTML
	Node       *flow.NodeRef // nil: it works for no flow
	Cut        int           // characters that are shown of long texts
	RedrivenAs []int64       // the jobs that were made of its dead letters

	Why string // what it waits for, if that is not its turn alone
}

// LogRun is the run whose log is the most wanted: the newest that has started; 0: none has.
func (v jobView) LogRun() int32 {
	for _, r := range v.Runs {
		if r.StartedAt != nil {
			return r.Run
		}
	}
	return 0
}

// Ended tells whether the job has ended.
func (v jobView) Ended() bool {
	return ended(v.State)
}

// CanRetry tells whether a retry would do something.
func (v jobView) CanRetry() bool { return v.State != "running" && v.State != "available" }

// CanReschedule tells whether it may be given another time.
func (v jobView) CanReschedule() bool { return mayReschedule(v.State, v.Node != nil) }

// job reads a job and its runs before a number.
func (p *Page) job(ctx context.Context, id int64, before int32) (jobView, error) {
	v := jobView{ID: id, Cut: textShown}
	err := p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		facts, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[jobFacts], "job_facts", id, int32(textShown))
		if err != nil {
			return err
		}
		if len(facts) == 0 {
			return notFound("there is no job %d: it was deleted, its retention has passed, or it never was", id)
		}
		v.jobFacts = facts[0]
		if v.State == string(rivertype.JobStateRunning) {
			v.Attempts++ // it counts when it ends
		} else if !v.Ended() {
			if v.Why, err = p.config.Jobs.KindWaitsTx(ctx, tx, v.Kind, v.Queue); err != nil {
				return err
			}
		}
		if v.Ended() {
			if v.RedrivenAs, err = p.config.Jobs.RedrivenAsTx(ctx, tx, id); err != nil {
				return err
			}
		}
		v.Runs, err = p.jobRuns(ctx, tx, id, before, runsShown+1, v.State)
		return err
	})
	if err != nil {
		return v, err
	}
	if len(v.Runs) > runsShown {
		v.Runs = v.Runs[:runsShown]
		v.Older = fmt.Sprintf("/jobs/%d?before=%d", id, v.Runs[runsShown-1].Run)
	}
	if v.FlowMark != nil {
		if node, ok := flow.NodeOf(&rivertype.JobRow{Metadata: []byte(`{"pelton:flow":` + *v.FlowMark + `}`)}); ok {
			v.Node = &node
		}
	}
	v.Timeline = v.timeline(time.Now())
	return v, nil
}

func (p *Page) jobRuns(ctx context.Context, tx pgx.Tx, id int64, before int32, limit int, state string) ([]jobRun, error) {
	var runs []jobRun
	if state == "running" && before == math.MaxInt32 {
		rows, err := tx.Query(ctx, p.sql.Get("job_running"), pgx.QueryExecModeExec, id)
		if err != nil {
			return nil, err
		}
		goes := jobRun{Outcome: "running"}
		var since time.Time
		if _, err := pgx.ForEachRow(rows, []any{&goes.Run, &goes.Attempt, &since, &goes.Executor, &goes.Host, &goes.BeforeDue}, func() error {
			goes.Attempt, goes.StartedAt = goes.Attempt+1, &since
			runs = append(runs, goes)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	ended, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[jobRun], "job_runs", pgx.QueryExecModeExec, id, before, int32(limit), int32(textShown))
	if err != nil {
		return nil, err
	}
	if len(runs) > 0 && len(ended) > 0 {
		runs[0].BeforeEnded, runs[0].BeforeDue = ended[0].EndedAt, cmp.Or(runs[0].BeforeDue, ended[0].Due)
	}
	return append(runs, ended...), nil
}

// timeline draws the runs as bars: how long each waited, pale, and ran.
func (v jobView) timeline(now time.Time) template.HTML {
	if len(v.Runs) == 0 {
		return ""
	}
	first, last := v.CreatedAt, v.CreatedAt
	if v.Older != "" {
		first = v.Runs[len(v.Runs)-1].ready(v.jobFacts)
	}
	for _, r := range v.Runs {
		end := now
		if r.EndedAt != nil {
			end = *r.EndedAt
		}
		if end.After(last) {
			last = end
		}
	}
	const width = 1000
	span := max(last.Sub(first), time.Millisecond)
	at := func(t time.Time) float64 {
		return math.Round(float64(min(max(t.Sub(first), 0), span)) / float64(span) * width)
	}
	var out strings.Builder
	out.WriteString(`<div class="timeline">`)
	for _, r := range slices.Backward(v.Runs) {
		start, end := now, now
		if r.EndedAt != nil {
			start, end = *r.EndedAt, *r.EndedAt
		}
		if r.StartedAt != nil {
			start = *r.StartedAt
		}
		ready := at(r.ready(v.jobFacts))
		fmt.Fprintf(&out, `<span>run %d</span><svg viewBox="0 0 %d 10" preserveAspectRatio="none" role="img" aria-label="run %d: %s, %s">`,
			r.Run, width, r.Run, r.Outcome, r.Took())
		fmt.Fprintf(&out, `<rect class="soft-waits" x="%g" y="0" width="%g" height="10"/>`, ready, max(0, at(start)-ready))
		fmt.Fprintf(&out, `<rect class="fill-%s" x="%g" y="0" width="%g" height="10"/></svg>`, stateClass(r.Outcome), min(at(start), width-3), max(3, at(end)-at(start)))
	}
	layout := "2006-01-02 15:04:05"
	if span < 10*time.Second {
		layout += ".000"
	}
	fmt.Fprintf(&out, `<span></span><div class="scale"><span>%s</span><span>%s UTC</span></div></div>`,
		first.UTC().Format(layout), last.UTC().Format(layout))
	return template.HTML(out.String()) //nolint:gosec // numbers and words of ours
}

func (p *Page) showJob(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	before := int64(math.MaxInt32)
	if text := r.URL.Query().Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 32); err != nil {
			return badInput("%q is no number of a run", text)
		}
	}
	v, err := p.job(r.Context(), id, int32(before)) //nolint:gosec // parsed as 32 bits
	if err != nil {
		return err
	}
	shown := struct {
		jobView

		Past bool // older runs are shown, which nothing changes any more
		Log  logView
	}{jobView: v, Past: before != math.MaxInt32}
	if run := v.LogRun(); !shown.Past && run > 0 {
		if shown.Log, err = p.logTail(r.Context(), id, run, embeddedLog); err != nil {
			return err
		}
	}
	return p.render(w, r, "job", fmt.Sprintf("Job %d", id), shown)
}

// showJobText gives a long text whole, as text.
func (p *Page) showJobText(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	what := r.PathValue("what")
	if !slices.Contains([]string{"args", "metadata", "output"}, what) {
		return errNoPage
	}
	var text []string
	if err := p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		text, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowTo[string], "job_text", id, what)
		return err
	}); err != nil {
		return err
	}
	if len(text) == 0 {
		return notFound("there is no job %d", id)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=job-%d-%s.json", id, what))
	_, _ = w.Write([]byte(text[0])) // nobody is left to tell
	return nil
}

func (p *Page) cancelJob(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	job, err := p.config.Jobs.JobCancel(r.Context(), id)
	if err != nil {
		return err
	}
	to := fmt.Sprintf("/jobs/%d", id)
	switch job.State {
	case rivertype.JobStateCancelled:
		return p.done(w, r, to, "The job is cancelled.")
	case rivertype.JobStateRunning:
		return p.done(w, r, to, "The job was told to end. It is cancelled when its run returns an error.")
	default:
		return p.done(w, r, to, "The job has ended already: it is %s.", job.State)
	}
}

func (p *Page) retryJob(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	job, err := p.config.Jobs.JobRetry(r.Context(), id)
	if unique, isUnique := errors.AsType[*jobs.UniqueConflictError](err); isUnique {
		return refused(unique)
	}
	if node, isNode := errors.AsType[*jobs.FlowNodeError](err); isNode {
		return refused(node)
	}
	if erased, isErased := errors.AsType[*jobs.EraseError](err); isErased {
		return refused(erased)
	}
	if err != nil {
		return err
	}
	if to := fmt.Sprintf("/jobs/%d", id); job.State != rivertype.JobStateAvailable {
		return p.done(w, r, to, "The job is %s already.", job.State)
	}
	return p.done(w, r, fmt.Sprintf("/jobs/%d", id), "The job was put in its line.")
}

func (p *Page) askDelete(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	job, err := p.config.Jobs.JobGet(ctx, id)
	if err != nil {
		return err
	}
	return p.confirm(w, r, "Delete the job?", confirmation{
		Text: fmt.Sprintf("Job %d of kind %s, now %s, and its runs will be removed for good. Its log and its dead letter, if it has one, stay until their retention.",
			id, job.Kind, job.State),
		Action: fmt.Sprintf("/jobs/%d/delete", id), Button: "Delete the job", Back: fmt.Sprintf("/jobs/%d", id),
	})
}

func (p *Page) deleteJob(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	_, err = p.config.Jobs.JobDelete(r.Context(), id)
	if errors.Is(err, rivertype.ErrJobRunning) {
		return refused(errors.New("the job runs: cancel it, and delete it when it has ended"))
	}
	if err != nil {
		return err
	}
	return p.done(w, r, "/jobs", "Job %d is deleted.", id)
}

func (p *Page) askErase(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	job, err := p.config.Jobs.JobGet(ctx, id)
	if err != nil {
		return err
	}
	return p.confirm(w, r, "Erase what the job held?", confirmation{
		Text: fmt.Sprintf("What job %d of kind %s held is blanked for good, in all places: args, tags, metadata, unique key, outputs, errors, logs and dead letters, "+
			"of a flow's node also its outputs and its run's parameters; also of jobs that were made of it by a redrive. Ids, kinds, queues, times and outcomes stay. "+
			"An erased job does not run again. Not erased are %s.", id, job.Kind, document.NotErased),
		Action: fmt.Sprintf("/jobs/%d/erase", id), Button: "Erase", Back: fmt.Sprintf("/jobs/%d", id),
	})
}

func (p *Page) eraseJob(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	done, err := p.config.Jobs.JobErase(r.Context(), id)
	if early, isEarly := errors.AsType[*jobs.EraseError](err); isEarly {
		return refused(early)
	}
	if err != nil {
		return err
	}
	to := fmt.Sprintf("/jobs/%d", id)
	if !done.Changed {
		return p.done(w, r, to, "The job held nothing any more.")
	}
	return p.done(w, r, to, "The job is erased.")
}
