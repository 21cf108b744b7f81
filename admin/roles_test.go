package admin_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/page"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/periodic"
)

// scope is what an operation belongs to.
type scope int

const (
	everything scope = iota // to no project: the role is needed for everything
	ofProject               // to the project of what it names
	anywhere                // to nobody: the role is needed in some project
	ofSession               // to a session: no token may do it
)

// right says who may do an operation of the API, or send a form of the page.
type right struct {
	role  access.Role
	scope scope
	body  string // JSON or a form, with the names of a target
	plain bool   // there are such things that belong to no project, too
	makes bool   // it makes what it names, so nothing is told by an answer that there is none
}

// mayAPI is who may do what by the API: all of docs/access.md.
var mayAPI = map[string]right{
	"alerts-list":         {role: access.Viewer},
	"alerts-mute":         {role: access.Operator},
	"alerts-mutes":        {role: access.Viewer},
	"alerts-rules":        {role: access.Viewer},
	"alerts-test":         {role: access.Operator},
	"alerts-unmute":       {role: access.Operator},
	"audit-list":          {role: access.Viewer},
	"backfills-cancel":    {role: access.Operator, scope: ofProject, plain: true},
	"backfills-get":       {role: access.Viewer, scope: ofProject, plain: true},
	"backfills-list":      {role: access.Viewer, scope: ofProject, plain: true},
	"backfills-start":     {role: access.Operator, scope: ofProject, plain: true, body: `{"from":"2026-01-01T00:00:00Z","to":"2026-01-03T00:00:00Z"}`},
	"dead-discard":        {role: access.Admin},
	"dead-discard-many":   {role: access.Admin},
	"dead-get":            {role: access.Viewer},
	"dead-list":           {role: access.Viewer},
	"dead-redrive":        {role: access.Operator},
	"dead-redrive-many":   {role: access.Operator},
	"executors-list":      {role: access.Viewer},
	"flows-graph":         {role: access.Viewer, scope: ofProject},
	"flows-list":          {role: access.Viewer, scope: anywhere},
	"flows-push":          {role: access.Admin, scope: ofProject, body: "no zip", makes: true},
	"flows-versions":      {role: access.Viewer, scope: ofProject},
	"jobs-cancel":         {role: access.Operator},
	"jobs-delete":         {role: access.Admin},
	"jobs-enqueue":        {role: access.Operator},
	"jobs-enqueue-many":   {role: access.Operator},
	"jobs-erase":          {role: access.Admin},
	"jobs-get":            {role: access.Viewer},
	"jobs-list":           {role: access.Viewer},
	"jobs-log":            {role: access.Viewer},
	"jobs-log-follow":     {role: access.Viewer},
	"jobs-log-sizes":      {role: access.Viewer},
	"jobs-reschedule":     {role: access.Operator, body: `{"at":"2026-01-01T00:00:00Z"}`},
	"jobs-retry":          {role: access.Operator},
	"jobs-runs":           {role: access.Viewer},
	"jobs-update":         {role: access.Operator},
	"partitions-list":     {role: access.Viewer},
	"partitions-maintain": {role: access.Admin},
	"queues-get":          {role: access.Viewer},
	"queues-list":         {role: access.Viewer},
	"queues-pause":        {role: access.Operator},
	"queues-resume":       {role: access.Operator},
	"queues-update":       {role: access.Operator},
	"runs-get":            {role: access.Viewer, scope: ofProject},
	"runs-graph":          {role: access.Viewer, scope: ofProject},
	"runs-kill":           {role: access.Operator, scope: ofProject},
	"runs-list":           {role: access.Viewer, scope: anywhere},
	"runs-log":            {role: access.Viewer, scope: ofProject},
	"runs-log-follow":     {role: access.Viewer, scope: ofProject},
	"runs-logs":           {role: access.Viewer, scope: ofProject},
	"runs-node":           {role: access.Viewer, scope: ofProject},
	"runs-pause":          {role: access.Operator, scope: ofProject},
	"runs-rerun":          {role: access.Operator, scope: ofProject, body: `{"nodes":["a"]}`},
	"runs-resume":         {role: access.Operator, scope: ofProject},
	"runs-retry":          {role: access.Operator, scope: ofProject},
	"runs-start":          {role: access.Operator, scope: ofProject, body: `{}`},
	"runs-succeed":        {role: access.Operator, scope: ofProject, body: `{"node":"a"}`},
	"runs-why":            {role: access.Viewer, scope: ofProject},
	"schedules-delete":    {role: access.Admin, scope: ofProject, plain: true},
	"schedules-get":       {role: access.Viewer, scope: ofProject, plain: true},
	"schedules-list":      {role: access.Viewer, scope: anywhere},
	"schedules-pause":     {role: access.Operator, scope: ofProject, plain: true},
	"schedules-preview":   {role: access.Viewer, scope: anywhere, body: `{"cron":"@daily"}`},
	"schedules-put":       {role: access.Admin, scope: ofProject, plain: true, body: `{"name":"{name}","cron":"0 3 1 1 *",{starts}}`, makes: true},
	"schedules-resume":    {role: access.Operator, scope: ofProject, plain: true},
	"schedules-ticks":     {role: access.Viewer, scope: ofProject, plain: true},
	"schedules-trigger":   {role: access.Operator, scope: ofProject, plain: true},
	"secrets-delete":      {role: access.Admin, scope: ofProject, plain: true, makes: true},
	"secrets-list":        {role: access.Viewer, scope: anywhere},
	"secrets-rekey":       {role: access.Admin},
	"secrets-set":         {role: access.Admin, scope: ofProject, plain: true, makes: true, body: `{"value":"no secret"}`},
	"tokens-create":       {role: access.Admin},
	"tokens-list":         {role: access.Admin},
	"tokens-revoke":       {role: access.Admin},
	"users-add":           {role: access.Admin},
	"users-disable":       {role: access.Admin},
	"users-enable":        {role: access.Admin},
	"users-list":          {role: access.Admin},
	"users-set-password":  {role: access.Admin},
	"users-set-role":      {role: access.Admin},
}

