package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

func (p *Page) mountChangeJob() {
	p.get("/jobs/{id}/change", operator, p.showChangeJob)
	p.post("/jobs/{id}/change", operator, p.changeJob)
}

// jobSeen is what somebody saw of a job when they began to change it. It goes with the form, so that another's change is not overwritten unseen.
type jobSeen struct {
	Queue       string `json:"queue"`
	Priority    int    `json:"priority"`
	MaxAttempts int    `json:"max_attempts"`
	Args        string `json:"args"` // a hash
	Metadata    string `json:"metadata"`
	Runs        bool   `json:"runs"`
}

func seenOf(job *rivertype.JobRow) jobSeen {
	hash := func(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(compacted(text)))[:16] }
	return jobSeen{
		job.Queue, job.Priority, job.MaxAttempts, hash(job.EncodedArgs), hash(ownMetadata(job.Metadata)), job.State == rivertype.JobStateRunning,
	}
}

// compacted is JSON without white space, to be compared.
func compacted(text []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// differences says what is not any more as it was seen.
func (s jobSeen) differences(now jobSeen) (list []string) {
	say := func(differs bool, format string, args ...any) {
		if differs {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	say(s.Queue != now.Queue, "the queue was %s and is %s", s.Queue, now.Queue)
	say(s.Priority != now.Priority, "the priority was %d and is %d", s.Priority, now.Priority)
	say(s.MaxAttempts != now.MaxAttempts, "the attempts were %d and are %d", s.MaxAttempts, now.MaxAttempts)
	say(s.Args != now.Args, "the args are others")
	say(s.Metadata != now.Metadata, "the metadata are others")
	say(!s.Runs && now.Runs, "it has begun to run, so what you change counts from its next run on")
	return list
}

// jobChangeForm is the form of a change as it was filled in.
type jobChangeForm struct {
	newJobForm

	ID       int64
	State    string
	Kind     string
	Metadata string // the job's, which the form adds to
	Seen     string // jobSeen, as JSON
}

// show has the form say what the job is now.
func (f *jobChangeForm) show(job *rivertype.JobRow) error {
	seen, err := json.Marshal(seenOf(job))
	f.ID, f.State, f.Kind, f.Seen = job.ID, string(job.State), job.Kind, string(seen)
	f.Metadata = editable(ownMetadata(job.Metadata))
	return err
}

// jobToChange reads a job that may be changed.
func (p *Page) jobToChange(ctx context.Context, id int64) (*rivertype.JobRow, error) {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	job, err := p.config.Jobs.JobGet(ctx, id)
	if err != nil {
		return nil, err
	}
	return job, changeable(job)
}

// changeable refuses jobs that have ended.
func changeable(job *rivertype.JobRow) error {
	if ended(string(job.State)) {
		return refused(fmt.Errorf("job %d has ended, it is %s: there is nothing to change; enqueue one like it, or run it again", job.ID, job.State))
	}
	return nil
}

func (p *Page) showChangeJob(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	job, err := p.jobToChange(r.Context(), id)
	if err != nil {
		return err
	}
	f := &jobChangeForm{newJobForm: *newJobFormOf(url.Values{
		"queue": {job.Queue}, "priority": {strconv.Itoa(job.Priority)}, "max_attempts": {strconv.Itoa(job.MaxAttempts)}, "args": {editable(job.EncodedArgs)},
	})}
	if err := f.show(job); err != nil {
		return err
	}
	return p.renderChangeJob(w, r, http.StatusOK, f)
}

func (p *Page) renderChangeJob(w http.ResponseWriter, r *http.Request, status int, f *jobChangeForm) error {
	return p.renderStatus(w, r, status, "job_change", fmt.Sprintf("Change job %d", f.ID), f)
}

// otherwiseError says that a job is not any more as it was seen.
type otherwiseError struct{ differences []string }

func (e *otherwiseError) Error() string { return strings.Join(e.differences, "; ") }

func (p *Page) changeJob(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	job, err := p.jobToChange(r.Context(), id)
	if err != nil {
		return err
	}
	f := &jobChangeForm{newJobForm: *newJobFormOf(r.PostForm)}
	var seen jobSeen
	if err := json.Unmarshal([]byte(r.PostFormValue("seen")), &seen); err != nil {
		return badInput("the form does not say what was changed: open it again")
	}
	if err := f.show(job); err != nil {
		return err
	}
	change := f.change(job)
	if len(f.Faults) > 0 {
		f.Seen = r.PostFormValue("seen")
		return p.renderChangeJob(w, r, http.StatusUnprocessableEntity, f)
	}
	change.If = func(job *rivertype.JobRow) error {
		if err := changeable(job); err != nil {
			return err
		}
		if differs := seen.differences(seenOf(job)); len(differs) > 0 {
			return &otherwiseError{differs}
		}
		return nil
	}
	_, err = p.config.Jobs.JobUpdate(r.Context(), id, change)
	invalid, isInvalid := errors.AsType[*jobs.InvalidUpdateError](err)
	otherwise, isOtherwise := errors.AsType[*otherwiseError](err)
	switch {
	case isInvalid:
		f.place(invalid.Err)
		return p.renderChangeJob(w, r, http.StatusUnprocessableEntity, f)
	case isOtherwise:
		return p.changedMeanwhile(w, r, f, otherwise.differences)
	case err != nil:
		return err
	}
	return p.done(w, r, fmt.Sprintf("/jobs/%d", id), "The job is changed.")
}

// changedMeanwhile shows the form again: somebody else was quicker. To send it once more is to overwrite what they did.
func (p *Page) changedMeanwhile(w http.ResponseWriter, r *http.Request, f *jobChangeForm, differences []string) error {
	job, err := p.jobToChange(r.Context(), f.ID)
	if err != nil {
		return err
	}
	if err := f.show(job); err != nil {
		return err
	}
	who, err := p.changedBy(r.Context(), strconv.FormatInt(f.ID, 10), "job.update")
	if err != nil {
		return err
	}
	f.fault("", "Nothing was stored: the job is not any more what you saw%s. To change it all the same, press the button once more.", who)
	for _, one := range differences {
		f.fault("", "%s", one)
	}
	return p.renderChangeJob(w, r, http.StatusConflict, f)
}

// changedBy names who changed something last, for a sentence; empty: the audit does not say.
func (p *Page) changedBy(ctx context.Context, target, action string) (who string, err error) {
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		last, err := p.lastChanges(ctx, tx, []string{target}, action)
		if c, ok := last[target]; ok {
			who = fmt.Sprintf("; %s changed it last, %s ago", c.Who(), duration(time.Since(c.At).Truncate(time.Second)))
		}
		return err
	})
	return who, err
}

// change is what the form changes of a job, and notes what is wrong with it. What is as it was stays so.
func (f *jobChangeForm) change(job *rivertype.JobRow) *jobs.JobUpdateParams {
	p := &jobs.JobUpdateParams{}
	if queue := strings.TrimSpace(f.Value("queue")); queue == "" {
		f.fault("queue", "a job is in some queue: name it")
	} else if queue != job.Queue {
		p.Queue = queue
	}
	if n := f.needed("priority", 4); n != job.Priority {
		p.Priority = n
	}
	if n := f.needed("max_attempts", maxAttempts); n != job.MaxAttempts {
		p.MaxAttempts = n
	}
	if args := f.json("args"); args != nil && !bytes.Equal(compacted(args), compacted([]byte(editable(job.EncodedArgs)))) {
		p.Args = args
		if err := document.CheckBuiltIn(job.Kind, args); err != nil {
			f.fault("args", "%v", err)
		}
	} else if args == nil && len(f.Of("args")) == 0 {
		f.fault("args", "a job has args: {} are none")
	}
	if added := f.json("metadata"); added != nil {
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(added, &keys); err != nil || keys == nil {
			f.fault("metadata", `no JSON object, as {"ticket": "OPS-7"}`)
		}
		p.Metadata = map[string]any{}
		for key, value := range keys {
			p.Metadata[key] = value
		}
	}
	return p
}

// needed reads a number that has to be there.
func (f *jobChangeForm) needed(name string, most int) int {
	if n := f.number(name, most); n != nil {
		return *n
	}
	if len(f.Of(name)) == 0 {
		f.fault(name, "want a number from 1 to %d", most)
	}
	return 0
}
