package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/joblog"
)

func (s *server) addRunLogs() {
	add(s, operation{
		id: "runs-logs", method: http.MethodGet, path: "/runs/{id}/logs", tag: "runs",
		summary: "List the jobs of a run's nodes, and how much each of their runs printed",
		detail:  "In the order in which they were made, those of earlier tries of a node too.",
	}, s.runsLogs)
	add(s, operation{
		id: "runs-log", method: http.MethodGet, path: "/runs/{id}/jobs/{job}/log", tag: "runs", stream: "application/octet-stream",
		summary: "Download what a node's job printed, byte for byte", detail: "As jobs-log, for viewers of the project.",
		errors: []int{http.StatusRequestedRangeNotSatisfiable},
	}, s.runsLog)
	add(s, operation{
		id: "runs-log-follow", method: http.MethodGet, path: "/runs/{id}/jobs/{job}/log/follow", tag: "runs", stream: "text/event-stream",
		summary: "Follow what a node's job prints, as server-sent events", detail: "As jobs-log-follow, for viewers of the project.",
	}, s.runsLogFollow)
}

// NodeLog is how much a job of a node printed.
type NodeLog struct {
	Node  string             `json:"node"`
	JobID int64              `json:"job_id"`
	Logs  []document.LogSize `json:"logs" doc:"of each run of the job; empty: it printed nothing"`
}

type runsLogsInput struct {
	RunPath
	Paging

	Node string `query:"node" maxLength:"10000" doc:"of this node; of an embedded flow or a for_each those in it"`
}

func (s *server) runsLogs(ctx context.Context, in *runsLogsInput) (*answer[Page[NodeLog]], error) {
	if _, err := s.run(ctx, in.ID, access.Viewer); err != nil {
		return nil, err
	}
	detail, err := s.Flows.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	all := []NodeLog{}
	for i := range detail.Nodes {
		n := &detail.Nodes[i]
		if in.Node != "" && n.Path != in.Node && !strings.HasPrefix(n.Path, in.Node+":") && !strings.HasPrefix(n.Path, in.Node+"[") {
			continue
		}
		for _, job := range jobsOf(n) {
			all = append(all, NodeLog{Node: n.Path, JobID: job})
		}
	}
	key := func(l NodeLog) int64 { return l.JobID }
	slices.SortFunc(all, func(a, b NodeLog) int { return cmp.Compare(a.JobID, b.JobID) })
	page, err := pageFrom("logs", all, in.Paging, key)
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		sizes, err := joblog.Sizes(ctx, s.Pool, s.Jobs.Schema(), page.Items[i].JobID)
		if err != nil {
			return nil, err
		}
		page.Items[i].Logs = document.NewLogSizes(sizes)
	}
	return &answer[Page[NodeLog]]{page}, nil
}

// jobsOf are the jobs of a node's tries, the first first.
func jobsOf(n *flow.NodeRow) []int64 {
	list := slices.Clone(n.Jobs)
	if n.JobID != nil {
		list = append(list, *n.JobID)
	}
	return list
}

// NodeJobPath names a job of a run's node.
type NodeJobPath struct {
	RunPath

	Job int64 `path:"job" minimum:"1" doc:"of a node of the run"`
}

// checkNodeJob finds out whether a job is one of a run that the actor may see.
func (s *server) checkNodeJob(ctx context.Context, in *NodeJobPath) error {
	if _, err := s.run(ctx, in.ID, access.Viewer); err != nil {
		return err
	}
	detail, err := s.Flows.Get(ctx, in.ID)
	if err != nil {
		return err
	}
	for i := range detail.Nodes {
		if slices.Contains(jobsOf(&detail.Nodes[i]), in.Job) {
			return nil
		}
	}
	return fmt.Errorf("run %d has no node with job %d: %w", in.ID, in.Job, flow.ErrNotFound)
}

type runsLogInput struct {
	NodeJobPath
	LogPart
	LogRange
}

func (s *server) runsLog(ctx context.Context, in *runsLogInput) (*logOutput, error) {
	if err := s.checkNodeJob(ctx, &in.NodeJobPath); err != nil {
		return nil, err
	}
	return s.download(ctx, in.Job, &in.LogPart, in.Range)
}

type runsLogFollowInput struct {
	NodeJobPath
	LogPart
	LastEvent
}

func (s *server) runsLogFollow(ctx context.Context, in *runsLogFollowInput) (*followOutput, error) {
	if err := s.checkNodeJob(ctx, &in.NodeJobPath); err != nil {
		return nil, err
	}
	return s.stream(ctx, in.Job, &in.LogPart, in.LastEventID, func(ctx context.Context) error {
		_, err := s.run(ctx, in.ID, access.Viewer)
		return err
	})
}