// mayPage is who may send which form of the page.
var mayPage = map[string]right{
	"/account/password":                 {scope: ofSession},
	"/account/session":                  {scope: ofSession},
	"/account/sessions":                 {scope: ofSession},
	"/account/token":                    {scope: ofSession},
	"/account/token/revoke":             {scope: ofSession},
	"/admin/secrets/delete":             {role: access.Admin, scope: ofProject, plain: true, makes: true, body: "project={project}&name=NIGHT"},
	"/admin/secrets/rekey":              {role: access.Admin},
	"/admin/secrets/set":                {role: access.Admin, scope: ofProject, plain: true, makes: true, body: "project={project}&name=NIGHT&value=no+secret"},
	"/admin/tokens":                     {role: access.Admin},
	"/admin/tokens/revoke":              {role: access.Admin},
	"/admin/users":                      {role: access.Admin},
	"/admin/users/{name}/disable":       {role: access.Admin},
	"/admin/users/{name}/enable":        {role: access.Admin},
	"/admin/users/{name}/password":      {role: access.Admin},
	"/admin/users/{name}/role":          {role: access.Admin},
	"/alerts/mute":                      {role: access.Operator},
	"/alerts/test":                      {role: access.Operator},
	"/alerts/unmute":                    {role: access.Operator},
	"/dead/discard":                     {role: access.Admin},
	"/dead/redrive":                     {role: access.Operator},
	"/flows/push":                       {role: access.Admin, scope: ofProject, makes: true},
	"/flows/{project}/push":             {role: access.Admin, scope: ofProject, makes: true},
	"/flows/{project}/{flow}/run":       {role: access.Operator, scope: ofProject},
	"/jobs/cancel":                      {role: access.Operator},
	"/jobs/reschedule":                  {role: access.Operator},
	"/jobs/retry":                       {role: access.Operator},
	"/jobs/new":                         {role: access.Operator},
	"/jobs/{id}/cancel":                 {role: access.Operator},
	"/jobs/{id}/change":                 {role: access.Operator},
	"/jobs/{id}/delete":                 {role: access.Admin},
	"/jobs/{id}/erase":                  {role: access.Admin},
	"/jobs/{id}/reschedule":             {role: access.Operator, body: "at=1m&seen=2026-01-01T00:00:00Z"},
	"/jobs/{id}/retry":                  {role: access.Operator},
	"/partitions/maintain":              {role: access.Admin},
	"/queues/pause":                     {role: access.Operator},
	"/queues/resume":                    {role: access.Operator},
	"/runs/{id}/confirm/{action}":       {role: access.Operator, scope: ofProject},
	"/runs/{id}/{action}":               {role: access.Operator, scope: ofProject},
	"/schedule":                         {role: access.Admin, scope: ofProject, plain: true, body: "do=save&name={name}&by=cron&cron=0+3+1+1+*&{form}&old={name}&seen_edition=1.1"},
	"/schedules/{name}/backfill":        {role: access.Operator, scope: ofProject, plain: true, body: "from=2026-01-01&to=2026-01-03"},
	"/schedules/{name}/backfill/cancel": {role: access.Operator, scope: ofProject, plain: true, body: "backfill={backfill}"},
	"/schedules/{name}/delete":          {role: access.Admin, scope: ofProject, plain: true},
	"/schedules/{name}/pause":           {role: access.Operator, scope: ofProject, plain: true},
	"/schedules/{name}/resume":          {role: access.Operator, scope: ofProject, plain: true},
	"/schedules/{name}/trigger":         {role: access.Operator, scope: ofProject, plain: true},
}

