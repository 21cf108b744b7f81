package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/reach"
	"github.com/peltonq/pelton/jobs/flow"
)

func (s *server) addRuns() {
	add(s, operation{
		id: "runs-start", method: http.MethodPost, path: "/projects/{project}/flows/{flow}/runs", tag: "runs", status: http.StatusCreated,
		summary: "Start a run of a flow", errors: []int{http.StatusConflict},
	}, s.runsStart)
	add(s, operation{
		id: "runs-list", method: http.MethodGet, path: "/runs", tag: "runs", errors: []int{http.StatusNotFound},
		summary: "List runs, the newest first", detail: "Those of projects in which you are a viewer.",
	}, s.runsList)
	add(s, operation{
		id: "runs-get", method: http.MethodGet, path: "/runs/{id}", tag: "runs", summary: "Show a run and its nodes",
		detail: "With outputs of the first nodes, 4 MiB in all: those of others are outputs_left_out. Long items, reasons and errors are cut. runs-node has all of a node.",
	}, s.runsGet)
	add(s, operation{
		id: "runs-node", method: http.MethodGet, path: "/runs/{id}/node", tag: "runs", summary: "Show a node of a run, all of it",
	}, s.runsNode)
	add(s, operation{
		id: "runs-why", method: http.MethodGet, path: "/runs/{id}/why", tag: "runs",
		summary: "Say how a run stands, or why a node has not started, or why it ended as it did",
	}, s.runsWhy)
	add(s, operation{
		id: "runs-graph", method: http.MethodGet, path: "/runs/{id}/graph", tag: "runs", stream: "image/svg+xml",
		summary: "Draw a run's flow, its nodes coloured by their statuses",
	}, s.runsGraph)
	s.addRunVerbs()
}

// RunPath names a run.
type RunPath struct {
	ID int64 `path:"id" minimum:"1" doc:"of the run"`
}

// StartRun says how to run a flow.
type StartRun struct {
	Version int          `json:"version,omitempty" minimum:"1" doc:"of the project (default: the newest)"`
	Options flow.Options `json:"options,omitzero" doc:"what is left out is as the flow says"`
}

type runsStartInput struct {
	FlowPath
	Keyed

	Body StartRun
}

// StartedRun is the answer to a start.
type StartedRun struct {
	Run int64 `json:"run"`
}

func (s *server) runsStart(ctx context.Context, in *runsStartInput) (*onceAnswer[StartedRun], error) {
	if err := access.Check(ctx, access.Operator, in.Project); err != nil {
		return nil, err
	}
	p := flow.RunParams{Project: in.Project, Flow: in.Flow, Version: in.Body.Version, Options: in.Body.Options}
	beyond, err := s.Flows.Beyond(ctx, p)
	if err != nil {
		return nil, err
	}
	if beyond != "" {
		if err := access.Check(ctx, access.Admin, in.Project); err != nil {
			return nil, fmt.Errorf("%s, which is for who may push the project: %w", beyond, err)
		}
	}
	out, err := doOnce(ctx, s, in.Key, []any{"runs-start", in.Project, in.Flow, in.Body}, func(ctx context.Context, tx pgx.Tx) (StartedRun, error) {
		run, err := s.Flows.RunTx(ctx, tx, p)
		return StartedRun{run}, err
	})
	if err == nil && out.Replayed == "" {
		s.Flows.Hint(ctx)
	}
	return out, err
}

type runsListInput struct {
	Paging

	Project string `query:"project" maxLength:"64" doc:"of this project"`
	Flow    string `query:"flow" maxLength:"1000" doc:"of this flow; with project"`
	Status  string `query:"status" doc:"with this status" enum:"PREPARING,QUEUED,RUNNING,PAUSED,KILLING,FAILED_FINISHING,SUCCEEDED,FAILED,KILLED"`
	Live    bool   `query:"live" doc:"that have not ended"`
}

