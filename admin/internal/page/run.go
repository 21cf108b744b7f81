package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/reach"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs/flow"
)

// nodesShown is how many nodes a page's table has.
const nodesShown = 50

// runRow is a row of flow_run.
type runRow struct {
	ID        int64
	Project   string
	Version   int
	Flow      string
	Status    string
	CreatedAt time.Time
	StartedAt *time.Time
	EndedAt   *time.Time
	ResumedAt *time.Time
	CreatedBy string
	Before    *int64
	Pipeline  int
	Priority  int
	Options   json.RawMessage
	Reason    *string
}

// Live tells whether it has not ended.
func (r runRow) Live() bool { return r.EndedAt == nil }

// Took is how long it ran.
func (r runRow) Took() string {
	return runLine{StartedAt: r.StartedAt, EndedAt: r.EndedAt}.Took()
}

// Where is the address of its page.
func (r runRow) Where() string { return runPath(r.ID) }

// statusWord is a status of nodes as the script gets it: a letter, and how it is shown.
type statusWord struct{ letter, status, class, sign string }

// statusWords are all statuses that nodes have. The signs are those of the style sheet.
var statusWords = []statusWord{
	{"r", "READY", "", ""},
	{"d", "DISABLED", "off", "\u2013"},
	{"q", "QUEUED", "waits", "\u22ef"},
	{"R", "RUNNING", "runs", "\u25b6"},
	{"k", "KILLING", "warns", "!"},
	{"s", "SUCCEEDED", "good", "\u2713"},
	{"f", "FAILED_SUCCEEDED", "good", "\u2713"},
	{"p", "SKIPPED", "off", "\u2013"},
	{"F", "FAILED", "bad", "\u2715"},
	{"K", "KILLED", "bad", "\u2715"},
	{"c", "CANCELLED", "off", "\u25cb"},
}

// statusTable is statusWords for the script.
var statusTable = func() string {
	table := map[string][]string{}
	for _, w := range statusWords {
		table[w.letter] = []string{w.status, w.class, w.sign}
	}
	made, err := json.Marshal(table)
	if err != nil {
		panic(err) // texts
	}
	return string(made)
}()

// nodeStatusNames are their names.
func nodeStatusNames() (names []string) {
	for _, w := range statusWords {
		names = append(names, w.status)
	}
	return names
}

// nodeStatuses are the statuses of a run's nodes.
type nodeStatuses struct {
	Letters  string // of the graph's nodes, in order
	Statuses []string
	Counts   []int
}

// Total is how many nodes there are.
func (s nodeStatuses) Total() (n int) {
	for _, c := range s.Counts {
		n += c
	}
	return n
}

// statusCount is how many nodes have a status.
type statusCount struct {
	Status string
	Count  int
	X, W   float64 // its piece of a bar of 100
}

// Bar lists statuses in the order of a node's life, with their pieces of a bar.
func (s nodeStatuses) Bar() (list []statusCount) {
	x := 0.0
	for _, status := range []string{"SUCCEEDED", "FAILED_SUCCEEDED", "SKIPPED", "FAILED", "KILLED", "CANCELLED", "KILLING", "RUNNING", "QUEUED", "DISABLED", "READY"} {
		if i := slices.Index(s.Statuses, status); i >= 0 {
			w := 100 * float64(s.Counts[i]) / float64(s.Total())
			list = append(list, statusCount{status, s.Counts[i], x, w})
			x += w
		}
	}
	return list
}

// nodeLine is a row of flow_nodes.
type nodeLine struct {
	No        int
	Path      string
	Status    string
	Try       int
	Attempt   int
	JobID     *int64
	QueuedAt  *time.Time
	StartedAt *time.Time
	EndedAt   *time.Time
	Template  *int
	Item      *string
	Reason    *string
}

// Took is how long it ran.
func (n nodeLine) Took() string {
	return runLine{StartedAt: n.StartedAt, EndedAt: n.EndedAt}.Took()
}

type runPage struct {
	Run      runRow
	Why      string
	Nodes    nodeStatuses
	Graph    graphView
	Words    string
	Table    nodeTable
	MayAct   bool
	Options  string // as JSON
	Params   map[string]string
	Disabled []string
}

// nodeTable is a piece of the list of a run's nodes.
type nodeTable struct {
	Run            runRow
	Nodes          []nodeLine
	Status, Search string
	Choose         bool // with boxes to tick
	Live           string
	Pager          pager
}

