package page

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow/secret"
)

var auditRoom = room{Name: "Audit", Path: "/audit", Mount: func(p *Page) { p.get("/audit", viewer, p.showAudit) }}

// auditShown are on a page.
const auditShown = 100

type auditPage struct {
	Raw     map[string]string
	Entries []auditLine
	Pager   pager
	Fault   string // of the filter; empty: none
}

// auditLine is an entry with a way to what it is about.
type auditLine struct {
	jobs.AuditEntry

	Link string // empty: none
}

// Who is the actor, or the database's role where nobody said; who failed to log in is nobody.
func (l auditLine) Who() string {
	if l.Actor == "" && strings.HasPrefix(l.Action, "login") {
		return "nobody"
	}
	return change{Actor: l.Actor, Role: l.Role}.Who()
}

func (p *Page) showAudit(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	params := &jobs.AuditListParams{
		Target: strings.TrimSpace(query.Get("target")), Action: strings.TrimSpace(query.Get("action")), Actor: strings.TrimSpace(query.Get("actor")), Limit: auditShown, Bytes: listBytes,
	}
	shown := auditPage{Raw: map[string]string{}}
	for name := range query {
		shown.Raw[name] = query.Get(name)
	}
	var err error
	if params.Since, err = parseMoment("since", query.Get("since"), time.Now()); err != nil {
		shown.Fault = filterFault(err)
		return p.renderStatus(w, r, http.StatusBadRequest, "audit", "Audit", shown)
	}
	if text := query.Get("after"); text != "" {
		if params.Before, err = strconv.ParseInt(text, 10, 64); err != nil || params.Before < 1 {
			return badInput("after: %q is no entry's number", text)
		}
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	list, more, err := p.config.Jobs.AuditPart(ctx, params)
	if err != nil {
		return err
	}
	next := ""
	if more {
		next = strconv.FormatInt(list[len(list)-1].ID, 10)
	}
	shown.Pager = page(r, next)
	for _, e := range list {
		shown.Entries = append(shown.Entries, auditLine{e, auditLink(&e, admin(r.Context()) == nil)})
	}
	return p.render(w, r, "audit", "Audit", shown)
}

// auditLink leads to what an entry is about; users and tokens only those who may see them.
func auditLink(e *jobs.AuditEntry, admin bool) string {
	noun, verb, _ := strings.Cut(e.Action, ".")
	switch noun {
	case "job", "dead": // a letter that was redriven or discarded is gone; its job is there
		if _, err := strconv.ParseInt(e.Target, 10, 64); err == nil {
			return "/jobs/" + e.Target
		}
	case "flow":
		if id, is := strings.CutPrefix(e.Target, "run "); is {
			return "/runs/" + id
		}
	case "schedule":
		if name, is := strings.CutPrefix(e.Target, "schedule "); is {
			return schedulePath(name)
		}
	case "queue":
		return "/queues"
	case "alert":
		if verb == "publish" {
			return "/alerts#rules"
		}
		return "/alerts#mutes"
	case "secret":
		if name, is := strings.CutPrefix(e.Target, "secret "); is {
			project, _, found := strings.Cut(name, "/")
			if !found {
				project = secret.Everywhere
			}
			return secretsPath(project)
		}
	case "user", "session", "login", "logout":
		if name, is := strings.CutPrefix(e.Target, "user "); is && admin && verb != "failed" {
			return userPath(name)
		}
	case "token":
		if id, is := strings.CutPrefix(e.Target, "token "); is && admin {
			return "/admin/tokens?all=1#token" + id
		}
	}
	return ""
}

// auditFields is how many fields of an entry are shown; its details have them all.
const auditFields = 4

// Summary is the beginning of what an entry says where there is no difference to show: nothing was there before, or it has no fields.
func (l auditLine) Summary() string {
	text := l.After
	if len(text) == 0 {
		text = l.Before
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return string(text)
	}
	var list []string
	for _, name := range sortedKeys(all, nil) {
		if value := string(all[name]); !slices.Contains([]string{`""`, "{}", "[]", "null"}, value) {
			list = append(list, name+": "+short(40, value))
		}
	}
	if len(list) > auditFields {
		list = append(list[:auditFields], "\u2026")
	}
	return strings.Join(list, ", ")
}

// Difference are the fields that differ before and after, for people, and the project that both are about; nil: that is not how they are.
func (l auditLine) Difference() []auditField {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(l.Before, &before) != nil || json.Unmarshal(l.After, &after) != nil {
		return nil
	}
	var fields []auditField
	for _, name := range sortedKeys(before, after) {
		if was, is := string(before[name]), string(after[name]); was != is || name == "project" {
			fields = append(fields, auditField{name, was, is})
		}
	}
	return fields
}

// auditField is a field that was changed; empty: it was not there.
type auditField struct{ Name, Was, Is string }

// Same tells whether it is what it was.
func (f auditField) Same() bool { return f.Was == f.Is }
