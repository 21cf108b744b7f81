package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/joblog"
)

const (
	attemptsShown = 100
	paramsShown   = 1000
	// logShown is how much of the end of a log a page shows.
	logShown = 128 << 10
)

// nodeRow is a row of flow_node.
type nodeRow struct {
	nodeLine

	Outputs *string
	Held    *string
	Jobs    []int64 // those before the newest
}

// attempt is a run of a job of a node.
type attempt struct {
	Job int64
	jobs.JobRun

	Here bool // its log is shown
}

// Took is how long it ran.
func (a attempt) Took() string {
	return runLine{StartedAt: a.StartedAt, EndedAt: a.EndedAt}.Took()
}

type nodePage struct {
	Run          runRow
	Node         nodeRow
	Spec         *nodeSpec
	Children     []nodeRef
	Explanation  *flow.Explanation
	Attempts     []attempt
	MoreAttempts bool
	Log          nodeLogView
	Outputs      json.RawMessage
	MayAct       bool
	Whole        bool // it is an embedded flow, or an instance of a for_each: all of it can be run once more
	Ended        bool
}

// nodeLogView is the end of a log.
type nodeLogView struct {
	Job    int64
	Run    int
	HTML   template.HTML
	Cut    bool   // there is more before it
	Follow string // address of what comes; empty: it has ended
	File   string // address of all of it
}

// seenNode reads the run and the node that a request means.
func (p *Page) seenNode(r *http.Request) (run runRow, node nodeRow, err error) {
	if run, err = p.seenRun(r); err != nil {
		return run, node, err
	}
	no, err := strconv.ParseInt(r.PathValue("no"), 10, 32)
	if err != nil || no < 0 {
		return run, node, notFound("run %d has no node number %s", run.ID, r.PathValue("no"))
	}
	err = p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[nodeRow], "flow_node", run.ID, no)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return notFound("run %d has no node number %d", run.ID, no)
		}
		node = list[0]
		return nil
	})
	return run, node, err
}