// nodeFilter is which nodes of a run are shown.
type nodeFilter struct {
	statuses []string
	status   string
	search   string
	after    int
	order    string // of the chart: start, longest
}

func nodeFilterOf(r *http.Request) (f nodeFilter, err error) {
	query := r.URL.Query()
	f = nodeFilter{status: query.Get("status"), search: query.Get("q"), statuses: []string{}, order: query.Get("order")}
	if f.status != "" {
		if !slices.ContainsFunc(statusWords, func(w statusWord) bool { return w.status == f.status }) {
			return f, badInput("%q is no status of a node", f.status)
		}
		f.statuses = []string{f.status}
	}
	if f.order != "longest" {
		f.order = "start"
	}
	f.after = -1
	if text := query.Get("after"); text != "" {
		if f.after, err = small(text); err != nil {
			return f, badInput("%q is no place in the list", text)
		}
	}
	return f, nil
}

// seenRun reads which run a request means, for who may see it. To others there is none.
func (p *Page) seenRun(r *http.Request) (runRow, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return runRow{}, err
	}
	return p.readRun(r.Context(), id)
}

func noRun(id int64) error { return notFound("there is no run %d", id) }

func (p *Page) readRun(ctx context.Context, id int64) (run runRow, err error) {
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[runRow], "flow_run", id)
		if err != nil {
			return err
		}
		if len(list) == 0 || !reach.Sees(ctx, list[0].Project) {
			return noRun(id)
		}
		run = list[0]
		return nil
	})
	return run, err
}

// mayRun is seenRun for who operates on it.
func (p *Page) mayRun(r *http.Request) (runRow, error) {
	run, err := p.seenRun(r)
	if err == nil {
		err = access.Check(r.Context(), access.Operator, run.Project)
	}
	return run, err
}

func (p *Page) statuses(ctx context.Context, tx pgx.Tx, id int64) (nodeStatuses, error) {
	var words, letters []string
	for _, w := range statusWords {
		words, letters = append(words, w.status), append(letters, w.letter)
	}
	list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[nodeStatuses], "flow_statuses", id, words, letters)
	if err != nil || len(list) == 0 {
		return nodeStatuses{}, err
	}
	return list[0], nil
}

// nodes reads nodes in the order of the graph.
func (p *Page) nodes(ctx context.Context, tx pgx.Tx, id int64, f nodeFilter, most int) ([]nodeLine, error) {
	return sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[nodeLine], "flow_nodes", id, f.statuses, f.search, f.after, most)
}

func (p *Page) showRun(w http.ResponseWriter, r *http.Request) error {
	run, err := p.seenRun(r)
	if err != nil {
		return err
	}
	filter, err := nodeFilterOf(r)
	if err != nil {
		return err
	}
	data := runPage{Run: run, Words: statusTable, MayAct: actor(r.Context()).May(access.Operator, run.Project), Options: pretty(run.Options)}
	err = p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if data.Nodes, err = p.statuses(ctx, tx, run.ID); err != nil {
			return err
		}
		data.Table, err = p.nodeTable(ctx, tx, run, filter)
		return err
	})
	if err != nil {
		return err
	}
	data.Why = p.whyRun(r.Context(), run)
	var options flow.Options
	if json.Unmarshal(run.Options, &options) == nil {
		data.Params, data.Disabled = options.Params, options.Disabled
	}
	next := ""
	if data.Table.Pager.Next != "" {
		next = data.Table.Pager.Next
	}
	data.Table.Pager = page(r, next)
	data.Table.Choose = data.MayAct && !run.Live()
	data.Graph = graphView{
		Picture: flowPath(run.Project, run.Flow) + "/picture?version=" + strconv.Itoa(run.Version), File: run.Where() + "/picture.svg",
		Node: run.Where() + "/nodes/", Name: run.Flow, Statuses: true,
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	_, graph, err := p.config.Flows.Graph(ctx, run.Project, run.Flow, run.Version)
	if err != nil {
		return flowFault(err)
	}
	data.Graph.TooLarge = tooLarge(graph)
	return p.render(w, r, "run", fmt.Sprintf("Run %d", run.ID), data)
}

