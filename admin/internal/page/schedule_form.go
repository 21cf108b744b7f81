package page

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/admin/internal/reach"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

// mountScheduleForm adds the form of a schedule. Both of its buttons send it here: one shows it again with the ticks to come, one stores it.
func (p *Page) mountScheduleForm() {
	p.get("/schedule/new", checksItself, func(w http.ResponseWriter, r *http.Request) error {
		if all, some := actor(r.Context()).Projects(access.Admin); !all && len(some) == 0 {
			return access.Check(r.Context(), access.Admin, "")
		}
		values := url.Values{"by": {"cron"}, "zone": {"UTC"}, "starts": {"job"}}
		for _, name := range []string{"project", "flow", "kind"} { // from the pages of flows and jobs
			if text := r.URL.Query().Get(name); text != "" {
				values.Set(name, text)
			}
		}
		if values.Get("flow") != "" {
			values.Set("starts", "flow")
		}
		return p.showScheduleForm(w, r, http.StatusOK, scheduleForm{Values: values})
	})
	p.get("/schedules/{name}/edit", checksItself, func(w http.ResponseWriter, r *http.Request) error {
		e, err := p.schedule(r.Context(), r.PathValue("name"), access.Admin)
		if err != nil {
			return err
		}
		if e.Owner != "" {
			return refused(errors.New("the code of " + e.Owner + " declares this schedule, and alone may change it"))
		}
		return p.showScheduleForm(w, r, http.StatusOK, scheduleFormOf(e))
	})
	p.post("/schedule", checksItself, p.sendScheduleForm)
}

// scheduleForm is the form of a schedule as it was filled in.
type scheduleForm struct {
	Values      url.Values
	Old         string           // the schedule that is changed; empty: a new one
	Seen        string           // what was in the form when it was opened
	SeenEdition periodic.Edition // which schedule it was then, zero: a new one
	Faults      []string
	Only        bool // the ticks to come were asked for, nothing else
	ToCome      []foreseen
	Words       string // about what is to come, where it cannot be foreseen
}

// scheduleFormOf is the form of a schedule that is there.
func scheduleFormOf(e *periodic.Entry) scheduleForm {
	values := valuesOf(&e.Schedule)
	return scheduleForm{Values: values, Old: e.Name, Seen: seenValues(values), SeenEdition: e.Edition()}
}

// Value is that of a field.
func (f *scheduleForm) Value(name string) string { return f.Values.Get(name) }

// Leave is where to go without storing anything.
func (f *scheduleForm) Leave() string {
	if f.Old == "" {
		return "/schedules"
	}
	return schedulePath(f.Old)
}

// Is tells whether a field has a value, for choices.
func (f *scheduleForm) Is(name, value string) bool { return f.Values.Get(name) == value }

// Choices are the values that a field may have.
func (f *scheduleForm) Choices(name string) []string {
	return map[string][]string{
		"overlap": {"", "allow", "skip", "queue", "cancel"}, "gap": {"next", "skip"}, "repeat": {"first", "last", "both"},
	}[name]
}

// showScheduleForm shows the form, with the ticks to come where it says when.
func (p *Page) showScheduleForm(w http.ResponseWriter, r *http.Request, status int, f scheduleForm) error {
	if s, faults := parseSchedule(f.Values); len(faults)+len(f.Faults) == 0 && (s.Cron != "" || s.Every != 0 || s.Delay != 0 || s.At != nil) {
		f.foresee(&s, time.Now())
	}
	return p.renderForm(w, r, status, f)
}

func (p *Page) renderForm(w http.ResponseWriter, r *http.Request, status int, f scheduleForm) error {
	title := "New schedule"
	if f.Old != "" {
		title = "Change schedule " + f.Old
	}
	return p.renderStatus(w, r, status, "schedule_form", title, &f)
}

// foresee adds the ticks to come, or why there are none; false: something is wrong.
func (f *scheduleForm) foresee(s *periodic.Schedule, from time.Time) bool {
	if s.Delay != 0 {
		f.Words = "Each run starts " + s.Delay.Short() + " after the end of the one before."
		return true
	}
	var err error
	if f.ToCome, err = foresee(s, from); err != nil {
		f.Faults = append(f.Faults, faultLines(err)...)
		return false
	}
	if len(f.ToCome) == 0 {
		f.Words = "No tick is to come."
	}
	return true
}

