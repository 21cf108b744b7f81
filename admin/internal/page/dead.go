package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

var deadRoom = room{Name: "Dead letters", Path: "/dead", Mount: func(p *Page) {
	p.get("/dead", viewer, p.showDead)
	p.get("/dead/{id}", viewer, p.showLetter)
	p.post("/dead/redrive", operator, p.redriveDead)
	p.get("/dead/discard", admin, p.askDiscard)
	p.post("/dead/discard", admin, p.discardDead)
}}

const (
	// lettersShown are on a page.
	lettersShown = 100
	// lettersAtOnce is how many a form changes.
	lettersAtOnce = 1000
)

// deadFilter is what the forms say of dead letters, and how it was typed.
type deadFilter struct {
	jobs.DeadFilter

	Raw map[string]string
}

// deadFields are the fields of the filter.
var deadFields = []string{"kind", "queue", "reason", "since", "until"}

// parseDeadFilter reads the filter of an address or a form.
func parseDeadFilter(values url.Values) (f deadFilter, err error) {
	f.Raw = map[string]string{}
	for _, name := range deadFields {
		f.Raw[name] = strings.TrimSpace(values.Get(name))
	}
	f.Kinds, f.Queues, f.Reason = words(f.Raw["kind"]), words(f.Raw["queue"]), f.Raw["reason"]
	switch f.Reason {
	case "", jobs.DeadExhausted, jobs.DeadPoison, jobs.DeadConflict:
	default:
		return f, badInput("reason: %q is not exhausted, poison or conflict", f.Reason)
	}
	now := time.Now()
	if f.Since, err = parseMoment("since", f.Raw["since"], now); err != nil {
		return f, err
	}
	f.Until, err = parseMoment("until", f.Raw["until"], now)
	return f, err
}

// Any tells whether something is filtered.
func (f deadFilter) Any() bool {
	for _, value := range f.Raw {
		if value != "" {
			return true
		}
	}
	return false
}

// letter is a dead letter with the node of a flow that it worked for.
type letter struct{ *jobs.DeadLetter }

// Node is that node; nil: it worked for none.
func (l letter) Node() *flow.NodeRef {
	if node, ok := flow.NodeOf(&rivertype.JobRow{Metadata: l.Metadata}); ok {
		return &node
	}
	return nil
}

type deadPage struct {
	Filter  deadFilter
	Reasons []string
	Letters []letter
	Nodes   int // of those that match, of flows' nodes: their runs are to be retried
	Pager   pager
	Fault   string // of the filter; empty: none
	Said    string // of a choice; empty: nothing
}

func (p *Page) showDead(w http.ResponseWriter, r *http.Request) error { return p.listDead(w, r, "") }

// badChoice shows the list that a form was sent from again, and what is wrong with what was chosen in it.
func (p *Page) badChoice(w http.ResponseWriter, r *http.Request, err error) error {
	said := filterFault(err)
	from, parseErr := url.ParseRequestURI(access.SafeNext(cmp.Or(r.FormValue("back"), "/dead")))
	if said == "" || parseErr != nil || from.Path != "/dead" {
		return err
	}
	list := r.Clone(r.Context())
	list.URL = from
	return p.listDead(w, list, said)
}

// listDead shows a list; said is what was wrong with a choice of some in it, "" nothing.
func (p *Page) listDead(w http.ResponseWriter, r *http.Request, said string) error {
	query := r.URL.Query()
	f, err := parseDeadFilter(query)
	shown := deadPage{Filter: f, Reasons: []string{jobs.DeadExhausted, jobs.DeadPoison, jobs.DeadConflict}, Fault: filterFault(err), Said: said}
	if shown.Fault != "" {
		return p.renderStatus(w, r, http.StatusBadRequest, "dead", "Dead letters", shown)
	}
	if err != nil {
		return err
	}
	params := &jobs.DeadListParams{DeadFilter: f.DeadFilter, Limit: lettersShown, Bytes: listBytes}
	if text := query.Get("after"); text != "" {
		if params.After, err = parseLetterPlace(text); err != nil {
			return err
		}
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	letters, more, err := p.config.Jobs.DeadPart(ctx, params)
	if err != nil {
		return err
	}
	for _, l := range letters {
		shown.Letters = append(shown.Letters, letter{l})
	}
	next := ""
	if more {
		last := letters[len(letters)-1]
		next = fmt.Sprintf("%d.%d", last.DiedAt.UnixMicro(), last.JobID)
	}
	shown.Pager = page(r, next)
	status := http.StatusOK
	if said != "" {
		status = http.StatusBadRequest
	}
	return p.renderStatus(w, r, status, "dead", "Dead letters", shown)
}

// parseLetterPlace reads where a page of dead letters ends.
func parseLetterPlace(text string) (*jobs.DeadLetter, error) {
	at, id, _ := strings.Cut(text, ".")
	micros, err := strconv.ParseInt(at, 10, 64)
	job, err2 := strconv.ParseInt(id, 10, 64)
	if err != nil || err2 != nil {
		return nil, badInput("after: %q is no place in this list", text)
	}
	return &jobs.DeadLetter{DiedAt: time.UnixMicro(micros), JobID: job}, nil
}

func (p *Page) showLetter(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	found, err := p.config.Jobs.DeadGet(ctx, id)
	if errors.Is(err, rivertype.ErrNotFound) {
		if made, err := p.config.Jobs.RedrivenAs(ctx, id); err == nil && len(made) > 0 {
			return notFound("there is no dead letter of job %d any more: it was redriven as job %d", id, made[0])
		}
		return notFound("there is no dead letter of job %d: it was redriven or discarded, or its retention has passed", id)
	}
	if err != nil {
		return err
	}
	return p.render(w, r, "letter", fmt.Sprintf("Dead letter %d", id), letter{found})
}

// chosenDead are the dead letters that a form means: those that are ticked, or all that match its filter.
func chosenDead(values url.Values) (deadFilter, error) {
	f, err := parseDeadFilter(values)
	if err != nil {
		return f, err
	}
	if values.Get("all") != "" {
		return f, nil
	}
	for _, text := range values["id"] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return f, badInput("id: %q is no job's number", text)
		}
		f.IDs = append(f.IDs, id)
	}
	if len(f.IDs) == 0 {
		return f, badInput("tick some dead letters first, or choose all that match")
	}
	if len(f.IDs) > lettersAtOnce {
		return f, badInput("%d are ticked, want at most %d", len(f.IDs), lettersAtOnce)
	}
	f.DeadFilter = jobs.DeadFilter{IDs: f.IDs}
	return f, nil
}