func (p *Page) showNode(w http.ResponseWriter, r *http.Request) error {
	run, node, err := p.seenNode(r)
	if err != nil {
		return err
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	data := nodePage{Run: run, Node: node, MayAct: actor(r.Context()).May(access.Operator, run.Project), Ended: !run.Live()}
	if node.Outputs != nil {
		data.Outputs = json.RawMessage(*node.Outputs)
	}
	_, graph, err := p.config.Flows.Graph(ctx, run.Project, run.Flow, run.Version)
	if err != nil {
		return flowFault(err)
	}
	no := node.No
	if node.Template != nil {
		no = *node.Template
	}
	data.describe(graph, no)
	data.Whole = node.Template != nil || data.Spec != nil && data.Spec.Type == "flow"
	if data.Explanation, err = p.config.Flows.Explain(ctx, run.ID, node.Path); err != nil {
		return flowFault(err)
	}
	data.Explanation.Params = data.Explanation.Params[:min(len(data.Explanation.Params), paramsShown)]
	if data.Attempts, data.MoreAttempts, err = p.attempts(ctx, node); err != nil {
		return err
	}
	if err := p.showNodeLog(r, &data); err != nil {
		return err
	}
	return p.render(w, r, "node", node.Path, data)
}

// describe adds what the flow says of the node.
func (d *nodePage) describe(graph *flow.Graph, no int) {
	if no >= len(graph.Nodes) {
		return
	}
	spec := nodeSpec{No: no, GraphNode: &graph.Nodes[no]}
	for _, parent := range spec.GraphNode.Parents {
		spec.Parents = append(spec.Parents, nodeRef{parent, graph.Nodes[parent].Path})
	}
	d.Spec = &spec
	for i := range graph.Nodes {
		if slices.Contains(graph.Nodes[i].Parents, no) && len(d.Children) < nodesShown {
			d.Children = append(d.Children, nodeRef{i, graph.Nodes[i].Path})
		}
	}
}

// attempts are the runs of a node's jobs, the newest first.
func (p *Page) attempts(ctx context.Context, node nodeRow) (list []attempt, more bool, err error) {
	if node.JobID == nil {
		return nil, false, nil
	}
	for _, id := range slices.Backward(append(slices.Clone(node.Jobs), *node.JobID)) {
		runs, err := p.config.Jobs.JobRuns(ctx, id)
		if err != nil {
			return nil, false, err
		}
		for _, run := range slices.Backward(runs) {
			if len(list) == attemptsShown {
				return list, true, nil
			}
			list = append(list, attempt{Job: id, JobRun: run})
		}
	}
	return list, false, nil
}

// wantedLog is which run of which of the node's jobs a request means; by default the newest that has begun.
func wantedLog(r *http.Request, node nodeRow) (job int64, run int, err error) {
	query := r.URL.Query()
	if query.Get("job") == "" {
		return 0, 0, nil
	}
	job, err = strconv.ParseInt(query.Get("job"), 10, 64)
	if err == nil {
		run, err = strconv.Atoi(query.Get("run"))
	}
	if err != nil || node.JobID == nil || job != *node.JobID && !slices.Contains(node.Jobs, job) {
		return 0, 0, notFound("node %s has no such log", node.Path)
	}
	return job, run, nil
}

func (p *Page) showNodeLog(r *http.Request, data *nodePage) error {
	job, run, err := wantedLog(r, data.Node)
	if err != nil {
		return err
	}
	for i := range data.Attempts {
		a := &data.Attempts[i]
		if job == 0 && a.StartedAt != nil || a.Job == job && a.Run == run {
			job, run, a.Here = a.Job, a.Run, true
			data.Log.Follow = ""
			if a.EndedAt == nil {
				data.Log.Follow = "follow"
			}
			break
		}
	}
	if job == 0 {
		return nil
	}
	data.Log.Job, data.Log.Run = job, run
	var text logText
	var last int64
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	for c, err := range joblog.Read(ctx, p.config.Pool, p.config.Schema, job, run, joblog.Options{Streams: "oel", Tail: joblog.Limit{Bytes: logShown}}) {
		if err != nil {
			return err
		}
		data.Log.Cut = data.Log.Cut || last == 0 && c.Pos > 0
		last = c.ID
		text.add(c)
	}
	data.Log.HTML = text.html()
	where := fmt.Sprintf("%s/nodes/%d/", data.Run.Where(), data.Node.No)
	of := fmt.Sprintf("?job=%d&run=%d", job, run)
	data.Log.File = where + "log" + of
	if data.Log.Follow != "" {
		data.Log.Follow = where + "follow" + of + "&after=" + strconv.FormatInt(last, 10)
	}
	return nil
}

// logText makes HTML of chunks.
type logText struct{ out []byte }

func (t *logText) add(c joblog.Chunk) {
	if c.Skipped > 0 {
		t.out = append(t.out, `<span class="note">[... `+byteCount(c.Skipped)+" not kept ...]\n</span>"...)
	}
	if len(c.Data) == 0 {
		return
	}
	text := template.HTMLEscapeString(string(visible(c.Data)))
	if c.Stream == joblog.Stderr {
		text = `<span class="err">` + text + "</span>"
	}
	t.out = append(t.out, text...)
}

func (t *logText) html() template.HTML { return template.HTML(t.out) } //nolint:gosec // escaped by add

// followNode streams what a run of a node's job prints, as events "more", until it has ended.
func (p *Page) followNode(w http.ResponseWriter, r *http.Request) error {
	_, node, err := p.seenNode(r)
	if err != nil {
		return err
	}
	job, number, err := wantedLog(r, node)
	if err != nil {
		return err
	}
	after, err := strconv.ParseInt("0"+r.URL.Query().Get("after"), 10, 64)
	if err != nil || job == 0 {
		return badInput("want job, run and after")
	}
	check := func(r *http.Request) error {
		_, err := p.seenRun(r)
		return err
	}
	return p.stream(w, r, check, func(ctx context.Context, send sender) error {
		ended := func(ctx context.Context) (bool, error) {
			runs, err := p.config.Jobs.JobRuns(ctx, job)
			over := !slices.ContainsFunc(runs, func(run jobs.JobRun) bool { return run.Run == number && run.EndedAt == nil })
			return over, err
		}
		for c, err := range joblog.Follow(ctx, p.config.Pool, p.config.Schema, job, number, joblog.Options{Streams: "oel", After: after}, ended) {
			if err != nil {
				return err
			}
			var text logText
			text.add(c)
			if err := send("more", text.out); err != nil {
				return err
			}
		}
		return nil
	})
}

// nodeLog sends all of a log as it was printed.
func (p *Page) nodeLog(w http.ResponseWriter, r *http.Request) error {
	_, node, err := p.seenNode(r)
	if err != nil {
		return err
	}
	job, number, err := wantedLog(r, node)
	if err != nil {
		return err
	}
	if job == 0 {
		return badInput("want job and run")
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=job-%d-run-%d.log", job, number))
	out := &pacedWriter{w, http.NewResponseController(w)}
	err = joblog.Copy(out, joblog.Read(r.Context(), p.config.Pool, p.config.Schema, job, number, joblog.Options{Streams: "oel"}))
	if err != nil && !errors.Is(err, errGone) {
		p.config.Logger.WarnContext(r.Context(), "a log could not be sent", "job", job, "error", err)
		panic(http.ErrAbortHandler) // so that nobody takes what came for all of it
	}
	return nil
}

// pacedWriter gives each piece of a long answer its own time.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *pacedWriter) Write(data []byte) (int, error) {
	if err := w.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, errors.Join(errGone, err)
	}
	n, err := w.ResponseWriter.Write(data)
	if err != nil {
		err = errors.Join(errGone, err)
	}
	return n, err
}