func (p *Page) sendScheduleForm(w http.ResponseWriter, r *http.Request) error {
	if all, some := actor(r.Context()).Projects(access.Admin); !all && len(some) == 0 {
		return access.Check(r.Context(), access.Admin, "")
	}
	f := scheduleForm{Values: r.PostForm, Old: r.PostFormValue("old"), Seen: r.PostFormValue("seen")}
	if f.Old != "" {
		if err := f.SeenEdition.UnmarshalText([]byte(r.PostFormValue("seen_edition"))); err != nil {
			return badInput("the form does not say which schedule it changes, and in which version: open it again")
		}
	}
	s, faults := parseSchedule(r.PostForm)
	f.Faults = faults
	if r.PostFormValue("do") != "save" {
		return p.showTicks(w, r, f, &s)
	}
	if f.Old != "" {
		old, err := p.schedule(r.Context(), f.Old, access.Admin)
		if err != nil {
			return err
		}
		s.Name, s.Phase = old.Name, old.Phase
	}
	if err := access.Check(r.Context(), access.Admin, s.Project()); err != nil {
		return err
	}
	if len(f.Faults) == 0 {
		f.check(p, &s)
	}
	if len(f.Faults) > 0 {
		return p.showScheduleForm(w, r, http.StatusUnprocessableEntity, f)
	}
	result, err := reach.PutSchedule(r.Context(), p.config.Schedules, s, &f.SeenEdition)
	if errors.Is(err, reach.ErrTaken) {
		return p.showTaken(w, r, f)
	}
	if _, changed := errors.AsType[*periodic.EditionError](err); changed {
		return p.showChanged(w, r, f)
	}
	if _, invalid := errors.AsType[*periodic.InvalidScheduleError](err); invalid {
		f.Faults = faultLines(err)
		return p.showScheduleForm(w, r, http.StatusUnprocessableEntity, f)
	}
	if err != nil {
		return scheduleFault(err)
	}
	return p.done(w, r, schedulePath(s.Name), "Schedule %s: %s.", s.Name, result.Change)
}

// showChanged shows the form again: somebody else was quicker. To send it once more is to overwrite what they did.
func (p *Page) showChanged(w http.ResponseWriter, r *http.Request, f scheduleForm) error {
	e, err := p.schedule(r.Context(), f.Old, access.Admin)
	if err != nil {
		return err
	}
	who, err := p.changedBy(r.Context(), "schedule "+e.Name, "schedule.put")
	if err != nil {
		return err
	}
	now := scheduleFormOf(e)
	f.Faults = append([]string{"the schedule is not any more what you saw" + who + ". To change it all the same, press Save once more"}, valuesDiffer(f.Seen, now.Seen)...)
	f.Seen, f.SeenEdition = now.Seen, now.SeenEdition
	return p.renderForm(w, r, http.StatusConflict, f)
}

// seenShown is how long a value of a form may be to be shown as what it was.
const seenShown = 200

// seenValues is what was in a form when it was opened, to go with it: of long values a hash.
func seenValues(values url.Values) string {
	seen := url.Values{}
	for name := range values {
		text := values.Get(name)
		if len(text) > seenShown {
			text = fmt.Sprintf("#%x", sha256.Sum256([]byte(text)))
		}
		seen.Set(name, text)
	}
	return seen.Encode()
}

// valuesDiffer says which values of a form are others than they were.
func valuesDiffer(before, after string) (list []string) {
	was, err := url.ParseQuery(before)
	if err != nil {
		return nil
	}
	is, err := url.ParseQuery(after)
	if err != nil {
		return nil
	}
	shown := func(text string) string {
		switch {
		case text == "":
			return "nothing"
		case strings.HasPrefix(text, "#"):
			return "a long text"
		}
		return strconv.Quote(text)
	}
	for _, name := range sortedKeys(was, is) {
		if from, to := was.Get(name), is.Get(name); from != to {
			list = append(list, fmt.Sprintf("%s: it was %s, and is %s", name, shown(from), shown(to)))
		}
	}
	return list
}

