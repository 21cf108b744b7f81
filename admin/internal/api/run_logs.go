package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs/flow"
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
	Logs  []document.LogSize `json:"logs" doc:"of the last 100 runs of the job that printed something; empty: it printed nothing"`
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
	const list = "logs"
	after, err := positionOf[int64](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	if after == nil {
		after = new(int64)
	}
	jobs, err := s.Flows.NodeJobs(ctx, in.ID, in.Node, *after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	all := make([]NodeLog, len(jobs))
	for i, job := range jobs {
		all[i] = NodeLog{Node: job.Path, JobID: job.ID}
	}
	page := pageOf(list, all, in.Limit, func(l NodeLog) any { return l.JobID })
	ids := make([]int64, len(page.Items))
	for i := range page.Items {
		ids[i] = page.Items[i].JobID
	}
	sizes, err := document.ReadLogSizesOf(ctx, s.Pool, s.Jobs.Schema(), ids)
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		page.Items[i].Logs = document.NewLogSizes(sizes[page.Items[i].JobID])
	}
	return &answer[Page[NodeLog]]{page}, nil
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
	if has, err := s.Flows.HasJob(ctx, in.ID, in.Job); err != nil || has {
		return err
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
