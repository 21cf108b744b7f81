package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

func (p *Page) mountReschedule() {
	p.get("/jobs/{id}/reschedule", operator, p.showReschedule)
	p.post("/jobs/{id}/reschedule", operator, p.rescheduleJob)
	p.post("/jobs/reschedule", operator, p.rescheduleJobs)
}

// rescheduleForm is the form of another time as it was filled in.
type rescheduleForm struct {
	IDs    []int64 // of the jobs that were ticked; none: of one job
	Job    *rivertype.JobRow
	Action string
	Back   string
	Seen   string // when the one job was due when somebody began to change that
	At     string
	Fault  string // of At
	Other  string // what somebody else did meanwhile
}

// mayReschedule tells whether a job may be given another time.
func mayReschedule(state string, ofFlow bool) bool {
	return (state == string(rivertype.JobStateScheduled) || state == string(rivertype.JobStateRetryable)) && !ofFlow
}

// jobToReschedule reads a job that may be given another time.
func (p *Page) jobToReschedule(ctx context.Context, id int64) (*rivertype.JobRow, error) {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	job, err := p.config.Jobs.JobGet(ctx, id)
	if err != nil {
		return nil, err
	}
	if node, is := flow.NodeOf(job); is {
		return nil, refused(fmt.Errorf("job %d works for node %s of run %d, which decides when it runs", id, node.Path, node.Run))
	}
	if !mayReschedule(string(job.State), false) {
		return nil, refused(fmt.Errorf("job %d is %s: only one that is scheduled or retryable waits for a time, and can be given another", id, job.State))
	}
	return job, nil
}

// show has the form say what the one job is now.
func (f *rescheduleForm) show(job *rivertype.JobRow) {
	f.Job, f.Seen = job, job.ScheduledAt.UTC().Format(time.RFC3339Nano)
	f.Back = fmt.Sprintf("/jobs/%d", job.ID)
	f.Action = f.Back + "/reschedule"
}

func (p *Page) renderReschedule(w http.ResponseWriter, r *http.Request, status int, f *rescheduleForm) error {
	title := "Reschedule " + plural(len(f.IDs), "a job", "%d jobs")
	if f.Job != nil {
		title = fmt.Sprintf("Reschedule job %d", f.Job.ID)
	}
	return p.renderStatus(w, r, status, "job_reschedule", title, f)
}

func (p *Page) showReschedule(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	job, err := p.jobToReschedule(r.Context(), id)
	if err != nil {
		return err
	}
	f := &rescheduleForm{At: job.ScheduledAt.UTC().Format(time.DateTime)}
	f.show(job)
	return p.renderReschedule(w, r, http.StatusOK, f)
}

// due reads the form's time, and notes what is wrong with it.
func (f *rescheduleForm) due(now time.Time) time.Time {
	at, err := parseDue(strings.TrimSpace(f.At), now)
	switch {
	case err != nil:
		f.Fault = err.Error()
	case strings.TrimSpace(f.At) == "":
		f.Fault = "say when"
	case at.IsZero() || at.Year() < 1 || at.Year() > 9999:
		f.Fault = "want a time from the year 1 to 9999"
	}
	return at
}

func (p *Page) rescheduleJob(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	seen, err := time.Parse(time.RFC3339Nano, r.PostFormValue("seen"))
	if err != nil {
		return badInput("the form does not say what was changed: open it again")
	}
	f := &rescheduleForm{At: r.PostFormValue("at")}
	at := f.due(time.Now())
	if f.Fault != "" {
		job, err := p.jobToReschedule(r.Context(), id)
		if err != nil {
			return err
		}
		f.show(job)
		f.Seen = r.PostFormValue("seen")
		return p.renderReschedule(w, r, http.StatusUnprocessableEntity, f)
	}
	if at.Equal(seen.Truncate(time.Second)) { // it is as it was shown, in whole seconds
		at = seen
	}
	var other *rivertype.JobRow
	job, err := p.config.Jobs.JobReschedule(r.Context(), id, at, &jobs.JobRescheduleOpts{If: func(job *rivertype.JobRow) error {
		_, ofFlow := flow.NodeOf(job)
		if mayReschedule(string(job.State), ofFlow) && !job.ScheduledAt.Equal(seen) && !job.ScheduledAt.Equal(at) { // others are refused anyway, for another reason
			other = job
			return errOtherTime
		}
		return nil
	}})
	if errors.Is(err, errOtherTime) {
		who, err := p.changedBy(r.Context(), strconv.FormatInt(id, 10), "job.reschedule")
		if err != nil {
			return err
		}
		f.show(other)
		f.Other = fmt.Sprintf("Nothing was stored: the job was due at %s, and is due at %s now%s. To overwrite that, press the button once more.",
			utcTime(seen), utcTime(other.ScheduledAt), who)
		return p.renderReschedule(w, r, http.StatusConflict, f)
	}
	if err := refusedTime(err); err != nil {
		return err
	}
	return p.done(w, r, fmt.Sprintf("/jobs/%d", id), "The job is due at %s.", utcTime(job.ScheduledAt))
}

// errOtherTime says that a job is not due any more when it was.
var errOtherTime = errors.New("the job is due at another time")

// utcTime is a time in a sentence.
func utcTime(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

// refusedTime makes answers of why a job is not given another time.
func refusedTime(err error) error {
	if untimed, is := errors.AsType[*jobs.NotScheduledError](err); is {
		return refused(untimed)
	}
	if node, is := errors.AsType[*jobs.FlowNodeError](err); is {
		return refused(node)
	}
	return err
}

// rescheduleJobs gives those that are ticked another time: it asks which first.
func (p *Page) rescheduleJobs(w http.ResponseWriter, r *http.Request) error {
	ids, err := chosenJobs(r)
	if err != nil {
		return err
	}
	f := &rescheduleForm{IDs: ids, Action: "/jobs/reschedule", Back: back(r, "/jobs"), At: r.PostFormValue("at")}
	if !r.PostForm.Has("at") {
		return p.renderReschedule(w, r, http.StatusOK, f)
	}
	at := f.due(time.Now())
	if f.Fault != "" {
		return p.renderReschedule(w, r, http.StatusUnprocessableEntity, f)
	}
	return p.changeJobs(w, r, func(ctx context.Context, id int64) (*rivertype.JobRow, error) {
		return p.config.Jobs.JobReschedule(ctx, id, at, nil)
	}, func(_ *rivertype.JobRow, n map[string]int) { n["Gave %s another time."]++ })
}
