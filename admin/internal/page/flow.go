package page

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs/flow"
)

// flowNodesShown is how many nodes of a flow a page lists.
const flowNodesShown = 50

type flowPage struct {
	Project  string
	Flow     string
	Version  flow.Version
	Newest   int           // of the project; it may not have the flow
	Versions []flowVersion // that have the flow, the newest first
	Graph    graphView
	Runs     []runLine // the last ones, the newest first
	Chart    []chartBar
	Nodes    []nodeSpec
	Total    int // of nodes
	Found    int // of those that are searched for
	Search   string
	Pager    pager
	Node     *nodeSpec // one that is looked at
	MayRun   bool
	Form     runForm
	Trigger  string
}

// Gone tells whether the project's newest version does not have the flow any more.
func (d *flowPage) Gone() bool { return len(d.Versions) > 0 && d.Versions[0].No != d.Newest }

// flowVersion is a version that has the flow.
type flowVersion struct {
	No       int
	PushedBy string
}

// graphView is what the template "graph" shows.
type graphView struct {
	Picture  string // address of what the script colours
	File     string // of the picture as a file
	Node     string // address of a node, less its number
	Name     string
	Statuses bool // there are some
	TooLarge string
}

// nodeSpec is a node as the flow has it.
type nodeSpec struct {
	No int
	*flow.GraphNode
	Parents []nodeRef
}

type nodeRef struct {
	No   int
	Path string
}

// Depth is how many flows it is embedded in.
func (n nodeSpec) Depth() int { return strings.Count(n.Path, ":") }

// Keys are the names in its config.
func (n nodeSpec) Keys() []string { return slices.Sorted(maps.Keys(n.Config)) }

// runLine is a run in a list.
type runLine struct {
	ID        int64
	Project   string
	Version   int
	Flow      string
	Status    string
	CreatedAt time.Time
	StartedAt *time.Time
	EndedAt   *time.Time
	CreatedBy string
	Mark      bool // no run, but where a search ended
}

// Took is how long it ran, or has run.
func (l runLine) Took() string {
	switch {
	case l.StartedAt == nil:
		return "-"
	case l.EndedAt == nil:
		return "runs"
	}
	return duration(l.EndedAt.Sub(*l.StartedAt))
}

// lastRun is a row of flow_last_runs.
type lastRun struct {
	ID        int64
	Version   int
	Status    string
	CreatedAt time.Time
	StartedAt *time.Time
	EndedAt   *time.Time
	CreatedBy string
}

func (p *Page) showFlow(w http.ResponseWriter, r *http.Request) error {
	data, err := p.flowPage(r)
	if err != nil {
		return err
	}
	if like := r.URL.Query().Get("like"); like != "" {
		if err := p.likeRun(r, &data.Form, like); err != nil {
			return err
		}
	}
	return p.render(w, r, "flow", data.Flow, data)
}

// flowPage reads what the page of a flow shows.
func (p *Page) flowPage(r *http.Request) (*flowPage, error) {
	ctx, project, name := r.Context(), r.PathValue("project"), r.PathValue("flow")
	if err := inProject(ctx, access.Viewer, project); err != nil {
		return nil, err
	}
	no := 0
	if text := r.FormValue("version"); text != "" {
		var err error
		if no, err = small(text); err != nil || no < 1 {
			return nil, badInput("%q is no version", text)
		}
	}
	data := &flowPage{Project: project, Flow: name, MayRun: actor(ctx).May(access.Operator, project)}
	graph, err := p.readFlow(ctx, data, no)
	if err != nil {
		return nil, err
	}
	data.Chart = durationChart(data.Runs)
	query := r.URL.Query()
	if err := data.list(graph, query.Get("q"), query.Get("after"), query.Get("node")); err != nil {
		return nil, err
	}
	next := ""
	if data.Pager.Next != "" {
		next, data.Pager.Next = data.Pager.Next, ""
	}
	data.Pager = page(itself(r, "/flows/"+project+"/"+name, url.Values{"version": {strconv.Itoa(data.Version.No)}}), next)
	data.Form = newRunForm(graph)
	if graph.Trigger != nil {
		data.Trigger = graph.Trigger.Schedule
	}
	return data, nil
}

