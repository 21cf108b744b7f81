package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/admin/internal/once"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
)

func (p *Page) mountNewJob() {
	p.get("/jobs/new", operator, p.showNewJob)
	p.post("/jobs/new", operator, p.enqueueJob)
}

// newJobForm is the form of a new job as it was filled in.
type newJobForm struct {
	Values url.Values
	Key    string              // under which its job is enqueued once; another with each form
	Faults map[string][]string // by field; "" of the whole
	Kinds  []string            // that are worked now
	Queues []string            // that are worked now
	Like   int64               // the job it is filled in from; 0: none
}

// newJobFields are the fields of the form, which say what is enqueued.
var newJobFields = []string{"kind", "args", "queue", "priority", "at", "max_attempts", "tags", "metadata", "unique_key", "pending"}

// Value is that of a field.
func (f *newJobForm) Value(name string) string { return f.Values.Get(name) }

// Of are the faults of a field.
func (f *newJobForm) Of(name string) []string { return f.Faults[name] }

func (f *newJobForm) fault(name, format string, args ...any) {
	f.Faults[name] = append(f.Faults[name], fmt.Sprintf(format, args...))
}

func newJobFormOf(values url.Values) *newJobForm {
	return &newJobForm{Values: values, Key: rand.Text(), Faults: map[string][]string{}}
}

func (p *Page) showNewJob(w http.ResponseWriter, r *http.Request) error {
	f := newJobFormOf(url.Values{})
	query := r.URL.Query()
	for _, name := range []string{"kind", "queue"} { // from the pages of queues and lists
		f.Values.Set(name, query.Get(name))
	}
	if text := query.Get("like"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			return badInput("like: %q is no number of a job", text)
		}
		ctx, cancel := p.limit(r.Context())
		defer cancel()
		job, err := p.config.Jobs.JobGet(ctx, id)
		if err != nil {
			return err
		}
		f.fill(job)
	}
	return p.renderNewJob(w, r, http.StatusOK, f)
}

// fill fills in what another job was asked to do. Its unique key is not known any more, and its time has passed.
func (f *newJobForm) fill(job *rivertype.JobRow) {
	f.Like = job.ID
	for name, value := range map[string]string{
		"kind": job.Kind, "args": editable(job.EncodedArgs), "queue": job.Queue, "priority": strconv.Itoa(job.Priority),
		"max_attempts": strconv.Itoa(job.MaxAttempts), "tags": strings.Join(job.Tags, ", "), "metadata": editable(ownMetadata(job.Metadata)),
	} {
		f.Values.Set(name, value)
	}
}

// ownMetadata is what somebody has written into a job's metadata, without what Pelton, River and traces note there; nil: nothing.
func ownMetadata(metadata []byte) []byte {
	var keys map[string]json.RawMessage
	if json.Unmarshal(metadata, &keys) != nil {
		return nil
	}
	for key := range keys {
		if strings.HasPrefix(key, "pelton:") || strings.HasPrefix(key, "river:") || slices.Contains([]string{rivertype.MetadataKeyOutput, "traceparent", "tracestate"}, key) {
			delete(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	own, err := json.Marshal(keys)
	if err != nil {
		return nil
	}
	return own
}

func (p *Page) renderNewJob(w http.ResponseWriter, r *http.Request, status int, f *newJobForm) error {
	err := p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		if f.Kinds, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowTo[string], "worked_kinds"); err != nil {
			return err
		}
		f.Queues, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowTo[string], "worked_queues")
		return err
	})
	if err != nil {
		return err
	}
	return p.renderStatus(w, r, status, "job_new", "New job", f)
}

// enqueuedJob is the answer under the form's key.
type enqueuedJob struct {
	ID        int64 `json:"id"`
	Duplicate bool  `json:"duplicate"` // it is the job that holds the unique key: nothing was enqueued
}