// target is things of a project, or of none.
type target struct {
	project, schedule  string // project "": none
	run, job, backfill int64
}

// fill writes a target's names where a text has places for them.
func (g target) fill(text string) string {
	starts, form := fmt.Sprintf(`"flow":{"project":%q,"flow":"f"}`, g.project), "starts=flow&flow=f&project="+g.project
	if g.project == "" {
		starts, form = `"job":{"kind":"noop"}`, "starts=job&kind=noop"
	}
	number := func(n int64) string { return fmt.Sprint(n) }
	project := cmp.Or(g.project, secret.Everywhere)
	text = strings.NewReplacer("/secrets/{project}/{name}", "/secrets/"+project+"/NIGHT", "project={project}&name", "project="+project+"&name",
		"/runs/{id}", "/runs/"+number(g.run), "/backfills/{id}", "/backfills/"+number(g.backfill)).Replace(text)
	return strings.NewReplacer("{project}", g.project, "{flow}", "f", "{name}", g.schedule, "{job}", number(g.job), "{backfill}", number(g.backfill),
		"{starts}", starts, "{form}", form, "{action}", "kill").Replace(text)
}

// missing is a target that is not there.
var missing = target{project: "ghost", schedule: "ghost-s", run: 999_999, job: 999_999, backfill: 999_999}

// anonymous is a body without the names of a target, and numbers.
func (g target) anonymous(body string) string {
	if g.project != "" {
		body = strings.ReplaceAll(strings.ReplaceAll(body, g.schedule, "NAME"), g.project, "PROJECT")
	}
	body = strings.ReplaceAll(body, g.schedule, "NAME")
	return regexp.MustCompile(`\d+`).ReplaceAllString(body, "N")
}

// estate is a site with things in two projects and in none, and people with each role for everything and in one of the projects.
type estate struct {
	*pagetest.Site

	t       *testing.T
	targets map[string]*target // own, other, none
	people  []person
}

type person struct {
	*pagetest.Visitor

	name string
	role access.Role
	all  bool // the role is for everything; else in the project "mine"
}

// in is the role in a project.
func (p person) in(project string) access.Role {
	if p.all || project == "mine" {
		return p.role
	}
	return access.NoRole
}