// readFlow reads a version of the flow; 0: the newest that has it.
func (p *Page) readFlow(ctx context.Context, data *flowPage, no int) (*flow.Graph, error) {
	if err := p.read(ctx, func(ctx context.Context, tx pgx.Tx) error { return p.readVersions(ctx, tx, data) }); err != nil {
		return nil, err
	}
	if no == 0 && len(data.Versions) > 0 {
		no = data.Versions[0].No
	}
	limited, cancel := p.limit(ctx)
	defer cancel()
	version, graph, err := p.config.Flows.Graph(limited, data.Project, data.Flow, no)
	if err != nil {
		return nil, flowFault(err)
	}
	data.Version, data.Total = version, len(graph.Nodes)
	where := flowPath(data.Project, data.Flow)
	of := "?version=" + strconv.Itoa(version.No)
	data.Graph = graphView{Picture: where + "/picture" + of, File: where + "/picture.svg" + of, Node: where + of + "&node=", Name: data.Flow}
	data.Graph.TooLarge = tooLarge(graph)
	return graph, nil
}

// readVersions reads the versions that have the flow, and its last runs.
func (p *Page) readVersions(ctx context.Context, tx pgx.Tx, data *flowPage) error {
	newest, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[versionLine], "flow_versions", data.Project, 1, 0)
	if err != nil {
		return err
	}
	if len(newest) > 0 {
		data.Newest = newest[0].No
	}
	if data.Versions, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[flowVersion], "flow_versions_with", data.Project, data.Flow, versionsShown); err != nil {
		return err
	}
	runs, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[lastRun], "flow_last_runs", data.Project, data.Flow, lastRuns)
	for _, l := range runs {
		data.Runs = append(data.Runs, runLine{l.ID, data.Project, l.Version, data.Flow, l.Status, l.CreatedAt, l.StartedAt, l.EndedAt, l.CreatedBy, false})
	}
	return err
}

// list picks the nodes that a page shows: those with the search in their path, from behind a number on; and one that is looked at.
func (d *flowPage) list(graph *flow.Graph, search, after, chosen string) error {
	from := -1
	if after != "" {
		var err error
		if from, err = small(after); err != nil {
			return badInput("%q is no place in the list", after)
		}
	}
	spec := func(i int) nodeSpec {
		n := nodeSpec{No: i, GraphNode: &graph.Nodes[i]}
		for _, parent := range n.GraphNode.Parents {
			n.Parents = append(n.Parents, nodeRef{parent, graph.Nodes[parent].Path})
		}
		return n
	}
	d.Search = search
	wanted := strings.ToLower(search)
	for i := range graph.Nodes {
		if wanted != "" && !strings.Contains(strings.ToLower(graph.Nodes[i].Path), wanted) {
			continue
		}
		d.Found++
		switch {
		case i <= from:
		case len(d.Nodes) < flowNodesShown:
			d.Nodes = append(d.Nodes, spec(i))
		case d.Pager.Next == "":
			d.Pager.Next = strconv.Itoa(d.Nodes[flowNodesShown-1].No)
		}
	}
	if chosen != "" {
		i, err := small(chosen)
		if err != nil || i < 0 || i >= len(graph.Nodes) {
			return notFound("flow %s has no node number %s", d.Flow, chosen)
		}
		n := spec(i)
		d.Node = &n
	}
	return nil
}

// tooLarge says why a flow is not drawn; empty: it is.
func tooLarge(graph *flow.Graph) string {
	edges := 0
	for i := range graph.Nodes {
		edges += len(graph.Nodes[i].Parents)
	}
	if len(graph.Nodes) > flow.MaxDrawnNodes || edges > flow.MaxDrawnEdges {
		return fmt.Sprintf("The flow has %s nodes and %s edges: too many for a picture.", count(len(graph.Nodes)), count(edges))
	}
	return ""
}

// chartBar is a run in the chart of durations.
type chartBar struct {
	Run      runLine
	X, Y     float64
	Width, H float64
}

// durationChart makes a bar of each run, the oldest first; the longest is the whole height.
func durationChart(runs []runLine) []chartBar {
	const width, height = 600.0, 60.0
	seconds := func(l runLine) float64 {
		if l.StartedAt == nil {
			return 0
		}
		end := time.Now()
		if l.EndedAt != nil {
			end = *l.EndedAt
		}
		return max(0, end.Sub(*l.StartedAt).Seconds())
	}
	longest := 0.001
	for _, l := range runs {
		longest = max(longest, seconds(l))
	}
	step := width / lastRuns
	bars := make([]chartBar, 0, len(runs))
	for i, l := range slices.Backward(runs) {
		h := max(2, height*seconds(l)/longest)
		bars = append(bars, chartBar{Run: l, X: width - float64(i+1)*step, Y: height - h, Width: step - 2, H: h})
	}
	return bars
}

