package page

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs/flow"
)

const (
	attemptsShown = 100
	paramsShown   = 1000
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
	jobRun

	Job  int64
	Here bool // its log is shown
}

type nodePage struct {
	Run          runRow
	Node         nodeRow
	Spec         *nodeSpec
	Children     []nodeRef
	Explanation  *flow.Explanation
	Attempts     []attempt
	MoreAttempts bool
	Choice       logChoice // Job 0: there is no log
	Log          logView
	LogPage      string // address of the page of the log
	Outputs      json.RawMessage
	MayAct       bool
	Whole        bool // it is an embedded flow, or an instance of a for_each: all of it can be run once more
	Ended        bool
	Live         string // address of the part that says how it stands
	State        string // how it stands
}

// Reason is the node's, if the explanation says something else.
func (d *nodePage) Reason() string {
	if r := d.Node.Reason; r != nil && *r != d.Explanation.Why {
		return *r
	}
	return ""
}

// Own are the parameters that people gave, and Engine those that the engine adds.
func (d *nodePage) Own() []flow.Param { return d.params(false) }

// Engine are those that the engine adds.
func (d *nodePage) Engine() []flow.Param { return d.params(true) }

func (d *nodePage) params(engine bool) (list []flow.Param) {
	for _, p := range d.Explanation.Params {
		if strings.HasPrefix(p.Name, "azkaban.") == engine && len(list) < paramsShown {
			list = append(list, p)
		}
	}
	return list
}

// seenNode reads the run and the node that a request means.
func (p *Page) seenNode(r *http.Request) (run runRow, node nodeRow, err error) {
	if run, err = p.seenRun(r); err != nil {
		return run, node, err
	}
	no, err := pathID(r, "no")
	if err != nil || no > math.MaxInt32 {
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
	data := &nodePage{Run: run, Node: node, MayAct: actor(r.Context()).May(access.Operator, run.Project), Ended: !run.Live()}
	data.Live, data.State = fmt.Sprintf("/live/runs/%d/nodes/%d", run.ID, node.No), node.state(run)
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
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		data.Attempts, data.MoreAttempts, err = p.attempts(ctx, tx, node)
		return err
	})
	if err != nil {
		return err
	}
	if err := p.addLog(r, data); err != nil {
		return err
	}
	return p.render(w, r, "node", node.Path, data)
}

// state is what all that a node's page offers depends on.
func (n nodeRow) state(run runRow) string {
	return fmt.Sprintf("%s %s %d %d %d", run.Status, n.Status, n.Try, n.Attempt, len(n.Jobs))
}

// nodePart says how a node stands.
func (p *Page) nodePart(r *http.Request) (part, error) {
	no, err := strconv.ParseInt(r.PathValue("no"), 10, 32)
	if err != nil || no < 0 {
		return part{}, notFound("there is no node number %q", r.PathValue("no"))
	}
	q, err := p.runPart(r, part{Name: "nodeNow"}, func(ctx context.Context, tx pgx.Tx, run runRow) (any, error) {
		list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[nodeRow], "flow_node", run.ID, no)
		if err == nil && len(list) == 0 {
			err = notFound("run %d has no node number %d", run.ID, no)
		}
		if err != nil {
			return nil, err
		}
		return list[0].state(run), nil
	})
	q.Page = "node"
	return q, err
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
func (p *Page) attempts(ctx context.Context, tx pgx.Tx, node nodeRow) (list []attempt, more bool, err error) {
	if node.JobID == nil {
		return nil, false, nil
	}
	for _, id := range slices.Backward(append(slices.Clone(node.Jobs), *node.JobID)) {
		state := ""
		if id == *node.JobID && node.EndedAt == nil {
			state = "running" // it may be
		}
		runs, err := p.jobRuns(ctx, tx, id, math.MaxInt32, attemptsShown-len(list)+1, state)
		if err != nil {
			return nil, false, err
		}
		for _, run := range runs {
			list = append(list, attempt{run, id, false})
		}
		if len(list) > attemptsShown {
			return list[:attemptsShown], true, nil
		}
	}
	return list, false, nil
}

// log is the log that a request for a node means; of none (Job 0) it is the newest.
func (n nodeRow) log(r *http.Request, run runRow) (c logChoice, err error) {
	if c, err = c.parse(r); err != nil {
		return c, err
	}
	c.base = fmt.Sprintf("%s/nodes/%d/log", run.Where(), n.No)
	text := r.URL.Query().Get("job")
	if text == "" {
		return c, nil
	}
	c.Job, err = strconv.ParseInt(text, 10, 64)
	if err != nil || n.JobID == nil || c.Job != *n.JobID && !slices.Contains(n.Jobs, c.Job) {
		return c, notFound("node %s has no job %s", n.Path, text)
	}
	return c, nil
}

// addLog adds the end of the log that is asked for, or of the newest run that has begun.
func (p *Page) addLog(r *http.Request, data *nodePage) error {
	c, err := data.Node.log(r, data.Run)
	if err != nil {
		return err
	}
	for i := range data.Attempts {
		a := &data.Attempts[i]
		if c.Job == 0 && a.StartedAt != nil || a.Job == c.Job && a.Run == c.Run {
			c.Job, c.Run, a.Here = a.Job, a.Run, true
			break
		}
	}
	if c.Job == 0 {
		return nil
	}
	data.Choice, data.LogPage = c, c.address("")
	return p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		data.Log, err = p.logEnd(ctx, tx, c, embeddedLog)
		return err
	})
}

// chosenLog is the log of a node that a request must name.
func (p *Page) chosenLog(r *http.Request) (logChoice, error) {
	run, node, err := p.seenNode(r)
	if err != nil {
		return logChoice{}, err
	}
	c, err := node.log(r, run)
	if err == nil && c.Job == 0 {
		err = badInput("want a job: job=...")
	}
	return c, err
}

func (p *Page) showNodeLog(w http.ResponseWriter, r *http.Request) error {
	c, err := p.chosenLog(r)
	if err != nil {
		return err
	}
	return p.showChosenLog(w, r, c)
}

func (p *Page) followNodeLog(w http.ResponseWriter, r *http.Request) error {
	c, err := p.chosenLog(r)
	if err != nil {
		return err
	}
	return p.followChosenLog(w, r, c, func(r *http.Request) error {
		_, err := p.seenRun(r)
		return err
	})
}

func (p *Page) downloadNodeLog(w http.ResponseWriter, r *http.Request) error {
	c, err := p.chosenLog(r)
	if err != nil {
		return err
	}
	return p.downloadChosenLog(w, r, c)
}