// showTaken shows the form again: somebody, perhaps of another project, has a schedule of the name, and nothing is told of it.
func (p *Page) showTaken(w http.ResponseWriter, r *http.Request, f scheduleForm) error {
	f.Faults = append(f.Faults, fmt.Sprintf("name: the name %q is taken", strings.TrimSpace(f.Values.Get("name"))))
	return p.showScheduleForm(w, r, http.StatusConflict, f)
}

// whenFields are the fields that say when a schedule has ticks.
var whenFields = []string{"by", "cron", "every", "delay", "at", "zone", "start", "end", "gap", "repeat", "from"}

// showTicks shows the form again with the ticks to come, whatever the rest of it says.
func (p *Page) showTicks(w http.ResponseWriter, r *http.Request, f scheduleForm, s *periodic.Schedule) error {
	f.Only = true
	f.Faults = slices.DeleteFunc(f.Faults, func(fault string) bool {
		name, _, _ := strings.Cut(fault, ":")
		return !slices.Contains(whenFields, name)
	})
	from, err := momentIn("from", f.Value("from"), s.TimeZone)
	if err != nil {
		f.Faults = append(f.Faults, err.Error())
	}
	if from.IsZero() {
		from = time.Now()
	}
	status := http.StatusUnprocessableEntity
	if len(f.Faults) == 0 && f.foresee(s, from) {
		status = http.StatusOK
	}
	return p.renderForm(w, r, status, f)
}

// check adds what is wrong with the schedule as a whole.
func (f *scheduleForm) check(p *Page, s *periodic.Schedule) {
	if err := p.config.Schedules.Check(*s); err != nil {
		f.Faults = faultLines(err)
	}
	if s.Job != nil {
		if err := document.CheckBuiltIn(s.Job.Kind, s.Job.Args); err != nil {
			f.Faults = append(f.Faults, "args: "+err.Error())
		}
	}
}

// faultLines are the faults of a schedule that an error lists below a headline.
func faultLines(err error) []string {
	head, rest, many := strings.Cut(err.Error(), "\n")
	if !many {
		return []string{head}
	}
	var list []string
	for line := range strings.SplitSeq(rest, "\n") {
		list = append(list, strings.TrimSpace(line))
	}
	return list
}

// valuesOf fills in the form.
func valuesOf(s *periodic.Schedule) url.Values {
	v := url.Values{"by": {"cron"}, "starts": {"job"}}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	moment := func(name string, t *time.Time) {
		if t != nil {
			set(name, periodic.InZone(*t, s.TimeZone))
		}
	}
	span := func(name string, d periodic.Duration) {
		if d != 0 {
			set(name, d.Short())
		}
	}
	number := func(name string, n int) {
		if n != 0 {
			set(name, strconv.Itoa(n))
		}
	}
	set("name", s.Name)
	set("description", s.Description)
	set("cron", s.Cron)
	set("zone", s.TimeZone)
	span("every", s.Every)
	span("delay", s.Delay)
	moment("at", s.At)
	switch {
	case s.Every != 0:
		v.Set("by", "every")
	case s.Delay != 0:
		v.Set("by", "delay")
	case s.At != nil:
		v.Set("by", "at")
	}
	moment("start", s.StartAt)
	moment("end", s.EndAt)
	set("gap", s.DSTGap.String())
	set("repeat", s.DSTOverlap.String())
	if s.Missed != (periodic.Missed{}) {
		set("missed", s.Missed.String())
	}
	if s.AfterPause != (periodic.Missed{}) {
		set("after_pause", s.AfterPause.String())
	}
	set("overlap", string(s.Overlap))
	span("grace", s.Grace)
	span("spread", s.Spread)
	span("jitter", s.Jitter)
	if j := s.Job; j != nil {
		set("kind", j.Kind)
		set("args", escaped(string(j.Args)))
		set("metadata", escaped(string(j.Metadata)))
		set("queue", j.Queue)
		set("tags", strings.Join(j.Tags, ", "))
		number("priority", j.Priority)
		number("max_attempts", j.MaxAttempts)
	}
	if t := s.Flow; t != nil {
		v.Set("starts", "flow")
		set("project", t.Project)
		set("flow", t.Flow)
		number("version", t.Version)
		if options, err := json.Marshal(t.Options); err == nil && string(options) != "{}" {
			set("options", escaped(string(options)))
		}
	}
	return v
}