// flowPicture sends a version's picture for the script, which colours it. The browser keeps it, and asks whether it is still the same.
func (p *Page) flowPicture(w http.ResponseWriter, r *http.Request) error {
	picture, err := p.pictureOf(r)
	if err != nil {
		return err
	}
	tag := `"` + picture.Sum() + `"`
	h := w.Header()
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", tag)
	h.Set("Vary", "Accept-Encoding, Cookie, Authorization")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", "image/svg+xml")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(picture.Bytes())
		return nil
	}
	h.Set("Content-Encoding", "gzip")
	_, _ = w.Write(picture.Gzip())
	return nil
}

// flowFile sends the picture as a file.
func (p *Page) flowFile(w http.ResponseWriter, r *http.Request) error {
	picture, err := p.pictureOf(r)
	if err != nil {
		return err
	}
	return sendFile(w, picture, nil)
}

func sendFile(w http.ResponseWriter, picture *flow.Picture, status func(int) string) error {
	var out bytes.Buffer
	if err := picture.Write(&out, status); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(out.Bytes())
	return nil
}

func (p *Page) pictureOf(r *http.Request) (*flow.Picture, error) {
	ctx, project := r.Context(), r.PathValue("project")
	if err := inProject(ctx, access.Viewer, project); err != nil {
		return nil, err
	}
	no, err := small("0" + r.URL.Query().Get("version"))
	if err != nil {
		return nil, badInput("%q is no version", r.URL.Query().Get("version"))
	}
	return p.picture(ctx, project, r.PathValue("flow"), no)
}

// picture waits for a picture for a moment: the client draws one after another.
func (p *Page) picture(ctx context.Context, project, name string, version int) (*flow.Picture, error) {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	picture, err := p.config.Flows.Picture(ctx, project, name, version)
	return picture, flowFault(err)
}

// runForm is the form that starts a run: what is in it, and what is wrong with it.
type runForm struct {
	Key         string // under which its run is started once; another with each form
	Params      []formParam
	More        string      // further parameters, NAME=VALUE a line
	NodeParams  string      // NODE:NAME=VALUE a line
	Long        []formParam // those of both whose values have several lines; their names as there
	Nodes       []formNode
	ManyNodes   bool   // too many to tick: Disabled has their paths
	Disabled    string // a path a line
	OnFailure   string
	Cancelled   string // how it ends when an end node was cancelled
	Concurrent  string
	Priority    string
	MaxParallel string
	Queue       string
	JobPriority string
	SLAs        []formSLA
	Success     string
	Failure     string
	First       string
	Faults      map[string][]string // by field; "" of the whole
	Said        string              // what a check found
	Open        bool
	Actions     []string
	Ends        []string
	Concurrents []string
}

type formParam struct {
	Name, Default, Value string
	Referred             bool // somebody refers to it, and no config has it
}

// Lines tells whether the value has several: a field of one line would drop their ends.
func (p *formParam) Lines() bool { return strings.ContainsAny(p.Default+p.Value, "\r\n") }

// sent takes what a browser sent for the parameter, in which all ends of lines are alike, and tells whether it is another value than the default.
func (p *formParam) sent(value string) (changed bool) {
	p.Value = oneEnd.Replace(value)
	if changed = p.Value != oneEnd.Replace(p.Default); !changed {
		p.Value = p.Default
	}
	return changed
}

var oneEnd = strings.NewReplacer("\r\n", "\n", "\r", "\n")

type formNode struct {
	Path, Name, Type string
	Depth            int
	Off              bool
}

type formSLA struct {
	Node, Within, Do string // do: alert, kill, both
	Succeed          bool
}

const (
	nodesToTick = 200
	slaRows     = 3
	// referredShown bounds the parameters that are asked for since something refers to them.
	referredShown = 50
)

// own are keys of a config that are the engine's: a run has fields of its own for what they say.
var ownKeys = map[string]bool{
	"failure.action": true, "flow.num.job.threads": true, "flowPriority": true, "success.emails": true, "failure.emails": true, "notify.emails": true,
}

var reference = regexp.MustCompile(`\$\{([^${}:]+)\}`)