// whyRun says how a run stands where its status does not say it all. Of one that went well there is nothing to say.
func (p *Page) whyRun(ctx context.Context, run runRow) string {
	switch {
	case run.Reason != nil && !run.Live():
		return *run.Reason
	case run.Status == "SUCCEEDED" || run.Status == "RUNNING":
		return ""
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	why, err := p.config.Flows.WhyRun(ctx, run.ID)
	if err != nil {
		return ""
	}
	return why
}

// nodeTable reads a piece of the list; the pager's Next is the cursor of the next.
func (p *Page) nodeTable(ctx context.Context, tx pgx.Tx, run runRow, f nodeFilter) (t nodeTable, err error) {
	t = nodeTable{Run: run, Status: f.status, Search: f.search}
	if t.Nodes, err = p.nodes(ctx, tx, run.ID, f, nodesShown+1); err != nil {
		return t, err
	}
	if len(t.Nodes) > nodesShown {
		t.Nodes = t.Nodes[:nodesShown]
		t.Pager.Next = strconv.Itoa(t.Nodes[nodesShown-1].No)
	}
	if run.Live() {
		query := url.Values{"status": {f.status}, "q": {f.search}}
		if f.after >= 0 {
			query.Set("after", strconv.Itoa(f.after))
		}
		t.Live = "/live/runs/" + strconv.FormatInt(run.ID, 10) + "/nodes?" + query.Encode()
	}
	return t, nil
}

// runPart is the frame of the live parts of a run: the opener reads its project alone.
func (p *Page) runPart(r *http.Request, q part, load func(ctx context.Context, tx pgx.Tx, run runRow) (any, error)) (part, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return part{}, err
	}
	err = p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowTo[string], "flow_run_project", id)
		if err == nil && (len(list) == 0 || !reach.Sees(ctx, list[0])) {
			err = noRun(id)
		}
		return err
	})
	if err != nil {
		return part{}, err
	}
	q.Page = "run"
	q.Load = func(ctx context.Context) (data any, err error) {
		err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
			list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[runRow], "flow_run", id)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return noRun(id)
			}
			data, err = load(ctx, tx, list[0])
			return err
		})
		return data, err
	}
	return q, nil
}

func (p *Page) runHeadPart(r *http.Request) (part, error) {
	q, err := p.runPart(r, part{Name: "runHead", Every: time.Second}, func(ctx context.Context, tx pgx.Tx, run runRow) (any, error) {
		nodes, err := p.statuses(ctx, tx, run.ID)
		return &runPage{Run: run, Nodes: nodes}, err
	})
	if err != nil {
		return q, err
	}
	load := q.Load
	q.Load = func(ctx context.Context) (any, error) { // outside of the transaction: the client has none to be given
		data, err := load(ctx)
		if shown, ok := data.(*runPage); ok && err == nil {
			shown.Why = p.whyRun(ctx, shown.Run)
		}
		return data, err
	}
	return q, nil
}

func (p *Page) runStatusesPart(r *http.Request) (part, error) {
	return p.runPart(r, part{Name: "runStatuses", Every: time.Second}, func(ctx context.Context, tx pgx.Tx, run runRow) (any, error) {
		return p.statuses(ctx, tx, run.ID)
	})
}

func (p *Page) runNodesPart(r *http.Request) (part, error) {
	filter, err := nodeFilterOf(r)
	if err != nil {
		return part{}, err
	}
	return p.runPart(r, part{Key: r.URL.RequestURI(), Name: "runNodes"}, func(ctx context.Context, tx pgx.Tx, run runRow) (any, error) {
		return p.nodeTable(ctx, tx, run, filter)
	})
}

// runFile sends the run's picture as a file, coloured as it stands.
func (p *Page) runFile(w http.ResponseWriter, r *http.Request) error {
	run, err := p.seenRun(r)
	if err != nil {
		return err
	}
	picture, err := p.picture(r.Context(), run.Project, run.Flow, run.Version)
	if err != nil {
		return err
	}
	var nodes nodeStatuses
	err = p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		nodes, err = p.statuses(ctx, tx, run.ID)
		return err
	})
	if err != nil {
		return err
	}
	words := map[byte]string{}
	for _, word := range statusWords {
		words[word.letter[0]] = word.status
	}
	return sendFile(w, picture, func(i int) string {
		if i >= len(nodes.Letters) {
			return ""
		}
		return words[nodes.Letters[i]]
	})
}