func newEstate(t *testing.T) *estate {
	t.Helper()
	e := &estate{Site: pagetest.Start(t, pagetest.Options{Jobs: pagetest.Working()}), t: t, targets: map[string]*target{
		"own": {project: "mine", schedule: "mine-s"}, "other": {project: "theirs", schedule: "theirs-s"}, "none": {schedule: "plain-s"},
	}}
	for role := access.NoRole; role <= access.Admin; role++ {
		for where, name := range map[string]string{access.Everything: "all", "mine": "one"} {
			p := person{name: role.String() + "-" + name, role: role, all: where == access.Everything}
			switch {
			case role > access.NoRole:
				e.Add(p.name, access.Grant{Project: where, Role: role})
			case p.all:
				e.Add(p.name)
			default:
				continue
			}
			p.Visitor = e.As(p.name)
			p.Client.Jar = nil // what was done last is not shown with the next answer
			e.people = append(e.people, p)
		}
	}
	for _, g := range e.targets {
		if g.project == "" {
			continue
		}
		built, err := flow.New("f").Job("a", pagetest.Task{Print: "x"}).Build()
		e.check(err)
		_, err = e.Flows.PushFlows(t.Context(), g.project, built)
		e.check(err)
		g.run, err = e.Flows.Run(t.Context(), flow.RunParams{Project: g.project, Flow: "f"})
		e.check(err)
		run, err := e.Flows.Ended(t.Context(), g.run, nil)
		e.check(err)
		g.job = *run.Nodes[0].JobID
	}
	return e
}