func (p *Page) enqueueJob(w http.ResponseWriter, r *http.Request) error {
	f := newJobFormOf(r.PostForm)
	var err error
	if f.Key, err = keyOf(r, f.Key); err != nil {
		return err
	}
	params := f.params(time.Now())
	if len(f.Faults) > 0 {
		return p.renderNewJob(w, r, http.StatusUnprocessableEntity, f)
	}
	request := []any{"page: new job"}
	for _, name := range newJobFields {
		request = append(request, f.Value(name))
	}
	made, replayed, err := once.Do(r.Context(), p.once, actor(r.Context()).Name, f.Key, request, func(ctx context.Context, tx pgx.Tx) (enqueuedJob, error) {
		result, err := p.config.Jobs.InsertTx(ctx, tx, params.Args, params.InsertOpts)
		if err != nil {
			return enqueuedJob{}, err
		}
		return enqueuedJob{result.Job.ID, result.UniqueSkippedAsDuplicate}, p.config.Jobs.AuditInsertTx(ctx, tx, jobs.EnqueuedResults(result))
	})
	switch invalid, is := errors.AsType[*jobs.InvalidJobError](err); {
	case errors.Is(err, once.ErrReused):
		f.Key = rand.Text()
		f.fault("", "This form has enqueued a job already, with other values. If you want this one too, press the button once more.")
		return p.renderNewJob(w, r, http.StatusConflict, f)
	case errors.Is(err, once.ErrInUse):
		return refused(err)
	case is:
		f.place(invalid.Err)
		return p.renderNewJob(w, r, http.StatusUnprocessableEntity, f)
	case err != nil:
		return err
	}
	to := fmt.Sprintf("/jobs/%d", made.ID)
	switch {
	case made.Duplicate:
		return p.done(w, r, to, "Nothing was enqueued: this job holds the unique key.")
	case replayed:
		return p.done(w, r, to, "This job was enqueued by the first press of the button; the second one enqueued nothing.")
	}
	return p.done(w, r, to, "The job is enqueued.")
}

// params reads the form, and notes what is wrong with it.
func (f *newJobForm) params(now time.Time) river.InsertManyParams {
	text := func(name string) string { return strings.TrimSpace(f.Value(name)) }
	spec := document.NewJobSpec{
		Kind: text("kind"), Args: f.json("args"), Queue: text("queue"), Tags: words(text("tags")), Metadata: f.json("metadata"),
		UniqueKey: text("unique_key"), Pending: text("pending") != "", Priority: f.number("priority", 4), MaxAttempts: f.number("max_attempts", maxAttempts),
	}
	if at, err := parseDue(text("at"), now); err != nil {
		f.fault("at", "%v", err)
	} else if !at.IsZero() {
		spec.At = &at
	}
	if spec.Kind == "" {
		f.fault("kind", "say which kind of job")
		return river.InsertManyParams{}
	}
	params, err := spec.Params()
	if err != nil {
		if len(f.Of("args")) == 0 {
			f.fault("args", "%v", err)
		}
		return params
	}
	if invalid, is := errors.AsType[*jobs.InvalidJobError](jobs.CheckInsert(params.Args, params.InsertOpts)); is {
		f.place(invalid.Err)
	}
	return params
}

// maxAttempts is the greatest number of attempts of a job.
const maxAttempts = 32767

// number reads a number from 1 to most; nil: none was given, or it is wrong.
func (f *newJobForm) number(name string, most int) *int {
	text := strings.TrimSpace(f.Value(name))
	if text == "" {
		return nil
	}
	n, err := small(text)
	if err != nil || n < 1 || n > most {
		f.fault(name, "%q is no number from 1 to %d", text, most)
		return nil
	}
	return &n
}

// json reads JSON; nil: none was given, or it is wrong.
func (f *newJobForm) json(name string) json.RawMessage {
	text := strings.TrimSpace(f.Value(name))
	if text == "" {
		return nil
	}
	var value json.RawMessage
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		f.fault(name, `no JSON, as {"customer": 7}: %v`, err)
		return nil
	}
	return value
}

// place puts the faults that package jobs finds beside their fields, which their texts begin with.
func (f *newJobForm) place(err error) {
	all := []error{err}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		all = joined.Unwrap()
	}
	for _, one := range all {
		field := ""
		for _, name := range []string{"kind", "args", "queue", "tag", "metadata", "scheduled"} {
			if strings.HasPrefix(one.Error(), name) {
				field = map[string]string{"tag": "tags", "scheduled": "at"}[name]
				field = cmp.Or(field, name)
			}
		}
		f.fault(field, "%v", one)
	}
}