// scheduleFields reads fields of a form, and collects what is wrong with them.
type scheduleFields struct {
	values url.Values
	zone   string
	faults []string
}

func (f *scheduleFields) text(name string) string { return strings.TrimSpace(f.values.Get(name)) }

func (f *scheduleFields) fault(name, text string) { f.faults = append(f.faults, name+": "+text) }

func (f *scheduleFields) span(name string) (d periodic.Duration) {
	if text := f.text(name); text != "" {
		if err := d.UnmarshalText([]byte(text)); err != nil {
			f.fault(name, err.Error())
		}
	}
	return d
}

func (f *scheduleFields) number(name string) int {
	text := f.text(name)
	if text == "" {
		return 0
	}
	n, err := small(text)
	if err != nil || n < 1 {
		f.fault(name, strconv.Quote(text)+" is no number above 0")
	}
	return n
}

func (f *scheduleFields) moment(name string) *time.Time {
	if f.text(name) == "" {
		return nil
	}
	t, err := momentIn(name, f.text(name), f.zone)
	if err != nil {
		f.faults = append(f.faults, err.Error())
		return nil
	}
	return &t
}

func (f *scheduleFields) word(name string, into interface{ UnmarshalText(text []byte) error }) {
	if text := f.text(name); text != "" {
		if err := into.UnmarshalText([]byte(text)); err != nil {
			f.fault(name, err.Error())
		}
	}
}

func (f *scheduleFields) object(name string) json.RawMessage {
	text := f.text(name)
	if text == "" {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		f.fault(name, `no JSON object, as {"customer": 7}: `+err.Error())
		return nil
	}
	return json.RawMessage(text)
}

// parseSchedule reads the form. Fields of what is not chosen do not count.
func parseSchedule(values url.Values) (s periodic.Schedule, faults []string) {
	f := &scheduleFields{values: values, zone: strings.TrimSpace(values.Get("zone"))}
	s.Name, s.Description, s.TimeZone = f.text("name"), f.text("description"), f.zone
	if s.TimeZone == "UTC" {
		s.TimeZone = ""
	}
	switch by := f.text("by"); by {
	case "cron":
		s.Cron = f.text("cron")
	case "every":
		s.Every = f.span("every")
	case "delay":
		s.Delay = f.span("delay")
	case "at":
		s.At = f.moment("at")
	default:
		f.fault("by", "choose when it starts something")
	}
	s.StartAt, s.EndAt = f.moment("start"), f.moment("end")
	f.word("gap", &s.DSTGap)
	f.word("repeat", &s.DSTOverlap)
	f.word("missed", &s.Missed)
	f.word("after_pause", &s.AfterPause)
	s.Overlap = periodic.Overlap(f.text("overlap"))
	s.Grace, s.Spread, s.Jitter = f.span("grace"), f.span("spread"), f.span("jitter")
	if f.text("starts") == "flow" {
		s.Flow = &periodic.FlowTarget{Project: f.text("project"), Flow: f.text("flow"), Version: f.number("version")}
		if options := f.object("options"); options != nil {
			decoder := json.NewDecoder(strings.NewReader(string(options)))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&s.Flow.Options); err != nil {
				f.fault("options", err.Error())
				s.Flow.Options = flow.Options{}
			}
		}
		return s, f.faults
	}
	s.Job = &periodic.JobTarget{
		Kind: f.text("kind"), Args: f.object("args"), Metadata: f.object("metadata"), Queue: f.text("queue"), Priority: f.number("priority"),
		MaxAttempts: f.number("max_attempts"), Tags: words(f.text("tags")),
	}
	return s, f.faults
}