func (e *estate) check(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// renew puts the schedule of a target, its backfill and its secret there again for what needs them.
func (e *estate) renew(what string, g *target) {
	e.t.Helper()
	if strings.Contains(what, "secret") {
		_, err := e.Secrets.Set(e.t.Context(), cmp.Or(g.project, secret.Everywhere), "NIGHT", []byte("no secret"))
		e.check(err)
		return
	}
	if !strings.Contains(what, "schedule") && !strings.Contains(what, "backfill") {
		return
	}
	s := periodic.Schedule{Name: g.schedule, Cron: "0 3 1 1 *", Job: &periodic.JobTarget{Kind: "noop"}}
	if g.project != "" {
		s.Job, s.Flow = nil, &periodic.FlowTarget{Project: g.project, Flow: "f"}
	}
	_, err := e.Schedules.Put(e.t.Context(), s)
	e.check(err)
	if list, err := e.Schedules.Backfills(e.t.Context(), periodic.BackfillListParams{Schedule: g.schedule, Limit: 1}); err != nil || len(list) > 0 && list[0].Status == periodic.BackfillRunning {
		e.check(err)
		g.backfill = list[0].ID
		return
	}
	at := time.Date(2025, 1, 1, 3, 0, 0, 0, time.UTC)
	b, err := e.Schedules.Backfill(e.t.Context(), g.schedule, periodic.BackfillParams{From: at, To: at, All: true, Parallel: 1})
	e.check(err)
	g.backfill = b.ID
}

// request is a request of somebody's for a target.
type request func(p person, g target) pagetest.Answer

// judge does what a right is for, as everybody, with everything.
func (e *estate) judge(what string, r right, ask request) {
	e.t.Helper()
	refused := []int{http.StatusUnauthorized, http.StatusForbidden}
	switch r.scope {
	case everything, anywhere, ofSession:
		for _, p := range e.people {
			may := p.role >= r.role && p.role > access.NoRole && (p.all || r.scope == anywhere) && r.scope != ofSession
			a := ask(p, missing)
			if got := !slices.Contains(refused, a.Status); got != may {
				e.t.Errorf("%s by %s: %d, want that it may be done: %t; %s", what, p.name, a.Status, may, a.Body)
			}
			if r.scope == anywhere && !p.all && (strings.Contains(a.Body, "theirs") || strings.Contains(a.Body, "plain-s")) {
				e.t.Errorf("%s by %s shows what belongs to others: %s", what, p.name, a.Body)
			}
		}
		return
	case ofProject:
	}
	for which, g := range e.targets {
		if g.project == "" && !r.plain {
			continue
		}
		e.renew(what, g)
		for _, p := range e.people {
			role := p.in(g.project)
			a := ask(p, *g)
			if role >= r.role {
				e.renew(what, g)
			}
			name := fmt.Sprintf("%s by %s, %s", what, p.name, which)
			switch may := role >= r.role; {
			case may && (slices.Contains(refused, a.Status) || a.Status == http.StatusNotFound || a.Status >= http.StatusInternalServerError):
				e.t.Errorf("%s: %d, want that it may be done; %s", name, a.Status, a.Body)
			case !may && role > access.NoRole && a.Status != http.StatusForbidden:
				e.t.Errorf("%s: %d, want 403; %s", name, a.Status, a.Body)
			case !may && a.Status != http.StatusForbidden && a.Status != http.StatusNotFound:
				e.t.Errorf("%s: %d, want 403 or 404; %s", name, a.Status, a.Body)
			}
			if role > access.NoRole || r.makes && g.project == "" {
				continue
			}
			// Who may not see a thing is told the same as if there were none.
			nothing := missing
			if g.project == "" && r.scope == ofProject && strings.Contains(r.body, "{form}") {
				nothing.project = ""
			}
			if b := ask(p, nothing); a.Status != b.Status || g.anonymous(a.Body) != nothing.anonymous(b.Body) {
				e.t.Errorf("%s: %d %s\nbut of what is not there: %d %s", name, a.Status, a.Body, b.Status, b.Body)
			}
		}
	}
}

// Who may do what, of each operation of the API and each form of the page, and that nobody learns what there is in projects of others. An operation that is not
// in the tables above fails: say there who may do it, and in docs/access.md.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			RequestBody struct{ Content map[string]any }
		}
	}
	e.check(json.Unmarshal([]byte(e.people[0].Do("GET", "/openapi.json", "").Body), &doc))
	known := map[string]bool{}
	for path, item := range doc.Paths {
		for method, op := range item {
			r, ok := mayAPI[op.OperationID]
			if !ok {
				t.Errorf("nobody has said who may do %s", op.OperationID)
				continue
			}
			known[op.OperationID] = true
			e.judge(op.OperationID, r, func(p person, g target) pagetest.Answer {
				var headers []string
				for kind := range op.RequestBody.Content {
					headers = []string{"Content-Type", kind}
				}
				at := regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(g.fill(path), "4711")
				return p.Do(strings.ToUpper(method), at, g.fill(r.body), headers...)
			})
		}
	}
	for id := range mayAPI {
		if !known[id] {
			t.Errorf("there is no operation %s any more", id)
		}
	}
	pages := page.Mount(http.NewServeMux(), page.Config{Schema: "pelton"})
	defer pages.Close()
	for _, pattern := range pages.Routes() {
		path, posts := strings.CutPrefix(pattern, "POST ")
		if !posts {
			continue
		}
		r, ok := mayPage[path]
		if !ok {
			t.Errorf("nobody has said who may send %s", path)
			continue
		}
		known[path] = true
		e.judge("POST "+path, r, func(p person, g target) pagetest.Answer {
			body, kind := g.fill(r.body), "application/x-www-form-urlencoded"
			if strings.HasSuffix(path, "/push") {
				body, kind = upload(path, g.project)
			}
			at := regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(g.fill(path), "4711")
			return p.Do("POST", at, body, "Content-Type", kind, "Sec-Fetch-Site", "same-origin")
		})
	}
	for path := range mayPage {
		if !known[path] {
			t.Errorf("there is no form %s any more", path)
		}
	}
}

// upload is the form that pushes a project.
func upload(path, project string) (body, kind string) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	if path == "/flows/push" {
		_ = w.WriteField("project", project) // a buffer takes it
	}
	file, _ := w.CreateFormFile("zip", "p.zip")
	_, _ = file.Write([]byte("no zip"))
	_ = w.Close()
	return out.String(), w.FormDataContentType()
}