func (s *server) runsList(ctx context.Context, in *runsListInput) (*answer[Page[flow.RunRow]], error) {
	projects, err := viewed(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	if in.Flow != "" && in.Project == "" {
		return nil, invalid("query.flow", "it goes with project")
	}
	const list = "runs"
	before, err := positionOf[int64](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	f := flow.RunFilter{Project: in.Project, Flow: in.Flow, Status: in.Status, Live: in.Live, Projects: projects}
	if before != nil {
		f.Before = *before
	}
	runs, err := s.Flows.Runs(ctx, f, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &answer[Page[flow.RunRow]]{pageOf(list, append([]flow.RunRow{}, runs...), in.Limit, func(r flow.RunRow) any { return r.ID })}, nil
}

// run finds a run that the actor has a role for. To others it is as if there were none.
func (s *server) run(ctx context.Context, id int64, role access.Role) (*flow.RunRow, error) {
	return reach.Run(ctx, s.Flows, id, role)
}

func (s *server) runsGet(ctx context.Context, in *RunPath) (*answer[flow.RunDetail], error) {
	if _, err := s.run(ctx, in.ID, access.Viewer); err != nil {
		return nil, err
	}
	detail, err := s.Flows.GetPart(ctx, in.ID, pageBytes)
	if err != nil {
		return nil, err
	}
	return &answer[flow.RunDetail]{*detail}, nil
}

type runsNodeInput struct {
	RunPath

	Node string `query:"node" maxLength:"10000" doc:"its path; required"`
}

func (s *server) runsNode(ctx context.Context, in *runsNodeInput) (*answer[flow.NodeRow], error) {
	if _, err := s.run(ctx, in.ID, access.Viewer); err != nil {
		return nil, err
	}
	if in.Node == "" {
		return nil, invalid("query.node", "it is missing: the path of a node")
	}
	node, err := s.Flows.Node(ctx, in.ID, in.Node)
	if err != nil {
		return nil, err
	}
	return &answer[flow.NodeRow]{*node}, nil
}

type runsWhyInput struct {
	RunPath

	Node string `query:"node" maxLength:"10000" doc:"path of a node"`
}

// Why says why in a sentence.
type Why struct {
	Run  int64  `json:"run"`
	Node string `json:"node,omitempty"`
	Why  string `json:"why"`
}

func (s *server) runsWhy(ctx context.Context, in *runsWhyInput) (*answer[Why], error) {
	if _, err := s.run(ctx, in.ID, access.Viewer); err != nil {
		return nil, err
	}
	var why string
	var err error
	if in.Node == "" {
		why, err = s.Flows.WhyRun(ctx, in.ID)
	} else {
		why, err = s.Flows.Why(ctx, in.ID, in.Node)
	}
	return answered(Why{in.ID, in.Node, why}, err)
}

func (s *server) runsGraph(ctx context.Context, in *RunPath) (*huma.StreamResponse, error) {
	if _, err := s.run(ctx, in.ID, access.Viewer); err != nil {
		return nil, err
	}
	return s.picture(ctx, func(ctx context.Context, w io.Writer) error { return s.Flows.RunSVG(ctx, w, in.ID) })
}

func (s *server) addRunVerbs() {
	simple := map[string]struct {
		summary string
		do      func(ctx context.Context, run int64) error
	}{
		"kill":   {"Kill a run: end what runs, start nothing more", s.Flows.Kill},
		"pause":  {"Have no more nodes of a run start; what runs goes on, with its retries", s.Flows.Pause},
		"resume": {"End a pause", s.Flows.Resume},
	}
	for _, verb := range []string{"kill", "pause", "resume"} {
		do := simple[verb].do
		add(s, runVerb(verb, simple[verb].summary), func(ctx context.Context, in *RunPath) (*answer[flow.RunRow], error) {
			return s.operate(ctx, in.ID, func() error { return do(ctx, in.ID) })
		})
	}
	add(s, runVerb("retry", "Run what failed once more, in a run that has ended"), s.runsRetry)
	add(s, runVerb("rerun", "Run nodes, and all that depends on them, once more, in a run that has ended"), s.runsRerun)
	add(s, runVerb("succeed", "Have a node that failed, was killed or cancelled, or has not started, count as succeeded"), s.runsSucceed)
}

// runVerb is an operation that does something to a run, and answers with its row.
func runVerb(verb, summary string) operation {
	return operation{
		id: "runs-" + verb, method: http.MethodPost, path: "/runs/{id}/" + verb, tag: "runs", summary: summary, errors: []int{http.StatusConflict},
		detail: "The answer is the run as it is then: a scheduler may have yet to do what was asked.",
	}
}

// operate does something to a run and shows it.
func (s *server) operate(ctx context.Context, id int64, do func() error) (*answer[flow.RunRow], error) {
	if _, err := s.run(ctx, id, access.Operator); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	r, err := s.run(ctx, id, access.Operator)
	if err != nil {
		return nil, err
	}
	return &answer[flow.RunRow]{*r}, nil
}

// SomeNodes are nodes of a run; none: all that the verb is for.
type SomeNodes struct {
	Nodes []string `json:"nodes,omitempty" maxItems:"10000" doc:"paths; of an embedded flow or an instance of a for_each, all of it (default: all that failed, was killed or was cancelled)"`
}

type runsRetryInput struct {
	RunPath

	Body *SomeNodes
}

func (s *server) runsRetry(ctx context.Context, in *runsRetryInput) (*answer[flow.RunRow], error) {
	var nodes []string
	if in.Body != nil {
		nodes = in.Body.Nodes
	}
	return s.operate(ctx, in.ID, func() error { return s.Flows.Retry(ctx, in.ID, nodes...) })
}

// TheseNodes are nodes of a run.
type TheseNodes struct {
	Nodes []string `json:"nodes" minItems:"1" maxItems:"10000" doc:"paths"`
}

type runsRerunInput struct {
	RunPath

	Body TheseNodes
}

func (s *server) runsRerun(ctx context.Context, in *runsRerunInput) (*answer[flow.RunRow], error) {
	return s.operate(ctx, in.ID, func() error { return s.Flows.Rerun(ctx, in.ID, in.Body.Nodes...) })
}

// OneNode is a node of a run.
type OneNode struct {
	Node string `json:"node" minLength:"1" maxLength:"10000" doc:"its path"`
}

type runsSucceedInput struct {
	RunPath

	Body OneNode
}

func (s *server) runsSucceed(ctx context.Context, in *runsSucceedInput) (*answer[flow.RunRow], error) {
	return s.operate(ctx, in.ID, func() error { return s.Flows.MarkSucceeded(ctx, in.ID, strings.TrimSpace(in.Body.Node)) })
}