// newRunForm is the form as it is at first: parameters with what the flow says.
func newRunForm(graph *flow.Graph) runForm {
	f := runForm{Key: rand.Text(), Faults: map[string][]string{}, SLAs: make([]formSLA, slaRows)}
	known := map[string]bool{"item": true, "item.index": true}
	for _, name := range slices.Sorted(maps.Keys(graph.Config)) {
		if known[name] = true; !ownKeys[name] {
			f.Params = append(f.Params, formParam{Name: name, Default: graph.Config[name], Value: graph.Config[name]})
		}
	}
	referred := map[string]bool{}
	for i := range graph.Nodes {
		n := &graph.Nodes[i]
		for name := range n.Config {
			known[name] = true
		}
		for name := range n.Shared {
			known[name] = true
		}
		for _, text := range n.Config {
			for _, found := range reference.FindAllStringSubmatch(text, -1) {
				referred[found[1]] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(referred)) {
		if !known[name] && !strings.HasPrefix(name, "azkaban.") && !strings.HasPrefix(name, "secret.") && len(f.Params) < len(graph.Config)+referredShown {
			f.Params = append(f.Params, formParam{Name: name, Referred: true})
		}
	}
	f.ManyNodes = len(graph.Nodes) > nodesToTick
	for i := range graph.Nodes {
		if n := &graph.Nodes[i]; !f.ManyNodes {
			spec := nodeSpec{No: i, GraphNode: n}
			f.Nodes = append(f.Nodes, formNode{Path: n.Path, Name: n.Path[strings.LastIndexByte(n.Path, ':')+1:], Type: n.Type, Depth: min(spec.Depth(), 6)})
		}
	}
	f.Actions = []string{string(flow.FinishCurrent), string(flow.CancelAll), string(flow.FinishPossible)}
	f.Ends = []string{string(flow.EndKilled), string(flow.EndSucceeded)}
	for _, c := range []flow.Concurrent{flow.Allow, flow.Skip, flow.Queue, flow.Pipeline1, flow.Pipeline2, flow.Pipeline3} {
		f.Concurrents = append(f.Concurrents, string(c))
	}
	return f
}

// fill puts options into the form.
func (f *runForm) fill(o flow.Options) {
	given := maps.Clone(o.Params)
	for i := range f.Params {
		if value, ok := given[f.Params[i].Name]; ok {
			f.Params[i].Value = value
			delete(given, f.Params[i].Name)
		}
	}
	f.More = f.lines(given, "")
	for _, path := range slices.Sorted(maps.Keys(o.NodeParams)) {
		f.NodeParams += f.lines(o.NodeParams[path], path+":")
	}
	f.disable(o.Disabled)
	f.OnFailure, f.Cancelled, f.Concurrent, f.Queue = string(o.OnFailure), string(o.OnCancelledEnd), string(o.Concurrent), o.Queue
	f.Priority, f.MaxParallel, f.JobPriority = numberOrNone(o.Priority), numberOrNone(o.MaxParallel), numberOrNone(o.JobPriority)
	f.SLAs = make([]formSLA, max(len(o.SLAs), slaRows))
	for i, s := range o.SLAs {
		f.SLAs[i] = formSLA{Node: s.Node, Within: time.Duration(s.Within).String(), Succeed: s.Succeed, Do: "alert"}
		switch {
		case s.Kill && s.Alert:
			f.SLAs[i].Do = "both"
		case s.Kill:
			f.SLAs[i].Do = "kill"
		}
	}
	f.Success, f.Failure, f.First = strings.Join(o.Notify.Success, ", "), strings.Join(o.Notify.Failure, ", "), strings.Join(o.Notify.FirstFailure, ", ")
}

func (f *runForm) disable(paths []string) {
	f.Disabled = strings.Join(paths, "\n")
	for i := range f.Nodes {
		f.Nodes[i].Off = slices.Contains(paths, f.Nodes[i].Path)
	}
}

// lines are parameters, one a line. Those that do not fit into one are put apart.
func (f *runForm) lines(params map[string]string, prefix string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(params)) {
		one := formParam{Name: prefix + name, Value: params[name]}
		if one.Lines() {
			f.Long = append(f.Long, one)
			continue
		}
		out.WriteString(one.Name + "=" + one.Value + "\n")
	}
	return out.String()
}

func numberOrNone(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// likeRun fills the form with what another run of the flow was started with.
func (p *Page) likeRun(r *http.Request, f *runForm, like string) error {
	id, err := strconv.ParseInt(like, 10, 64)
	if err != nil {
		return badInput("%q is no run", like)
	}
	run, err := p.readRun(r.Context(), id)
	if err != nil {
		return err
	}
	if run.Project != r.PathValue("project") || run.Flow != r.PathValue("flow") {
		return badInput("run %d is of another flow", id)
	}
	var options flow.Options
	if err := json.Unmarshal(run.Options, &options); err != nil {
		return fmt.Errorf("options of run %d: %w", id, err)
	}
	f.fill(options)
	f.Open = true
	return nil
}