func (p *Page) redriveDead(w http.ResponseWriter, r *http.Request) error {
	f, err := chosenDead(r.PostForm)
	if err != nil {
		return p.badChoice(w, r, err)
	}
	nodes, err := p.config.Jobs.DeadFlowNodes(r.Context(), &f.DeadFilter)
	if err != nil {
		return err
	}
	made, err := p.config.Jobs.DeadRedriveMany(r.Context(), &f.DeadFilter, lettersAtOnce)
	if unique, is := errors.AsType[*jobs.UniqueConflictError](err); is && len(made) == 0 {
		return refused(unique)
	} else if err != nil && !is {
		return err
	}
	to := back(r, "/dead")
	text := fmt.Sprintf("Made %s of %s.", plural(len(made), "a new job", "%d new jobs"), plural(len(made), "a dead letter", "as many dead letters"))
	if len(made) == 1 {
		to, text = fmt.Sprintf("/jobs/%d", made[0].JobID), fmt.Sprintf("This is the new job of dead letter %d.", made[0].DeadID)
	}
	if nodes > 0 {
		text += fmt.Sprintf(" %s of flows' nodes left out: retry their runs.", plural(nodes, "One was", "%d were"))
	}
	if len(made) == lettersAtOnce {
		text += " There may be more: do it again."
	}
	return p.done(w, r, to, "%s", text)
}

// plural says one or many.
func plural(n int, one, many string) string { return quantity.Say(n, one, many) }

func (p *Page) askDiscard(w http.ResponseWriter, r *http.Request) error {
	f, err := chosenDead(r.URL.Query())
	if err != nil {
		return p.badChoice(w, r, err)
	}
	c := confirmation{Action: "/dead/discard", Button: "Discard", Back: "/dead", Fields: map[string]string{}}
	switch {
	case len(f.IDs) > 0:
		c.Text = plural(len(f.IDs), fmt.Sprintf("The dead letter of job %d is removed for good", f.IDs[0]), "%d dead letters are removed for good") + ", with what is known of their attempts."
		ids := make([]string, len(f.IDs))
		for i, id := range f.IDs {
			ids[i] = strconv.FormatInt(id, 10)
		}
		c.Fields["ids"] = strings.Join(ids, " ")
	case f.Any():
		c.Text = fmt.Sprintf("All dead letters that match the filter, at most %d at a time, are removed for good.", lettersAtOnce)
	default:
		c.Text = fmt.Sprintf("All dead letters, at most %d at a time, are removed for good.", lettersAtOnce)
	}
	if len(f.IDs) == 0 {
		c.Fields["all"] = "1"
		for _, name := range deadFields {
			c.Fields[name] = f.Raw[name]
		}
	}
	return p.confirm(w, r, "Discard dead letters?", c)
}

func (p *Page) discardDead(w http.ResponseWriter, r *http.Request) error {
	if ids := strings.Fields(r.PostForm.Get("ids")); len(ids) > 0 {
		r.PostForm["id"] = append(r.PostForm["id"], ids...)
	}
	f, err := chosenDead(r.PostForm)
	if err != nil {
		return err
	}
	ids, err := p.config.Jobs.DeadDiscardMany(r.Context(), &f.DeadFilter, lettersAtOnce)
	if err != nil {
		return err
	}
	return p.done(w, r, "/dead", "Discarded %s.", plural(len(ids), "a dead letter", "%d dead letters"))
}
